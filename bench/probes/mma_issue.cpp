// Clocks of an mma.sync with other instructions beside it: whether a scheduler issues them while
// the tensor cores are busy. On an H200 it does not (docs/lab/sm80.md).
#include <fmt/format.h>

#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "bench/probes/timing.hpp"
#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::bench {

Expected<std::vector<Reading>> probe_mma_issue(const ProbeSettings& settings) {
  auto memory = cuda::DeviceMemory::allocate(8, "clocks");
  if (!memory) return memory.status();
  const uint32_t rounds = settings.brief ? 1 : 200;
  std::vector<Reading> readings;
  for (const int others : {0, 2, 4}) {
    for (uint32_t warps = 1; warps <= 4; ++warps) {  // of a scheduler; an SM has four
      const MmaIssueParams params{rounds, 0x5410, reinterpret_cast<uint64_t*>(memory->data())};
      const auto clocks = median_clocks(mma_issue_launch(params, others, 4 * warps), *memory,
                                        settings.brief ? 1 : 9);
      if (!clocks) return clocks.status();
      const double mmas = static_cast<double>(rounds) * kMmasOfRound * warps;
      readings.push_back({fmt::format("an MMA and {} others, {} warp{} a scheduler", others, warps,
                                      warps == 1 ? "" : "s"),
                          *clocks / mmas, "clk"});
    }
  }
  return readings;
}

}  // namespace dualgemm::bench
