// The rate of the block-scaled mma.sync of E2M1 with operands in registers: clocks of one on a
// scheduler, and what all SMs multiply in a second, which power may limit.
#include <fmt/format.h>

#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "bench/probes/timing.hpp"
#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::bench {
namespace {

constexpr double kFlopsOfMma = 2.0 * 16 * 8 * 64;

}  // namespace

Expected<std::vector<Reading>> probe_mma_nvf4(const ProbeSettings& settings) {
  DUALGEMM_TRY(
      check_capability(settings, 12, "mma.sync with block scales exists on 12.0 and 12.1"));
  auto memory = cuda::DeviceMemory::allocate(8, "clocks");
  if (!memory) return memory.status();
  auto* const clocks = reinterpret_cast<uint64_t*>(memory->data());
  std::vector<Reading> readings;
  const uint32_t rounds = settings.brief ? 1 : 200;
  for (uint32_t warps = 1; warps <= 4; ++warps) {  // of a scheduler; an SM has four
    const auto taken = median_clocks(mma_nvf4_launch({rounds, clocks}, 1, 4 * warps), *memory,
                                     settings.brief ? 1 : 9);
    if (!taken) return taken.status();
    readings.push_back({fmt::format("an MMA, {} warp{} a scheduler", warps, warps == 1 ? "" : "s"),
                        *taken / (static_cast<double>(rounds) * kMmasOfRound * warps), "clk"});
  }
  const auto ctas = static_cast<uint32_t>(settings.brief ? 2 : settings.caps.num_sms);
  const uint32_t many = settings.brief ? 1 : 4000, warps = 16;  // 4 ms at 16 clocks an MMA
  const auto seconds = seconds_in_stream(mma_nvf4_launch({many, clocks}, ctas, warps),
                                         settings.brief ? 1 : 5, settings.brief ? 1 : 9);
  if (!seconds) return seconds.status();
  const double mmas = static_cast<double>(many) * kMmasOfRound * warps * ctas;
  readings.push_back({"all SMs multiply", mmas * kFlopsOfMma / *seconds * 1e-12, "TFLOP/s"});
  return readings;
}

}  // namespace dualgemm::bench
