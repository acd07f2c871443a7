#include "bench/probes/kernels.hpp"
#include "cuda/ptx/mma_nvf4.cuh"

namespace dualgemm::bench {
namespace {

#if DUALGEMM_TARGET_SM120
constexpr int kSums = 8;

// MMAs with a sum each, operands in registers: nothing waits for a result or for memory.
DUALGEMM_DEVICE void multiply(const MmaNvf4Params& p) {
  float sums[kSums][4] = {};
  const uint32_t lane = threadIdx.x % 32;  // any codes: what is multiplied costs power
  const uint32_t a[4] = {lane * 0x9E3779B9u, lane * 0x85EBCA6Bu, lane * 0xC2B2AE35u,
                         lane * 0x27D4EB2Fu};
  const uint32_t b[2] = {lane * 0x165667B1u, lane * 0xD3A2646Cu};
  const uint32_t scales = 0x38383838;  // 1
  __syncthreads();
  const int64_t begin = clock64();
#pragma unroll 1
  for (uint32_t round = 0; round < p.rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmasOfRound; ++i)
      cuda::ptx::mma_nvf4<0, 0>(sums[i % kSums], a, b, scales, scales);
  }
  const int64_t end = clock64();
  float total = 0;
  for (const auto& four : sums)
    for (const float sum : four) total += sum;
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.clocks = static_cast<uint64_t>(end - begin);
  if (total == -1.0f) *p.clocks = 0;  // never: keeps the results
}
#else
DUALGEMM_DEVICE void multiply(const MmaNvf4Params&) { __trap(); }
#endif

extern "C" __global__ void __launch_bounds__(512)
    probe_mma_nvf4(const __grid_constant__ MmaNvf4Params p) {
  multiply(p);
}

}  // namespace

cuda::KernelLaunch mma_nvf4_launch(const MmaNvf4Params& params, uint32_t ctas, uint32_t warps) {
  cuda::KernelLaunch launch{
      .kernel = {"mma_nvf4", "probe_mma_nvf4", reinterpret_cast<const void*>(&probe_mma_nvf4)},
      .ctas = ctas,
      .threads = 32 * warps};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::bench
