// Memory of one process in another one: by a handle of cudaMalloc's, by an exported pointer of a
// pool, and by a descriptor of cuMemCreate's. The second process is this program again.
#include <cuda.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "program.hpp"

namespace {

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void add(int* values, int by) { values[threadIdx.x] += by; }

template <class F>
F* driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
  return reinterpret_cast<F*>(function);
}
#define DRIVER(name) driver<decltype(name)>(#name)

int* mapped(CUmemGenericAllocationHandle handle, size_t bytes) {
  CUdeviceptr range = 0;
  CHECK(DRIVER(cuMemAddressReserve)(&range, bytes, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemMap)(range, bytes, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemRelease)(handle) == CUDA_SUCCESS);
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(DRIVER(cuMemSetAccess)(range, bytes, &access, 1) == CUDA_SUCCESS);
  return reinterpret_cast<int*>(range);
}

void unmap(int* values, size_t bytes) {
  const auto range = reinterpret_cast<CUdeviceptr>(values);
  CHECK(DRIVER(cuMemUnmap)(range, bytes) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemAddressFree)(range, bytes) == CUDA_SUCCESS);
}

CUmemAllocationProp properties() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

size_t granularity() {
  size_t bytes = 0;
  const CUmemAllocationProp p = properties();
  CHECK(DRIVER(cuMemGetAllocationGranularity)(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
        CUDA_SUCCESS);
  return bytes;
}

// What one process tells the other, in its environment.
struct Message {
  cudaIpcMemHandle_t allocated;
  cudaIpcEventHandle_t event;
  cudaMemPoolPtrExportData of_pool;
  int pool, descriptor;
};
constexpr const char* kVariable = "PTXSIM_TEST_MESSAGE";

void send(const Message& message) {
  std::string text;
  char digits[3];
  for (const unsigned char byte :
       std::string(reinterpret_cast<const char*>(&message), sizeof message)) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  setenv(kVariable, text.c_str(), 1);
}

Message received() {
  Message message{};
  const char* text = std::getenv(kVariable);
  CHECK(text != nullptr && std::strlen(text) == 2 * sizeof message);
  if (text == nullptr) return message;
  for (size_t i = 0; i < sizeof message; ++i)
    reinterpret_cast<unsigned char*>(&message)[i] =
        static_cast<unsigned char>(std::strtoul(std::string(text + 2 * i, 2).c_str(), nullptr, 16));
  return message;
}

bool are_all(const int* device, int value) {
  int host[kCount];
  CHECK_CUDA(cudaMemcpy(host, device, kBytes, cudaMemcpyDeviceToHost));
  for (const int one : host)
    if (one != value) return false;
  return true;
}

void inherit(int descriptor) {
  fcntl(descriptor, F_SETFD, fcntl(descriptor, F_GETFD) & ~FD_CLOEXEC);
}

}  // namespace

void processes() {
  const size_t granule = granularity();
  int *allocated, *of_pool;
  cudaEvent_t event;
  Message message{};
  CHECK_CUDA(cudaMalloc(&allocated, kBytes));
  CHECK_CUDA(cudaMemset(allocated, 0, kBytes));
  CHECK_CUDA(cudaIpcGetMemHandle(&message.allocated, allocated));
  void* own = nullptr;
  CHECK(cudaIpcOpenMemHandle(&own, message.allocated, cudaIpcMemLazyEnablePeerAccess) !=
        cudaSuccess);  // its own
  cudaGetLastError();
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  CHECK_CUDA(cudaIpcGetEventHandle(&message.event, event));
  cudaMemPoolProps of{};
  of.allocType = cudaMemAllocationTypePinned;
  of.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  of.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool;
  CHECK_CUDA(cudaMemPoolCreate(&pool, &of));
  CHECK_CUDA(cudaMallocFromPoolAsync(&of_pool, kBytes, pool, nullptr));
  CHECK_CUDA(cudaMemsetAsync(of_pool, 0, kBytes, nullptr));
  CHECK_CUDA(cudaMemPoolExportToShareableHandle(&message.pool, pool,
                                                cudaMemHandleTypePosixFileDescriptor, 0));
  CHECK_CUDA(cudaMemPoolExportPointer(&message.of_pool, of_pool));
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp p = properties();
  CHECK(DRIVER(cuMemCreate)(&handle, granule, &p, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemExportToShareableHandle)(&message.descriptor, handle,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                             0) == CUDA_SUCCESS);
  int* by_handle = mapped(handle, granule);
  CHECK_CUDA(cudaMemset(by_handle, 0, kBytes));
  for (int* values : {allocated, of_pool, by_handle}) add<<<1, kCount>>>(values, 1);
  CHECK_CUDA(cudaEventRecord(event, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  inherit(message.pool);
  inherit(message.descriptor);
  send(message);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "program", "processes_second", nullptr);
    _exit(9);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (int* values : {allocated, of_pool, by_handle}) CHECK(are_all(values, 11));
  close(message.pool);
  close(message.descriptor);
  unmap(by_handle, granule);
  CHECK_CUDA(cudaFreeAsync(of_pool, nullptr));
  CHECK_CUDA(cudaMemPoolDestroy(pool));
  CHECK_CUDA(cudaEventDestroy(event));
  CHECK_CUDA(cudaFree(allocated));
}

void processes_second() {
  const size_t granule = granularity();
  Message message = received();
  void *allocated = nullptr, *again = nullptr, *of_pool = nullptr;
  CHECK_CUDA(cudaIpcOpenMemHandle(&allocated, message.allocated, cudaIpcMemLazyEnablePeerAccess));
  CHECK_CUDA(cudaIpcOpenMemHandle(&again, message.allocated, cudaIpcMemLazyEnablePeerAccess));
  CHECK(allocated == again);
  CHECK_CUDA(cudaIpcCloseMemHandle(again));
  cudaEvent_t event;
  CHECK_CUDA(cudaIpcOpenEventHandle(&event, message.event));
  CHECK_CUDA(cudaStreamWaitEvent(nullptr, event, 0));
  cudaMemPool_t pool;
  CHECK_CUDA(cudaMemPoolImportFromShareableHandle(
      &pool, reinterpret_cast<void*>(static_cast<intptr_t>(message.pool)),
      cudaMemHandleTypePosixFileDescriptor, 0));
  CHECK_CUDA(cudaMemPoolImportPointer(&of_pool, pool, &message.of_pool));
  CUmemGenericAllocationHandle handle = 0;
  CHECK(DRIVER(cuMemImportFromShareableHandle)(
            &handle, reinterpret_cast<void*>(static_cast<intptr_t>(message.descriptor)),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS);
  int* by_handle = mapped(handle, granule);
  for (void* memory : {allocated, of_pool, static_cast<void*>(by_handle)}) {
    int* values = static_cast<int*>(memory);
    CHECK(are_all(values, 1));
    add<<<1, kCount>>>(values, 10);
    CHECK(are_all(values, 11));
  }
  CHECK_CUDA(cudaEventDestroy(event));
  unmap(by_handle, granule);
  CHECK_CUDA(cudaFreeAsync(of_pool, nullptr));
  CHECK_CUDA(cudaIpcCloseMemHandle(allocated));
  CHECK(cudaIpcCloseMemHandle(allocated) == cudaErrorInvalidValue);
}
