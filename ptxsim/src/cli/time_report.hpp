// What `ptxsim time` prints.
#pragma once

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

std::string report_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches);
std::string json_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches);

}  // namespace ptxsim::cli
