// Runs one strategy of the CPU backend on one instruction set, with a poisoned, guarded workspace.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cpu/device_caps.hpp"
#include "cpu/strategies.hpp"
#include "plan/choose.hpp"
#include "support/checked.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

inline const DeviceCaps& machine() {
  static const DeviceCaps caps = cpu::detect_device_caps();
  return caps;
}

// The instruction sets of this machine, best first; the others are missing from every test's
// parameters.
inline std::vector<Isa> isas() { return machine().isas; }

struct RunOptions {
  Isa isa = Isa::kScalar;
  StrategyId strategy = StrategyId::kFused;
  int threads = 2;
  bool prepared = false;
};

struct RunResult {
  Status status;
  Plan plan;
  RunInfo info;
};

inline RunResult run_cpu(const Problem& problem, Buffers buffers, const RunOptions& options) {
  RunResult result;
  const Expected<Plan> plan = plan::choose(problem,
                                           {.strategy = options.strategy,
                                            .isa = options.isa,
                                            .threads = options.threads,
                                            .prepared = options.prepared},
                                           machine(), cpu::strategies(), "");
  result.status = plan.status();
  if (!plan) return result;
  result.plan = *plan;
  const Strategy* strategy =
      plan::find_strategy(cpu::strategies(), plan->strategy, DeviceKind::kCpu);
  Guarded<uint8_t> prepared(plan->prepared_bytes);
  const PreparedView view{strategy->prepared_descriptor(*plan), prepared.data(), prepared.size()};
  if (plan->prepared) {
    result.status = strategy->prepare(*plan, checked(plan->problem), buffers, prepared.data());
    if (!result.status.ok()) return result;
    buffers.prepared_view = &view;
    buffers = without_weights(buffers);  // a prepared run must not look at the rows again
  }
  Guarded<uint8_t> workspace(plan->workspace_bytes);
  result.status =
      strategy->run(*plan, checked(plan->problem), buffers, workspace.data(), &result.info);
  return result;
}

// The bytes of D and of its scales, padding included.
template <class Case>
std::vector<uint8_t> output_bytes(const Case& c) {
  std::vector<uint8_t> bytes(c.d.data.begin(), c.d.data.end());
  bytes.insert(bytes.end(), c.d.scales.begin(), c.d.scales.end());
  return bytes;
}

inline std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  return name_of(info.param);
}

}  // namespace dualgemm::test
