#include "bench/probes/kernels.hpp"
#include "cuda/ptx/cp_async_bulk.cuh"

namespace dualgemm::bench {
namespace {

namespace ptx = cuda::ptx;

constexpr int kAlignment = 1024;  // of a 128-byte swizzle atom

template <int kStages>
struct CopySmem {
  ptx::Barrier full[kStages];
  alignas(kAlignment) uint8_t stages[kStages][kStageBytes];  // of which the last may be missing
};
template <int kStages>
constexpr uint32_t kSmemBytes = sizeof(CopySmem<kStages>) + kAlignment;

template <int kStages>
DUALGEMM_DEVICE CopySmem<kStages>& aligned_smem() {
  extern __shared__ uint8_t dynamic_smem[];
  const uint32_t misaligned = ptx::shared_address(dynamic_smem) % kAlignment;
  return *reinterpret_cast<CopySmem<kStages>*>(dynamic_smem +
                                               (kAlignment - misaligned) % kAlignment);
}

DUALGEMM_DEVICE void copy_stage(uint8_t* stage, const cuda::TensorMap& map, uint32_t column,
                                uint32_t block, ptx::Barrier* full) {
  const ptx::CachePolicy policy = ptx::createpolicy_evict_first();
  ptx::mbarrier_arrive_expect_tx(full, kStageBytes);
#pragma unroll
  for (int box = 0; box < kStageRows / kBoxRows; ++box) {
    ptx::cp_async_bulk_tensor_3d(
        stage + box * kBoxRows * kRowBytes, &map, static_cast<int32_t>(column),
        static_cast<int32_t>(block * kStageRows + box * kBoxRows), 0, full, policy);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32)
    probe_first_bytes(const __grid_constant__ FirstBytesParams p) {
  const auto entry = static_cast<uint32_t>(clock64());
  auto& smem = aligned_smem<3>();
  if (threadIdx.x != 0) return;
  if (p.prefetches) ptx::prefetch_tensormap(&p.map);
  for (ptx::Barrier& full : smem.full) ptx::mbarrier_init(&full, 1);
  ptx::fence_mbarrier_init();
  FirstBytesSeen seen;
  uint32_t begin = static_cast<uint32_t>(clock64());
  seen.until_issue = begin - entry;
#pragma unroll
  for (int copy = 0; copy < 3; ++copy) {
    const uint32_t column = static_cast<uint32_t>(p.column) + (copy == 0 ? 0 : kRowBytes);
    copy_stage(smem.stages[copy], p.map, column, blockIdx.x, &smem.full[copy]);
    ptx::mbarrier_wait_parity(&smem.full[copy], 0);
    const auto end = static_cast<uint32_t>(clock64());
    (copy == 0 ? seen.first : copy == 1 ? seen.other : seen.again) = end - begin;
    begin = end;
  }
  p.seen[blockIdx.x] = seen;
}

extern "C" __global__ void __launch_bounds__(32)
    probe_copies(const __grid_constant__ CopyParams p) {
  auto& smem = aligned_smem<kMostStages>();
  if (threadIdx.x != 0) return;
  for (ptx::Barrier& full : smem.full) ptx::mbarrier_init(&full, 1);
  ptx::fence_mbarrier_init();
  const uint32_t tiles = p.blocks * p.columns;
  uint32_t tile = blockIdx.x % tiles, slot = 0, parity = 0;
#pragma unroll 1
  for (uint32_t copy = 0; copy < p.copies + p.stages; ++copy) {
    if (copy >= p.stages) ptx::mbarrier_wait_parity(&smem.full[slot], parity ^ 1);
    if (copy < p.copies) {
      copy_stage(smem.stages[slot], p.map, tile / p.blocks * kRowBytes, tile % p.blocks,
                 &smem.full[slot]);
      tile = (tile + gridDim.x) % tiles;
    }
    if (++slot == p.stages) slot = 0, parity ^= 1;
  }
}

cuda::KernelLaunch first_bytes_launch(const FirstBytesParams& params, uint32_t ctas) {
  cuda::KernelLaunch launch{
      .kernel = {"copies", "probe_first_bytes", reinterpret_cast<const void*>(&probe_first_bytes)},
      .ctas = ctas,
      .threads = 32,
      .dynamic_smem_bytes = kSmemBytes<3>};
  launch.set_params(params);
  return launch;
}

cuda::KernelLaunch copy_launch(const CopyParams& params, uint32_t ctas) {
  cuda::KernelLaunch launch{
      .kernel = {"copies", "probe_copies", reinterpret_cast<const void*>(&probe_copies)},
      .ctas = ctas,
      .threads = 32,
      .dynamic_smem_bytes = kSmemBytes<kMostStages> - (kMostStages - params.stages) * kStageBytes};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::bench
