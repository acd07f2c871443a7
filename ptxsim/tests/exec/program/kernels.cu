// A sum with a barrier too few, a cluster that reads its neighbour's shared memory, and a tile
// through a tensor map.
#include <cooperative_groups.h>
#include <cuda.h>

#include <vector>

#include "program.hpp"

namespace {

__global__ void racy_sum(const int* in, int* out) {
  __shared__ int part[64];
  part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (unsigned half = 32; half > 0; half /= 2) {  // no barrier behind a step
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *out = part[0];
}

__global__ void neighbour(int* out) {
  namespace cg = cooperative_groups;
  __shared__ int own;
  cg::cluster_group pair = cg::this_cluster();
  if (threadIdx.x == 0) own = 100 + static_cast<int>(pair.block_rank());
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  pair.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *pair.map_shared_rank(&own, pair.block_rank() ^ 1);
  pair.sync();
}

constexpr int kRows = 8, kColumns = 16;

__global__ void take_tile(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int tile[kRows * kColumns];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned tile_address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  const unsigned barrier_address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_address));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_address),
                 "r"(static_cast<unsigned>(sizeof tile))
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%2, %3}], [%4];" ::"r"(tile_address),
        "l"(&map), "r"(4), "r"(2), "r"(barrier_address)
        : "memory");
  }
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier_address)
        : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

}  // namespace

void race() {
  int *in, *out;
  CHECK_CUDA(cudaMalloc(&in, 64 * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&out, sizeof(int)));
  CHECK_CUDA(cudaMemset(in, 0, 64 * sizeof(int)));
  racy_sum<<<1, 64>>>(in, out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaFree(in));
  CHECK_CUDA(cudaFree(out));
}

// As often in each launch as it has blocks.
void race_again() {
  int *in, *out;
  CHECK_CUDA(cudaMalloc(&in, 64 * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&out, sizeof(int)));
  CHECK_CUDA(cudaMemset(in, 0, 64 * sizeof(int)));
  racy_sum<<<1, 64>>>(in, out);
  racy_sum<<<2, 64>>>(in, out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaFree(in));
  CHECK_CUDA(cudaFree(out));
}

void cluster() {
  int* out;
  int result[4] = {};
  CHECK_CUDA(cudaMalloc(&out, sizeof result));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {2, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 4;
  config.blockDim = 32;
  config.attrs = attributes;
  config.numAttrs = 2;
  CHECK_CUDA(cudaLaunchKernelEx(&config, neighbour, out));
  CHECK_CUDA(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
  CHECK(result[0] == 101 && result[1] == 100 && result[2] == 101 && result[3] == 100);
  CHECK_CUDA(cudaFree(out));
}

void tensor_map() {
  using Encode =
      CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                   const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                   CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess);
  std::vector<int> matrix(32 * 32), result(kRows * kColumns);
  for (int i = 0; i < 32 * 32; ++i) matrix[i] = i;
  int *device_matrix, *out;
  CHECK_CUDA(cudaMalloc(&device_matrix, matrix.size() * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&out, result.size() * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(device_matrix, matrix.data(), matrix.size() * sizeof(int),
                        cudaMemcpyHostToDevice));
  const cuuint64_t extents[2] = {32, 32}, strides[1] = {32 * sizeof(int)};
  const cuuint32_t box[2] = {kColumns, kRows}, steps[2] = {1, 1};
  CUtensorMap map;
  const auto encode = reinterpret_cast<Encode>(function);
  CHECK(encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, device_matrix, extents, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  take_tile<<<1, kRows * kColumns>>>(map, out);
  CHECK_CUDA(cudaMemcpy(result.data(), out, result.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kRows * kColumns; ++i)
    CHECK(result[i] == (i / kColumns + 2) * 32 + i % kColumns + 4);
  CHECK_CUDA(cudaFree(device_matrix));
  CHECK_CUDA(cudaFree(out));
}
