// What the TMA units deliver: from memory, from L2, and to one SM alone.
#include <fmt/format.h>

#include "bench/probes/kernels.hpp"
#include "bench/probes/matrix.hpp"
#include "bench/probes/probe.hpp"
#include "bench/probes/timing.hpp"

namespace dualgemm::bench {
namespace {

struct Rate {
  const char* name;
  uint32_t blocks, columns;  // of the matrix
  bool one_sm;
  uint32_t copies;  // of a CTA
};
constexpr Rate kRates[] = {{"memory to all SMs", 1024, 32, false, 200},  // 1 GiB
                           {"L2 to all SMs", 512, 1, false, 1000},       // 16 MiB
                           {"L2 to one SM", 512, 1, true, 4000}};
constexpr uint32_t kStages[] = {1, 2, 3, 6};

}  // namespace

Expected<std::vector<Reading>> probe_copy_rates(const ProbeSettings& settings) {
  std::vector<Reading> readings;
  for (const Rate& rate : kRates) {
    auto matrix =
        settings.brief ? CopiedMatrix::make(2, 2) : CopiedMatrix::make(rate.blocks, rate.columns);
    if (!matrix) return matrix.status();
    const uint32_t copies = settings.brief ? 4 : rate.copies;
    const auto ctas = static_cast<uint32_t>(rate.one_sm      ? 1
                                            : settings.brief ? 2
                                                             : settings.caps.num_sms);
    for (const uint32_t stages : kStages) {
      const CopyParams params{matrix->map, copies, stages, matrix->blocks, matrix->columns};
      const auto launch = copy_launch(params, ctas);
      if (launch.dynamic_smem_bytes > smem_of_cta(settings.caps)) continue;
      const auto seconds = seconds_in_graph(launch, 1, settings.brief ? 1 : 5);
      if (!seconds) return seconds.status();
      readings.push_back(
          {fmt::format("{}, {} KiB in flight an SM", rate.name, stages * kStageBytes >> 10),
           static_cast<double>(kStageBytes) * copies * ctas / *seconds * 1e-9, "GB/s"});
    }
  }
  return readings;
}

}  // namespace dualgemm::bench
