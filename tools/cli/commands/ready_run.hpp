// A problem with everything that run() needs: plan, prepared weights, workspace.
#pragma once

#include "dualgemm/dualgemm.hpp"
#include "tools/cli/options.hpp"
#include "tools/verify/device_run.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::cli {

// ok, or why nothing at all can run as `options` say: the device, DUALGEMM_FORCE_ISA, --isa,
// --threads. Before the first minute is spent.
Status check_device(const ExecutionOptions& options);

// ok, or which environment variable does not say how many threads there may be. threads > 0: none
// is asked.
Status check_threads(int threads);

// ok, or why none of `strategies` takes this problem.
Status check_some_plan(const Problem& problem, const std::vector<StrategyId>& strategies,
                       const ExecutionOptions& options);

// ok, or that this machine's memory does not hold `sets` of operands and `results` of results.
Status check_memory(const OperandSizes& sizes, int64_t sets, int64_t results);
Status check_memory(const OperandSizes& sizes, int64_t sets, int64_t results, double machine_bytes);

// With --config there is one strategy: the one that it names, or the first that takes it. Without,
// `strategies` (those asked for by name) stay as they are.
Status settle_strategy(const Problem& problem, const ExecutionOptions& options,
                       std::vector<StrategyId>& strategies);

class ReadyRun {
 public:
  // Plans; prepares the weights when options.prepared, or when the strategy exists for that
  // (cached, graph); allocates the workspace. `buffers` (with D) is copied; what it points to must
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
