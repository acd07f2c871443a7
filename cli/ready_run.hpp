// A problem with everything that run() needs: plan, prepared weights, workspace.
#pragma once

#include "api/operands.hpp"
#include "cli/options.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cli {

class ReadyRun {
 public:
  // Plans; prepares the weights when options.prepared, or when the strategy exists for that
  // (cached, graph); allocates the workspace. `buffers` (with d) is copied; what it points to must
  // stay.
  static Expected<ReadyRun> make(const Problem& problem, const Buffers& buffers,
                                 StrategyId strategy, const ExecutionOptions& options);

  Status run(RunInfo* info = nullptr);
  const Plan& plan() const noexcept { return plan_; }
  const Buffers& buffers() const noexcept { return buffers_; }

 private:
  Plan plan_;
  Buffers buffers_;  // `prepared` is set anew for each run: this object may have moved
  PreparedWeights prepared_;
  api::AlignedBytes workspace_;
};

}  // namespace dualgemm::cli
