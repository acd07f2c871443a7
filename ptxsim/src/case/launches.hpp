// Runs what a case launches.
#pragma once

#include <memory>
#include <vector>

#include "ptxsim/case/case.hpp"

namespace ptxsim {

// One launch, or all of a list, one after the other, as long as there is no error. The sanitizer
// judges a launch that may overlap with those ahead of it by what they did (R21).
RunResult run_launches(const Case& description, const std::shared_ptr<const Program>& program,
                       GlobalMemory& memory, const Options& options,
                       const std::vector<MakeObserver>& observers);

}  // namespace ptxsim
