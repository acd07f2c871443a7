// How long a launch would take on the GPU that the program sees.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_cuda/modules.hpp"
#include "ptxsim/ptxsim.hpp"
#include "timing/counted_costs.hpp"
#include "timing/critical_path.hpp"
#include "timing/estimate.hpp"
#include "timing/launch_work.hpp"
#include "timing/parameters.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::cuda {

// What the clock knows of a kernel, whatever it is launched with.
struct KernelCosts {
  timing::CountedCosts counted;
  std::string refusal;  // why there are none, and no estimate: an error of --sass ptxas
};

struct LaunchEstimate {
  timing::LaunchTime time;                   // by the parameters as they are known best
  std::vector<timing::Share> path;           // of the first wave
  std::optional<timing::Interval> interval;  // where more than the first cluster was recorded
  timing::InstructionCounts instructions;
};

// Records the first cluster of each launch, or every one that runs.
class LaunchClock {
 public:
  // Nothing where there are no parameters of this GPU. `gpu_file`: parameters in place of those of
  // `device`; empty: those. `sass`: where numbers of instructions come
  // from, "off", "auto" or "ptxas". `all_that_run`: for launches of which some clusters are left
  // out.
  static std::optional<LaunchClock> of(const std::string& device, const std::string& gpu_file,
                                       std::string sass, bool all_that_run);

  // Counts the kernel's instructions, once for its text and name. Observers of one run, which must
  // be over when estimate() is called; none where kernel.costs has a refusal.
  std::vector<MakeObserver> begin(Kernel& kernel, const Program& program, const Launch& launch);
  // Nothing of a run that recorded no cluster.
  std::optional<LaunchEstimate> estimate(const Program& program, const Launch& launch,
                                         const GlobalMemory& memory);

 private:
  std::shared_ptr<const KernelCosts> costs_of(const Kernel& kernel, const Program& program);

  timing::GpuParameters gpu_;
  std::string sass_;
  // By the module's text, of which there is one copy for all of its kernels, and the kernel's name:
  // a program may load a module again.
  std::map<std::string, std::map<std::string, std::shared_ptr<const KernelCosts>>> counted_;
  bool all_that_run_ = false;
  timing::SmShare share_;
  timing::InstructionCounts instructions_;  // of the kernel that runs
  std::shared_ptr<timing::Recording> recording_;
};

}  // namespace ptxsim::cuda
