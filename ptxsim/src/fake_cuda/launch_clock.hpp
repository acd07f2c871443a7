// How long a launch would take on the GPU that the program sees.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/launch_work.hpp"
#include "timing/parameters.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::cuda {

// Records the first cluster of each launch.
class LaunchClock {
 public:
  // Nothing where there are no parameters of this GPU.
  static std::optional<LaunchClock> of(const std::string& device);

  // Observers of one run, which must be over when estimate() is called.
  std::vector<MakeObserver> begin(const Program& program, const Launch& launch);
  // us, by the parameters as they are known best; nothing of a run that recorded no cluster.
  std::optional<double> estimate(const Program& program, const Launch& launch,
                                 const GlobalMemory& memory);

 private:
  timing::Values values_{};
  timing::SmShare share_;
  std::shared_ptr<timing::Recording> recording_;
};

}  // namespace ptxsim::cuda
