#include "fake_cuda/launch_clock.hpp"

#include "machine/cta.hpp"
#include "timing/launch_work.hpp"

namespace ptxsim::cuda {

std::optional<LaunchClock> LaunchClock::of(const std::string& device) {
  const std::string_view text = timing::built_in_parameters(device);
  if (text.empty()) return std::nullopt;
  Result<timing::GpuParameters> gpu = timing::parse_parameters(text, device);
  if (!gpu.ok()) return std::nullopt;
  LaunchClock clock;
  clock.values_ = gpu->values();
  return clock;
}

std::vector<MakeObserver> LaunchClock::begin(const Program& program, const Launch& launch) {
  share_ = timing::share_of(program, launch, values_);
  recording_ = std::make_shared<timing::Recording>();
  const MakeObserver make =
      timing::make_recorder(recording_, static_cast<uint64_t>(share_.l1_bytes));
  return {[make](Cluster& cluster) -> std::unique_ptr<Observer> {
    return cluster.index == 0 ? make(cluster) : std::make_unique<Observer>();
  }};
}

std::optional<double> LaunchClock::estimate(const Program& program, const Launch& launch,
                                            const GlobalMemory& memory) {
  if (recording_ == nullptr || recording_->clusters.empty()) return std::nullopt;
  const timing::LaunchWork work =
      timing::work_of(program, launch, memory, share_.ctas_per_sm, *recording_);
  recording_.reset();
  return timing::time_of(work, values_).total;
}

}  // namespace ptxsim::cuda
