// What `ptxsim time` prints.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "timing/critical_path.hpp"
#include "timing/estimate.hpp"

namespace ptxsim::cli {

// Where the numbers of instructions of a kernel's statements come from.
struct InstructionCounts {
  std::string from;  // "table", "ptxas", "listing"
  std::string note;  // why it is the table's after all
  size_t statements = 0, counted = 0;
};

struct TimedLaunch {
  std::string name;
  timing::LaunchTime time;
  timing::Interval interval;
  timing::Doubt doubt;
  std::vector<timing::Share> path;  // of the first wave
  std::vector<timing::Wait> waits;
  std::optional<InstructionCounts> instructions{};  // of a kernel
};

std::string report_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches);
std::string json_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches);

}  // namespace ptxsim::cli
