// Step 6: Hopper's units. One thread of a warp of its own asks the TMA unit for whole tiles. Two
// warpgroups decode and multiply with `wgmma`: 64 rows of weights from registers by 64 rows of A
// from shared memory. mbarriers hand stages over. `wgmma` reads A by itself, so A has been copied.
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "tour/hopper_stage.cuh"
#include "tour/problem.cuh"

namespace tour {
namespace {

using namespace dualgemm::cuda::ptx;

__device__ void produce(const Maps& maps, uint32_t tiles, uint32_t row0, uint32_t col0,
                        Ring& ring) {
  const CachePolicy policy = createpolicy_evict_first();
  for (uint32_t t = 0; t < tiles; ++t) {
    const uint32_t s = t % kStages, k = t * kTileK;
    Stage& stage = ring.stages[s];
    if (t >= kStages) mbarrier_wait_parity(&ring.empty[s], (t / kStages - 1) % 2);
    mbarrier_arrive_expect_tx(&ring.full[s], sizeof(Stage));
    const auto copy = [&](void* to, const CUtensorMap& map, uint32_t x, uint32_t row) {
      cp_async_bulk_tensor_3d(to, &map, x, row, 0, &ring.full[s], policy);
    };
    for (uint32_t part = 0; part < kTileK / 64; ++part)
      copy(stage.a[part], maps.a, k + 64 * part, row0);
    for (uint32_t up = 0; up < 2; ++up) {
      copy(stage.weights[up], maps.weights[up], k / 2, col0);
      copy(stage.scales[up], maps.scales[up], k / 16, col0);
    }
  }
}

// The registers of instructions 8 * half ... 8 * half + 7 of a k-tile.
__device__ void decode(const Stage& stage, uint32_t row, uint32_t half, uint32_t (&w)[8][4]) {
#pragma unroll
  for (int up = 0; up < 2; ++up) {
    const uint4 codes = stage.weights[up][row][(threadIdx.x % 4 * 2 + half) ^ row % 8];
    const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (int i = 0; i < 16; ++i)
      w[i / 2][i % 2 * 2 + up] =
          weights_of(place_pair(words[i / 4], i % 4),
                     scale_pair(stage.scales[up][row][threadIdx.x % 4 * 4 + 2 * half + i / 8]));
  }
}

__device__ void consume(const Problem& p, uint32_t row0, uint32_t col0, Ring& ring) {
  const uint32_t lane = threadIdx.x % 32, col = threadIdx.x / 32 * 8 + lane / 4;
  float sums[kTileM / 2] = {};
  uint32_t w[2][8][4], t = 0;
  do {  // a `for` that may end at once makes the compiler wait for each wgmma (ptxas's C7515)
    Stage& stage = ring.stages[t % kStages];
    mbarrier_wait_parity(&ring.full[t % kStages], t / kStages % 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      decode(stage, col, half, w[half]);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 8; ++i)
        wgmma_m64k16<false, kTileM, kDescriptorHigh>(
            sums, w[half][i], shared_address(stage.a[2 * half + i / 4]) / 16 + i % 4 * 2);
      wgmma_commit_group();
      wgmma_wait_group<1>();  // the registers of the other half may be written again
      __syncwarp();           // the tile before has ended in all lanes: its stage is free
      if (half == 0 && t > 0 && lane == 0) mbarrier_arrive(&ring.empty[(t - 1) % kStages]);
      __syncwarp();
    }
  } while (++t < p.k / kTileK);
  wgmma_wait_group<0>();
  pin_registers(sums);
  for (uint32_t i = 0; i < kTileM / 4; ++i)
    store(p, row0 + i / 2 * 8 + lane % 4 * 2 + i % 2, col0 + col, sums[i / 2 * 4 + i % 2],
          sums[i / 2 * 4 + 2 + i % 2]);
}

__global__ void __launch_bounds__(kThreads, 1) fused(Problem p, const __grid_constant__ Maps maps) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Ring& ring = *reinterpret_cast<Ring*>(memory);
  const uint32_t row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  initialize(ring);
  if (threadIdx.x < kConsumers) {
    consume(p, row0, col0, ring);
  } else if (threadIdx.x == kConsumers) {
    produce(maps, p.k / kTileK, row0, col0, ring);
  }
}

}  // namespace

void hopper(const Problem& p, cudaStream_t stream) {
  __half* const a = static_cast<__half*>(p.workspace);
  prepare<<<(size_t{p.m} * p.k + 255) / 256, 256, 0, stream>>>(p, a);
  cudaFuncSetAttribute(fused, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Ring));
  fused<<<dim3(p.n / kTileN, (p.m + kTileM - 1) / kTileM), kThreads, sizeof(Ring), stream>>>(
      p, make_maps(p, a));
}

}  // namespace tour
