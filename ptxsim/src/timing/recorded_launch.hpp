// The work of a case's launch, from running some of its clusters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptxsim/case/case.hpp"
#include "timing/estimate.hpp"

namespace ptxsim::timing {

struct RecordOptions {
  std::vector<uint32_t> clusters{0};  // that are recorded, linear in the grid of clusters
  // All clusters side by side, for kernels whose CTAs wait for each other; else one after the
  // other, and none behind the last that is recorded.
  bool whole_grid = false;
};

// Runs without the sanitizer; results are not compared. An error of the run is the error.
Result<LaunchWork> record(const Case& description, const std::shared_ptr<const Program>& program,
                          const RecordOptions& options);

}  // namespace ptxsim::timing
