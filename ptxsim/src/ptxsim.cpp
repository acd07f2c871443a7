#include "ptxsim/ptxsim.hpp"

#include <fmt/format.h>

#include <exception>

#include "machine/execution.hpp"
#include "machine/machine.hpp"

namespace ptxsim {

namespace {

Result<std::shared_ptr<const Module>> shared(Result<Module> module) {
  if (!module.ok()) return module.error();
  return std::shared_ptr<const Module>(std::make_shared<Module>(std::move(*module)));
}

}  // namespace

Result<std::shared_ptr<const Module>> load(std::string_view text, std::string name) {
  return shared(parse(text, std::move(name)));
}

Result<std::shared_ptr<const Module>> load_entry(std::string_view text, std::string name,
                                                 std::string_view entry) {
  return shared(parse_entry(text, std::move(name), entry));
}

RunResult interpret(std::shared_ptr<const Program> program, const Launch& launch,
                    GlobalMemory& memory, const Options& options,
                    std::vector<MakeObserver> observers) {
  RunResult result;
  std::unique_ptr<Machine> machine;
  const Place entry{program->module->name, program->entry->line, 0, "", 0};
  try {
    machine = std::make_unique<Machine>(std::move(program), launch, memory, options, result.reports,
                                        std::move(observers));
    machine->run();
  } catch (const Fault& fault) {
    result.error = fault.error();
    if (result.error->place.ptx_line == 0) result.error->place = entry;  // the launch
  } catch (const std::exception& error) {                                // out of memory
    result.error =
        Error{ErrorKind::kInput,
              fmt::format("not enough memory for this launch ({})", error.what()), entry};
  }
  if (machine) result.stats = machine->stats();
  if (machine) result.printed = std::move(machine->printed());
  return result;
}

}  // namespace ptxsim
