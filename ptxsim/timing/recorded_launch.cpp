#include "ptxsim/timing/recorded_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "ptxsim/machine/cta.hpp"
#include "ptxsim/timing/recorder.hpp"

namespace ptxsim::timing {
namespace {

// CUDA C++ Programming Guide, "Compute Capabilities": of an SM of sm_90 and sm_100.
constexpr uint64_t kSharedOfSm = 228 * 1024, kReservedOfCta = 1024, kThreadsOfSm = 2048,
                   kMostCtas = 32;

// Registers are not known: ptxas divides them.
uint64_t ctas_per_sm(const Program& program, const Launch& launch) {
  const uint64_t shared =
      program.static_shared_bytes + launch.dynamic_shared_bytes + kReservedOfCta;
  const uint64_t threads = (volume(launch.block) + kWarpSize - 1) / kWarpSize * kWarpSize;
  return std::max<uint64_t>(1, std::min({kSharedOfSm / shared, kThreadsOfSm / threads, kMostCtas}));
}

// Stops the run when the last cluster that is to be recorded has ended.
class LastCluster : public Observer {
 public:
  explicit LastCluster(std::atomic<bool>* stop) : stop_(stop) {}
  void cluster_ended() override { *stop_ = true; }

 private:
  std::atomic<bool>* stop_;
};

}  // namespace

Result<LaunchWork> record(const Case& description, std::shared_ptr<const Program> program,
                          const RecordOptions& options) {
  Launch launch = description.launch;
  try {
    check_launch(*program, launch);
  } catch (const Fault& fault) {
    return fault.error();
  }
  const uint64_t clusters = volume(launch.grid) / volume(launch.cluster);
  const std::set<uint32_t> recorded(options.clusters.begin(), options.clusters.end());
  if (recorded.empty() || *recorded.rbegin() >= clusters)
    return Error{ErrorKind::kInput,
                 fmt::format("cluster {} of a grid of {}; they count from 0",
                             recorded.empty() ? "" : std::to_string(*recorded.rbegin()), clusters),
                 {}};
  auto recording = std::make_shared<Recording>();
  std::atomic<bool> stop = false;
  Options run;
  run.sanitize = run.check_global = run.check_uninitialized = false;
  run.mma = MmaMode::kRounded;
  run.stop = &stop;
  if (!options.whole_grid) run.resident_clusters = 1;
  const MakeObserver make = make_recorder(recording);
  const CaseResult result = run_case(
      description, program, run,
      {[&](Cluster& cluster) -> std::unique_ptr<Observer> {
         return recorded.contains(cluster.index) ? make(cluster) : std::make_unique<Observer>();
       },
       [&](Cluster& cluster) -> std::unique_ptr<Observer> {
         if (options.whole_grid || cluster.index < *recorded.rbegin())
           return std::make_unique<Observer>();
         return std::make_unique<LastCluster>(&stop);
       }});
  const auto& error = result.run.error;
  if (error && !(error->kind == ErrorKind::kStopped && stop)) return *error;
  count_memory_once(*recording, result.memory, static_cast<double>(clusters));
  LaunchWork work;
  work.name = program->entry->name;
  work.clusters = static_cast<double>(clusters);
  work.ctas_per_cluster = static_cast<double>(volume(launch.cluster));
  work.ctas_per_sm = static_cast<double>(ctas_per_sm(*program, launch));
  for (RecordedCluster& cluster : recording->clusters)
    work.classes.push_back({fmt::format("cluster {}", cluster.index), std::move(cluster.work)});
  return work;
}

}  // namespace ptxsim::timing
