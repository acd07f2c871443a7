// Memory by handles: the driver's calls, found by the runtime.
#include <cuda.h>

#include <vector>

#include "program.hpp"

namespace {

__global__ void count_up(int* values, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) values[i] = i;
}

template <class F>
F* driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess && function != nullptr);
  return reinterpret_cast<F*>(function);
}
#define DRIVER(name) driver<decltype(name)>(#name)

CUmemAllocationProp properties() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return p;
}

size_t granularity() {
  CHECK_CUDA(cudaFree(nullptr));  // the context
  size_t bytes = 0;
  const CUmemAllocationProp p = properties();
  CHECK(DRIVER(cuMemGetAllocationGranularity)(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
        CUDA_SUCCESS);
  CHECK(bytes > 0);
  return bytes;
}

CUmemGenericAllocationHandle created(size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp p = properties();
  CHECK(DRIVER(cuMemCreate)(&handle, bytes, &p, 0) == CUDA_SUCCESS);
  return handle;
}

CUresult set_access(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = flags;
  return DRIVER(cuMemSetAccess)(at, bytes, &access, 1);
}

int* pointer(CUdeviceptr at) { return reinterpret_cast<int*>(at); }

// A mapped piece with this access, and a kernel that writes to it.
void write_with_access(CUmemAccess_flags flags) {
  const size_t piece = granularity();
  CUdeviceptr range = 0;
  CHECK(DRIVER(cuMemAddressReserve)(&range, piece, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemMap)(range, piece, 0, created(piece), 0) == CUDA_SUCCESS);
  if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
    CHECK(set_access(range, piece, flags) == CUDA_SUCCESS);
  count_up<<<1, 32>>>(pointer(range), 32);
  CHECK(cudaDeviceSynchronize() != cudaSuccess);
}

}  // namespace

void mapped_memory() {
  const size_t piece = granularity();
  const int count = static_cast<int>(2 * piece / sizeof(int));
  CUdeviceptr range = 0;
  CHECK(DRIVER(cuMemAddressReserve)(&range, 4 * piece, 2 * piece, 0, 0) == CUDA_SUCCESS);
  CHECK(range % (2 * piece) == 0);
  CUmemGenericAllocationHandle first = created(piece), second = created(piece), same = 0;
  CHECK(DRIVER(cuMemMap)(range, piece, 0, first, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemMap)(range, piece, 0, second, 0) == CUDA_ERROR_INVALID_VALUE);  // in use
  CHECK(DRIVER(cuMemMap)(range + piece, piece, 0, second, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemRelease)(second) == CUDA_SUCCESS);  // its mapping keeps it
  CHECK(set_access(range, 3 * piece, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(set_access(range, 2 * piece, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  // From one piece to the next: a kernel, and a copy of bytes of both.
  count_up<<<1, 1024>>>(pointer(range), count);
  std::vector<int> host(static_cast<size_t>(count));
  CHECK_CUDA(cudaMemcpy(host.data(), pointer(range), 2 * piece, cudaMemcpyDeviceToHost));
  CHECK(host[0] == 0 && host[count / 2] == count / 2 && host[count - 1] == count - 1);
  CUmemLocation here{};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  unsigned long long flags = 0;
  CHECK(DRIVER(cuMemGetAccess)(&flags, &here, range + piece) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(DRIVER(cuMemRetainAllocationHandle)(&same, pointer(range + piece)) == CUDA_SUCCESS);
  CUmemAllocationProp known{};
  CHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&known, same) == CUDA_SUCCESS);
  CHECK(known.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  // What a handle has stays while it is mapped nowhere, and is found at its next place.
  CHECK(DRIVER(cuMemAddressFree)(range, 4 * piece) == CUDA_ERROR_INVALID_VALUE);  // in use
  CHECK(DRIVER(cuMemUnmap)(range, 2 * piece) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemMap)(range + 3 * piece, piece, 0, same, 0) == CUDA_SUCCESS);
  CHECK(set_access(range + 3 * piece, piece, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
  CHECK_CUDA(cudaMemcpy(host.data(), pointer(range + 3 * piece), piece, cudaMemcpyDeviceToHost));
  CHECK(host[0] == count / 2 && host[count / 2 - 1] == count - 1);
  CHECK(DRIVER(cuMemUnmap)(range + 3 * piece, piece) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemRelease)(same) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemRelease)(first) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemAddressFree)(range, 4 * piece) == CUDA_SUCCESS);
  const CUmemAllocationProp p = properties();
  CHECK(DRIVER(cuMemCreate)(&first, piece / 2, &p, 0) == CUDA_ERROR_INVALID_VALUE);
}

void mapped_memory_read_only() { write_with_access(CU_MEM_ACCESS_FLAGS_PROT_READ); }
void mapped_memory_without_access() { write_with_access(CU_MEM_ACCESS_FLAGS_PROT_NONE); }
void mapped_memory_kept() { created(granularity()); }
