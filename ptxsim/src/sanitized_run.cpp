#include <utility>

#include "check/sanitizer.hpp"
#include "machine/cta.hpp"
#include "machine/machine.hpp"
#include "ptxsim/ptxsim.hpp"
#include "ptxsim/suppressions.hpp"

namespace ptxsim {

RunResult run(std::shared_ptr<const Program> program, const Launch& launch, GlobalMemory& memory,
              const Options& options, std::vector<MakeObserver> observers) {
  std::shared_ptr<check::Grid> grid;
  if (options.sanitize)
    observers.insert(observers.begin(), [&grid](Cluster& cluster) {
      Machine& machine = cluster.machine;
      if (grid == nullptr) grid = share_grid(machine);
      return std::make_unique<Sanitizer>(cluster, machine.reports(), machine.options().strict,
                                         grid);
    });
  const std::shared_ptr<const Program> kept = std::move(program);  // longer than it runs
  RunResult result = interpret(kept, launch, memory, options, std::move(observers));
  for (Report& report : result.reports.list) report.kernel = kept->entry->name;
  if (options.suppressions != nullptr) suppress(result.reports, *options.suppressions);
  if (options.keep_trail && grid != nullptr && !result.error) result.trail = trail_of(*grid, *kept);
  return result;
}

}  // namespace ptxsim
