#include "tools/cli/commands/ready_run.hpp"

#include <unistd.h>

#include <initializer_list>
#include <utility>

#include "core/usable_cores.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

Expected<Plan> plan_for(const Problem& problem, StrategyId strategy,
                        const ExecutionOptions& options) {
  return make_plan(problem, options.plan_options(strategy));
}

}  // namespace

Status check_device(const ExecutionOptions& options) {
  Problem smallest;
  smallest.m = smallest.n = smallest.k = kSfVec;
  PlanOptions wanted = options.plan_options(StrategyId::kAuto);
  wanted.config.clear();    // it is for other problems
  wanted.prepared = false;  // as not every strategy takes
  return make_plan(smallest, wanted).status();
}

Status check_threads(int threads) {
  return threads > 0 ? Status() : core::default_threads().status();
}

Status check_some_plan(const Problem& problem, const std::vector<StrategyId>& strategies,
                       const ExecutionOptions& options) {
  Status first;
  for (const StrategyId strategy : strategies) {
    const Expected<Plan> plan = plan_for(problem, strategy, options);
    if (plan) return {};
    if (first.ok()) first = plan.status();
  }
  return first;
}

Status check_memory(const OperandSizes& sizes, int64_t sets, int64_t results) {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  return check_memory(sizes, sets, results, pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

// In floating point, as the products of legal sizes need not fit in 64 bits.
Status check_memory(const OperandSizes& sizes, int64_t sets, int64_t results,
                    double machine_bytes) {
  const auto sum = [](std::initializer_list<int64_t> parts) {
    double total = 0;
    for (const int64_t part : parts) total += static_cast<double>(part);
    return total;
  };
  const double operands = sum({sizes.a, sizes.a_scales, sizes.gate, sizes.gate_scales, sizes.up,
                               sizes.up_scales, sizes.bias_gate, sizes.bias_up});
  const double needed = static_cast<double>(sets) * operands +
                        static_cast<double>(results) * sum({sizes.d, sizes.d_scales});
  if (needed <= machine_bytes) return {};
  const auto text = [](double bytes) {
    return bytes < 9e18 ? format_bytes(static_cast<int64_t>(bytes)) : std::string("more than 9 EB");
  };
  return Status::invalid("m, n, k, l", text(needed) + " of operands and results",
                         "this machine has " + text(machine_bytes) + " of memory");
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
