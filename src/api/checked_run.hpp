// run() in its two halves, for a call that runs several plans: nothing may be written before the
// last of them has been checked.
#pragma once

#include <cstdint>

#include "dualgemm/dualgemm.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::api {

// A run that has passed every check but one: where its arrays belong (check_arrays()).
struct CheckedRun {
  const Plan* plan;
  core::CheckedProblem problem;  // the plan's
  const Strategy* strategy;
  Buffers buffers;  // prepared weights as a view, whether a handle or the caller owns them
  void* workspace;
  int64_t workspace_bytes;  // that are needed
};
// `plan` and what `buffers` points to must outlive the result.
Expected<CheckedRun> check_run(const Plan& plan, const Buffers& buffers, void* workspace,
                               int64_t workspace_bytes);
Status run_checked(const CheckedRun& checked, RunInfo* info);

Status check_workspace(const void* workspace, int64_t bytes, int64_t needed);

}  // namespace dualgemm::api
