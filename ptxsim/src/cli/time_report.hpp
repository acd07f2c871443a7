// What `ptxsim time` prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "timing/counted_costs.hpp"
#include "timing/critical_path.hpp"
#include "timing/estimate.hpp"

namespace ptxsim::cli {

struct TimedLaunch {
  std::string name;
  timing::LaunchTime time;
  timing::Interval interval;
  timing::Doubt doubt;
  std::vector<timing::Share> path;  // of the first wave
  std::vector<timing::Wait> waits;
  std::optional<timing::InstructionCounts> instructions{};  // of a kernel
};

// "118 of 130 statements have the instructions that ptxas made of them"
std::string instructions_text(const timing::InstructionCounts& counts);

std::string report_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches);
std::string json_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches);

}  // namespace ptxsim::cli
