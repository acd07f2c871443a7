// A GatedMlp from its problem, and Y of a run in poisoned memory.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "support/mlp_case.hpp"
#include "unit/api/prepared_run.hpp"

namespace dualgemm::test {

inline GatedMlp mlp_of(const MlpProblem& problem, const PlanOptions& options = {}) {
  auto mlp = GatedMlp::plan(problem, options);
  EXPECT_TRUE(mlp.ok()) << mlp.status().message();
  return *std::move(mlp);
}

// Y after a run in a workspace that held `fill` and has not a byte too many.
inline Bytes run_mlp(const GatedMlp& mlp, const MlpBuffers& buffers, MlpCase& data,
                     uint8_t fill = kPoison) {
  data.y.data.fill(kPoison);
  Guarded<uint8_t> workspace(mlp.workspace_bytes(), 0, fill);
  const Status status = mlp.run(buffers, workspace.data(), workspace.size());
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes_of(data.y.data);
}

}  // namespace dualgemm::test
