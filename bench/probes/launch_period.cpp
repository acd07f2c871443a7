// From the begin of one grid to that of the next, less what the grid does: two lengths of a spin
// tell the one from the other, and how fast the clock runs.
#include <algorithm>
#include <array>

#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "bench/probes/timing.hpp"

namespace dualgemm::bench {
namespace {

// The grid of a kernel of ours with four or five stages: one CTA an SM, six warps each.
constexpr uint32_t kCtas = 128, kThreads = 192, kSmemBytes = 200 << 10;
constexpr std::array<uint64_t, 2> kClocks{8000, 24000}, kFewClocks{10, 20};

struct Way {
  const char* name;
  bool graph, overlaps;
};
constexpr Way kWays[] = {{"stream", false, false},
                         {"stream, overlapping", false, true},
                         {"graph", true, false},
                         {"graph, overlapping", true, true}};

}  // namespace

Expected<std::vector<Reading>> probe_launch_period(const ProbeSettings& settings) {
  const int calls = settings.brief ? 2 : 100, rounds = settings.brief ? 1 : 15;
  const uint32_t ctas = settings.brief ? 2 : std::min<uint32_t>(kCtas, settings.caps.num_sms);
  const auto& lengths = settings.brief ? kFewClocks : kClocks;
  const auto smem =
      static_cast<uint32_t>(std::min<int64_t>(kSmemBytes, smem_of_cta(settings.caps)));
  std::vector<Reading> readings;
  for (const Way& way : kWays) {
    std::array<double, 2> period{};
    for (size_t i = 0; i < lengths.size(); ++i) {
      SpinParams spin{};
      spin.clocks = lengths[i];
      const cuda::KernelLaunch launch = spin_launch(spin, ctas, kThreads, smem, way.overlaps);
      const auto seconds = way.graph ? seconds_in_graph(launch, calls, rounds)
                                     : seconds_in_stream(launch, calls, rounds);
      if (!seconds) return seconds.status();
      period[i] = *seconds;
    }
    const double clocks = static_cast<double>(lengths[1] - lengths[0]);
    const double hertz = clocks / (period[1] - period[0]);
    readings.push_back({std::string("launch period less the kernel, ") + way.name,
                        (period[0] - static_cast<double>(lengths[0]) / hertz) * 1e6, "us"});
    readings.push_back({std::string("SM clock, ") + way.name, hertz * 1e-9, "GHz"});
  }
  return readings;
}

}  // namespace dualgemm::bench
