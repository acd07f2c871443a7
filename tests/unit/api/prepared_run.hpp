// Prepared weights in memory of the caller's, and runs on them alone.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "dualgemm/dualgemm.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

using Bytes = std::vector<uint8_t>;

inline Bytes bytes_of(const Guarded<uint8_t>& memory) { return {memory.begin(), memory.end()}; }

inline Plan plan_of(const Problem& problem, const PlanOptions& wanted = {}) {
  PlanOptions options = wanted;
  options.prepared = true;
  const auto plan = make_plan(problem, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan ? *plan : Plan();
}

// Into memory that held `fill`, and which ends where the descriptor says.
inline Guarded<uint8_t> prepared_of(const Plan& plan, const Buffers& buffers,
                                    uint8_t fill = kPoison) {
  Guarded<uint8_t> memory(plan.prepared_bytes, 0, fill);
  const Status status = prepare(plan, buffers, memory.data(), memory.size());
  EXPECT_TRUE(status.ok()) << status.message();
  return memory;
}

inline PreparedView view_of(const Plan& plan, const Guarded<uint8_t>& memory) {
  const auto descriptor = prepared_descriptor(plan);
  EXPECT_TRUE(descriptor.ok()) << descriptor.status().message();
  return {descriptor ? *descriptor : PreparedDescriptor{}, memory.data(), memory.size()};
}

// d's bytes and scales after a run on `weights` alone.
inline Bytes run_with(const Plan& plan, RandomCase& data,
                      const std::function<void(Buffers&)>& set_weights) {
  data.poison_d();
  Guarded<uint8_t> workspace(plan.workspace_bytes);
  Buffers buffers = without_weights(data.buffers());
  set_weights(buffers);
  const Status status = run(plan, buffers, workspace.data(), workspace.size());
  EXPECT_TRUE(status.ok()) << status.message();
  Bytes bytes = bytes_of(data.d.data);
  bytes.insert(bytes.end(), data.d.scales.begin(), data.d.scales.end());
  return bytes;
}
inline Bytes run_with(const Plan& plan, RandomCase& data, const PreparedView& view) {
  return run_with(plan, data, [&](Buffers& buffers) { buffers.prepared_view = &view; });
}
inline Bytes run_with(const Plan& plan, RandomCase& data, const PreparedWeights& handle) {
  return run_with(plan, data, [&](Buffers& buffers) { buffers.prepared = &handle; });
}

}  // namespace dualgemm::test
