// The work of a case's launch, from running some of its clusters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptxsim/case/case.hpp"
#include "timing/estimate.hpp"
#include "timing/statements.hpp"

namespace ptxsim::timing {

struct RecordOptions {
  // That are recorded, linear in the grid of clusters. None: three, spread over the grid, or the
  // first alone where clusters take work from each other at run time.
  std::vector<uint32_t> clusters;
  // All clusters side by side, for kernels whose CTAs wait for each other; else one after the
  // other, and none behind the last that is asked for.
  bool whole_grid = false;
  std::shared_ptr<const StatementCosts> costs{};  // of the program; none: those of the table
};

// `gpu`: says how many CTAs share an SM, and its L1. Runs without the sanitizer; results are not
// compared. An error of the run is the error.
Result<LaunchWork> record(const Case& description, const std::shared_ptr<const Program>& program,
                          const Values& gpu, const RecordOptions& options);

}  // namespace ptxsim::timing
