// How fast the SMs' clock runs by the nanosecond timer, and how fine that and the events' timer
// are.
#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "bench/probes/timing.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "tools/measure/median.hpp"

namespace dualgemm::bench {
namespace {

Expected<double> gigahertz(const ProbeSettings& settings, uint32_t ctas, bool multiplies) {
  auto seen = cuda::DeviceMemory::allocate(static_cast<int64_t>(ctas * sizeof(Clocks)), "clocks");
  if (!seen) return seen.status();
  SpinParams spin{};
  spin.clocks = settings.brief ? 20 : 20'000'000;  // 10 ms
  spin.multiplies = multiplies;
  spin.seen = reinterpret_cast<Clocks*>(seen->data());
  DUALGEMM_TRY(
      cuda::enqueue(spin_launch(spin, ctas, settings.brief ? 32 : 1024, 0, false), nullptr));
  DUALGEMM_TRY(cuda::synchronize(nullptr));
  std::vector<Clocks> clocks(ctas);
  DUALGEMM_TRY(seen->download(clocks.data()));
  std::vector<double> rates;
  for (const Clocks& c : clocks) {
    rates.push_back(static_cast<double>(c.clock_end - c.clock_begin) /
                    static_cast<double>(c.timer_end - c.timer_begin));
  }
  return measure::median(std::move(rates));
}

}  // namespace

Expected<std::vector<Reading>> probe_clocks(const ProbeSettings& settings) {
  const auto sms = static_cast<uint32_t>(settings.brief ? 2 : settings.caps.num_sms);
  std::vector<Reading> readings;
  for (const bool multiplies : {false, true}) {
    const auto rate = gigahertz(settings, sms, multiplies);
    if (!rate) return rate.status();
    readings.push_back(
        {multiplies ? "SM clock, all SMs multiply" : "SM clock, all SMs spin", *rate, "GHz"});
  }
  auto step = cuda::DeviceMemory::allocate(8, "step");
  if (!step) return step.status();
  const TimerStepParams reads{settings.brief ? 100u : 100'000u,
                              reinterpret_cast<uint64_t*>(step->data())};
  DUALGEMM_TRY(cuda::enqueue(timer_step_launch(reads), nullptr));
  DUALGEMM_TRY(cuda::synchronize(nullptr));
  uint64_t nanoseconds = 0;
  DUALGEMM_TRY(step->download(&nanoseconds));
  readings.push_back({"step of the nanosecond timer", static_cast<double>(nanoseconds), "ns"});
  const auto events = event_step(settings.brief ? 4 : 400);
  if (!events) return events.status();
  readings.push_back({"step of CUDA events", *events * 1e6, "us"});
  return readings;
}

}  // namespace dualgemm::bench
