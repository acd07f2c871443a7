#include "fake_cuda/launch_clock.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "machine/cta.hpp"
#include "timing/launch_work.hpp"

namespace ptxsim::cuda {
namespace {

// As `ptxsim time` has it, but for launches of so many pieces of work that it would take a minute.
constexpr uint32_t kDraws = 200, kFewestDraws = 20;
constexpr size_t kPiecesOfAllDraws = 20'000'000;

uint32_t draws_of(const timing::LaunchWork& work) {
  size_t pieces = 1;
  for (const timing::TileClass& c : work.classes) pieces += c.work.pieces.size();
  return std::clamp(static_cast<uint32_t>(kPiecesOfAllDraws / pieces), kFewestDraws, kDraws);
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

std::optional<LaunchClock> LaunchClock::of(const std::string& device, const std::string& gpu_file,
                                           std::string sass, bool all_that_run) {
  const std::string text =
      gpu_file.empty() ? std::string(timing::built_in_parameters(device)) : text_of(gpu_file);
  if (text.empty()) return std::nullopt;
  Result<timing::GpuParameters> gpu = timing::parse_parameters(text, device);
  if (!gpu.ok()) return std::nullopt;
  LaunchClock clock;
  clock.gpu_ = std::move(*gpu);
  clock.sass_ = std::move(sass);
  clock.all_that_run_ = all_that_run;
  return clock;
}

std::shared_ptr<const KernelCosts> LaunchClock::costs_of(const Kernel& kernel,
                                                         const Program& program) {
  auto& known = counted_[kernel.module->text()][kernel.entry->name];
  if (known == nullptr) {
    KernelCosts costs;
    auto counted = timing::costs_by(sass_, kernel.module->text(), program);
    if (counted.ok())
      costs.counted = std::move(*counted);
    else
      costs.refusal = counted.error().message;
    known = std::make_shared<const KernelCosts>(std::move(costs));
  }
  return known;
}

std::vector<MakeObserver> LaunchClock::begin(Kernel& kernel, const Program& program,
                                             const Launch& launch) {
  recording_.reset();
  if (kernel.costs == nullptr) kernel.costs = costs_of(kernel, program);
  if (!kernel.costs->refusal.empty()) return {};
  instructions_ = kernel.costs->counted.counts;
  share_ = timing::share_of(program, launch, gpu_.values());
  recording_ = std::make_shared<timing::Recording>();
  const MakeObserver make = timing::make_recorder(
      recording_, static_cast<uint64_t>(share_.l1_bytes), kernel.costs->counted.costs);
  return {[make, all = all_that_run_](Cluster& cluster) -> std::unique_ptr<Observer> {
    return all || cluster.index == 0 ? make(cluster) : std::make_unique<Observer>();
  }};
}

std::optional<LaunchEstimate> LaunchClock::estimate(const Program& program, const Launch& launch,
                                                    const GlobalMemory& memory) {
  if (recording_ == nullptr || recording_->clusters.empty()) return std::nullopt;
  const timing::LaunchWork work =
      timing::work_of(program, launch, memory, share_.ctas_per_sm, *recording_);
  recording_.reset();
  LaunchEstimate told{timing::time_of(work, gpu_.values()), {}, {}, instructions_};
  const timing::Work& slowest = work.classes[told.time.slowest].work;
  told.path = timing::shares_of(timing::critical_path(slowest, told.time.timeline));
  if (all_that_run_) told.interval = timing::interval_of(work, gpu_, draws_of(work), 1);
  return told;
}

}  // namespace ptxsim::cuda
