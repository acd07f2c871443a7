#include "bench/probes/kernels.hpp"
#include "cuda/ptx/mma_sync.cuh"

namespace dualgemm::bench {
namespace {

constexpr int kSums = 16, kLanes = 8;

// Sixteen MMAs, each with a sum of its own, and behind each kOthers byte permutations: nothing
// waits for a result.
template <int kOthers>
DUALGEMM_DEVICE void sixteen(float (&sums)[kSums][4], const uint32_t (&a)[4],
                             const uint32_t (&b)[2], uint32_t (&others)[kLanes],
                             uint32_t selector) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    cuda::ptx::mma_m16n8k16<true>(sums[i], a, b);
#pragma unroll
    for (int j = 0; j < kOthers; ++j) {
      uint32_t& other = others[(i * kOthers + j) % kLanes];
      asm volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(other) : "r"(a[j % 4]), "r"(selector));
    }
  }
}

template <int kOthers>
DUALGEMM_DEVICE void issue_mmas(const MmaIssueParams& p) {
  float sums[kSums][4] = {};
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t a[4] = {lane, lane + 1, lane + 2, lane + 3}, b[2] = {lane, lane + 5};
  uint32_t others[kLanes] = {lane, lane, lane, lane, lane, lane, lane, lane};
  __syncthreads();
  const int64_t begin = clock64();
#pragma unroll 1
  for (uint32_t round = 0; round < p.rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmasOfRound / kSums; ++i) sixteen<kOthers>(sums, a, b, others, p.selector);
  }
  const int64_t end = clock64();
  float total = 0;
  for (const auto& four : sums)
    for (const float sum : four) total += sum;
  for (const uint32_t other : others) total += static_cast<float>(other);
  if (threadIdx.x == 0) *p.clocks = static_cast<uint64_t>(end - begin);
  if (total == -1.0f) *p.clocks = 0;  // never: keeps the results
}

}  // namespace

#define DUALGEMM_MMA_ISSUE(others)                                         \
  extern "C" __global__ void __launch_bounds__(512)                        \
      probe_mma_issue_##others(const __grid_constant__ MmaIssueParams p) { \
    issue_mmas<others>(p);                                                 \
  }
DUALGEMM_MMA_ISSUE(0)
DUALGEMM_MMA_ISSUE(2)
DUALGEMM_MMA_ISSUE(4)

cuda::KernelLaunch mma_issue_launch(const MmaIssueParams& params, int others, uint32_t warps) {
  cuda::KernelLaunch launch{.ctas = 1, .threads = 32 * warps};
  if (others == 0) {
    launch.kernel = {"mma_issue", "probe_mma_issue_0",
                     reinterpret_cast<const void*>(&probe_mma_issue_0)};
  } else if (others == 2) {
    launch.kernel = {"mma_issue", "probe_mma_issue_2",
                     reinterpret_cast<const void*>(&probe_mma_issue_2)};
  } else {
    launch.kernel = {"mma_issue", "probe_mma_issue_4",
                     reinterpret_cast<const void*>(&probe_mma_issue_4)};
  }
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::bench
