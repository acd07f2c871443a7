#include <utility>

#include "ptxsim/check/sanitizer.hpp"
#include "ptxsim/machine/cta.hpp"
#include "ptxsim/machine/machine.hpp"
#include "ptxsim/ptxsim.hpp"

namespace ptxsim {

RunResult run(std::shared_ptr<const Program> program, const Launch& launch, GlobalMemory& memory,
              const Options& options, std::vector<MakeObserver> observers) {
  if (options.sanitize)
    observers.insert(observers.begin(),
                     [grid = std::shared_ptr<check::Grid>()](Cluster& cluster) mutable {
                       Machine& machine = cluster.machine;
                       if (grid == nullptr) grid = share_grid(machine);
                       return std::make_unique<Sanitizer>(cluster, machine.reports(),
                                                          machine.options().strict, grid);
                     });
  return interpret(std::move(program), launch, memory, options, std::move(observers));
}

}  // namespace ptxsim
