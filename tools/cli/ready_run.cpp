#include "tools/cli/ready_run.hpp"

#include <utility>

namespace dualgemm::cli {
namespace {

Expected<Plan> plan_for(const Problem& problem, StrategyId strategy,
                        const ExecutionOptions& options) {
  return make_plan(problem, options.plan_options(strategy));
}

}  // namespace

Status check_device(const ExecutionOptions& options) {
  if (options.device != DeviceKind::kCuda) return {};
  Problem smallest;
  smallest.m = smallest.n = smallest.k = kSfVec;
  PlanOptions wanted = options.plan_options(StrategyId::kAuto);
  wanted.config.clear();  // it is for other problems
  return make_plan(smallest, wanted).status();
}

Status settle_strategy(const Problem& problem, const ExecutionOptions& options,
                       std::vector<StrategyId>& strategies) {
  if (options.config.empty()) return {};
  const StrategyId wanted = strategies.empty() ? StrategyId::kAuto : strategies.front();
  const Expected<Plan> plan = plan_for(problem, wanted, options);
  if (!plan) return plan.status();
  strategies = {plan->strategy};
  return {};
}

Expected<ReadyRun> ReadyRun::make(const Problem& problem, const Buffers& buffers,
                                  StrategyId strategy, const ExecutionOptions& options) {
  const Expected<Plan> plan = plan_for(problem, strategy, options);
  if (!plan) return plan.status();
  ReadyRun ready;
  ready.plan_ = *plan;
  ready.buffers_ = buffers;
  if (plan->device == DeviceKind::kCuda) {
    DUALGEMM_TRY(validate(problem, buffers));
    Expected<verify::DeviceRun> device = verify::DeviceRun::make(*plan, buffers);
    if (!device) return device.status();
    ready.device_ = *std::move(device);
    return ready;
  }
  if (plan->prepared) {
    Expected<PreparedWeights> prepared = prepare(*plan, buffers);
    if (!prepared) return prepared.status();
    ready.prepared_ = *std::move(prepared);
  }
  Expected<verify::AlignedBytes> workspace = verify::allocate_filled(plan->workspace_bytes, 0);
  if (!workspace) return workspace.status();
  ready.workspace_ = *std::move(workspace);
  return ready;
}

Status ReadyRun::run(RunInfo* info) {
  Buffers buffers = buffers_;
  if (plan_.device == DeviceKind::kCuda) return device_.run(buffers, info);
  if (plan_.prepared) buffers.prepared = &prepared_;
  return dualgemm::run(plan_, buffers, workspace_.data(), workspace_.size(), info);
}

Expected<std::vector<double>> ReadyRun::time_on_device(std::vector<ReadyRun>& runs, int calls,
                                                       int replays) {
  std::vector<verify::DeviceRun*> on_device;
  for (ReadyRun& run : runs) on_device.push_back(&run.device_);
  return verify::DeviceRun::time(on_device, calls, replays);
}

}  // namespace dualgemm::cli
