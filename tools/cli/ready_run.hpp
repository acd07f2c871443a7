// A problem with everything that run() needs: plan, prepared weights, workspace.
#pragma once

#include "dualgemm/dualgemm.hpp"
#include "tools/cli/options.hpp"
#include "tools/verify/device_run.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::cli {

// ok, or why nothing can run on the device that was asked for: before the first minute is spent.
Status check_device(const ExecutionOptions& options);

// With --config there is one strategy: the one that it names, or the first that takes it. Without,
// `strategies` (those asked for by name) stay as they are.
Status settle_strategy(const Problem& problem, const ExecutionOptions& options,
                       std::vector<StrategyId>& strategies);

class ReadyRun {
 public:
  // Plans; prepares the weights when options.prepared, or when the strategy exists for that
  // (cached, graph); allocates the workspace. `buffers` (with d) is copied; what it points to must
  // stay. On a GPU: copies the operands there.
  static Expected<ReadyRun> make(const Problem& problem, const Buffers& buffers,
                                 StrategyId strategy, const ExecutionOptions& options);

  Status run(RunInfo* info = nullptr);

  // Seconds per run on the GPU, without copies to and from it: a graph of `calls` runs that rotate
  // through `runs`, replayed `replays` times.
  static Expected<std::vector<double>> time_on_device(std::vector<ReadyRun>& runs, int calls,
                                                      int replays);

  const Plan& plan() const noexcept { return plan_; }
  const Buffers& buffers() const noexcept { return buffers_; }

 private:
  Plan plan_;
  Buffers buffers_;  // `prepared` is set anew for each run: this object may have moved
  PreparedWeights prepared_;
  verify::AlignedBytes workspace_;
  verify::DeviceRun device_;  // in place of the workspace on a GPU
};

}  // namespace dualgemm::cli
