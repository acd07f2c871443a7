// ptxsim: executes PTX of sm_80 .. sm_121a kernels on a CPU and checks their synchronisation. All
// that a user includes; docs/guide.md has a whole example.
//
//   auto module = ptxsim::load(text, "kernel.ptx");        // Result<shared_ptr<const Module>>
//   auto program = ptxsim::decode(*module, "my_kernel");   // Result<shared_ptr<const Program>>
//   ptxsim::GlobalMemory memory;
//   memory.add("a", 0x10'0000'0000, bytes, true, true);
//   ptxsim::RunResult result = ptxsim::run(*program, launch, memory, options);
//
// Nothing is thrown out of these functions but by GlobalMemory::add: Fault, for a buffer that
// overlaps another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/error.hpp"
#include "ptxsim/insn/decode.hpp"
#include "ptxsim/ir/module.hpp"
#include "ptxsim/ir/program.hpp"
#include "ptxsim/machine/launch.hpp"
#include "ptxsim/machine/memory.hpp"
#include "ptxsim/machine/observer.hpp"
#include "ptxsim/machine/printed.hpp"
#include "ptxsim/machine/stats.hpp"
#include "ptxsim/parse/parser.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim {

Result<std::shared_ptr<const Module>> load(std::string_view text, std::string name);
// For one entry of many: parse_entry().
Result<std::shared_ptr<const Module>> load_entry(std::string_view text, std::string name,
                                                 std::string_view entry);

struct RunResult {
  std::optional<Error> error;  // a Fault, a deadlock, the budget, or a launch that is not valid
  Reports reports;             // of the interpreter and the sanitizer
  Stats stats;
  Printed printed = {};                   // by the kernel's printf
  std::shared_ptr<GridTrail> trail = {};  // with Options::keep_trail, if there is no error
  // No error and no report of severity kError.
  bool clean() const { return !error && reports.count(Severity::kError) == 0; }
};

// Runs the launch to its end. `memory` holds the results; its contents after an error are what the
// kernel had done. One of each of `observers` is made for each cluster, after the sanitizer's when
// Options::sanitize asks for it.
RunResult run(std::shared_ptr<const Program> program, const Launch& launch, GlobalMemory& memory,
              const Options& options, std::vector<MakeObserver> observers = {});
// The same with these observers alone: all that the library ptxsim_core can do, which has no
// sanitizer.
RunResult interpret(std::shared_ptr<const Program> program, const Launch& launch,
                    GlobalMemory& memory, const Options& options,
                    std::vector<MakeObserver> observers = {});

}  // namespace ptxsim
