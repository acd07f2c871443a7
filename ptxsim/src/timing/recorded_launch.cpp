#include "timing/recorded_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "machine/cta.hpp"
#include "timing/expansion.hpp"
#include "timing/launch_work.hpp"

namespace ptxsim::timing {
namespace {

// Stops the run when the last cluster that is to be recorded has ended.
class LastCluster : public Observer {
 public:
  explicit LastCluster(std::atomic<bool>* stop) : stop_(stop) {}
  void cluster_ended() override { *stop_ = true; }

 private:
  std::atomic<bool>* stop_;
};

// How many clusters stand for all.
constexpr uint32_t kSampled = 3;

bool takes_work(const Program& program) {
  const std::vector<Statement>& statements = program.entry->statements;
  return std::any_of(statements.begin(), statements.end(),
                     [](const Statement& s) { return form_of(s) == Form::kTakesWork; });
}

}  // namespace

Result<LaunchWork> record(const Case& description, const std::shared_ptr<const Program>& program,
                          const Values& gpu, const RecordOptions& options) {
  if (!description.launches.empty())
    return Error{ErrorKind::kInput, "the case has several launches; the clock takes one", {}};
  Launch launch = description.launch;
  try {
    check_launch(*program, launch);
  } catch (const Fault& fault) {
    return fault.error();
  }
  const uint64_t clusters = volume(launch.grid) / volume(launch.cluster);
  std::set<uint32_t> recorded(options.clusters.begin(), options.clusters.end());
  if (!recorded.empty() && *recorded.rbegin() >= clusters)
    return Error{
        ErrorKind::kInput,
        fmt::format("cluster {} of a grid of {}; they count from 0", *recorded.rbegin(), clusters),
        {}};
  const SmShare share = share_of(*program, launch, gpu);
  auto recording = std::make_shared<Recording>();
  std::atomic<bool> stop = false;
  Options run;
  run.sanitize = run.check_global = run.check_uninitialized = false;
  run.mma = MmaMode::kRounded;
  run.stop = &stop;
  if (!options.whole_grid) run.resident_clusters = 1;
  const bool is_sampled = recorded.empty() && !options.whole_grid && !takes_work(*program);
  if (is_sampled)
    run.sample = kSampled;
  else if (recorded.empty())
    recorded.insert(0);
  // With an SM for each CTA no CTA takes another's work at run time.
  run.all_clusters_started = volume(launch.grid) <= run.num_sms;
  const MakeObserver make = make_recorder(recording, static_cast<uint64_t>(share.l1_bytes),
                                          options.costs ? options.costs : costs_of(*program));
  const CaseResult result = run_case(
      description, program, run,
      {[&](Cluster& cluster) -> std::unique_ptr<Observer> {
         return is_sampled || recorded.contains(cluster.index) ? make(cluster)
                                                               : std::make_unique<Observer>();
       },
       [&](Cluster& cluster) -> std::unique_ptr<Observer> {
         if (is_sampled || options.whole_grid || cluster.index < *recorded.rbegin())
           return std::make_unique<Observer>();
         return std::make_unique<LastCluster>(&stop);
       }});
  const auto& error = result.run.error;
  if (error && !(error->kind == ErrorKind::kStopped && stop)) return *error;
  return work_of(*program, launch, result.memory, share.ctas_per_sm, *recording);
}

}  // namespace ptxsim::timing
