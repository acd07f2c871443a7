// Clocks of an mma.sync with other instructions beside it: whether a scheduler issues them while
// the tensor cores are busy. On an H200 it does not (docs/lab/sm80.md).
#include <fmt/format.h>

#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "tools/measure/median.hpp"

namespace dualgemm::bench {

Expected<std::vector<Reading>> probe_mma_issue(const ProbeSettings& settings) {
  auto memory = cuda::DeviceMemory::allocate(8, "clocks");
  if (!memory) return memory.status();
  const uint32_t rounds = settings.brief ? 1 : 200;
  std::vector<Reading> readings;
  for (const int others : {0, 2, 4}) {
    for (uint32_t warps = 1; warps <= 4; ++warps) {  // of a scheduler; an SM has four
      const MmaIssueParams params{rounds, 0x5410, reinterpret_cast<uint64_t*>(memory->data())};
      std::vector<double> all;
      for (int round = 0; round < (settings.brief ? 1 : 9); ++round) {
        DUALGEMM_TRY(cuda::enqueue(mma_issue_launch(params, others, 4 * warps), nullptr));
        DUALGEMM_TRY(cuda::synchronize(nullptr));
        uint64_t once = 0;
        DUALGEMM_TRY(memory->download(&once));
        all.push_back(static_cast<double>(once));
      }
      const double mmas = static_cast<double>(rounds) * kMmasOfRound * warps;
      readings.push_back({fmt::format("an MMA and {} others, {} warp{} a scheduler", others, warps,
                                      warps == 1 ? "" : "s"),
                          measure::median(std::move(all)) / mmas, "clk"});
    }
  }
  return readings;
}

}  // namespace dualgemm::bench
