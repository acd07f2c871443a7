// What `ptxsim time` prints.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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
};

// Where the numbers of instructions of a kernel's statements come from.
struct InstructionCounts {
  std::string from;  // "table", "ptxas", "listing"
  std::string note;  // why it is the table's after all
  size_t statements = 0, counted = 0;
};

// `counts`: of a kernel; a described launch has none.
std::string report_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches,
                        const std::optional<InstructionCounts>& counts);
std::string json_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches,
                      const std::optional<InstructionCounts>& counts);

}  // namespace ptxsim::cli
