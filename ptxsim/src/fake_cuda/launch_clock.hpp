// How long a launch would take on the GPU that the program sees.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/critical_path.hpp"
#include "timing/estimate.hpp"
#include "timing/launch_work.hpp"
#include "timing/parameters.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::cuda {

struct LaunchEstimate {
  timing::LaunchTime time;                   // by the parameters as they are known best
  std::vector<timing::Share> path;           // of the first wave
  std::optional<timing::Interval> interval;  // where more than the first cluster was recorded
};

// Records the first cluster of each launch, or every one that runs.
class LaunchClock {
 public:
  // Nothing where there are no parameters of this GPU. `all_that_run`: for launches of which some
  // clusters are left out.
  static std::optional<LaunchClock> of(const std::string& device, bool all_that_run);

  // Observers of one run, which must be over when estimate() is called.
  std::vector<MakeObserver> begin(const Program& program, const Launch& launch);
  // Nothing of a run that recorded no cluster.
  std::optional<LaunchEstimate> estimate(const Program& program, const Launch& launch,
                                         const GlobalMemory& memory);

 private:
  timing::GpuParameters gpu_;
  bool all_that_run_ = false;
  timing::SmShare share_;
  std::shared_ptr<timing::Recording> recording_;
};

}  // namespace ptxsim::cuda
