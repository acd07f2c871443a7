// ptxsim: runs a PTX kernel on the CPU and checks its synchronisation.
//   ptxsim run kernel.ptx [--entry name] [--case case.json] ...
//   ptxsim exec --device b200 -- ./program    a host program, its launches interpreted
//   ptxsim check kernel.ptx          every entry and function decoded: what is not known is named
//   ptxsim case kernel.ptx           a case to begin with
//   ptxsim time kernel.ptx --gpu b200    an estimate of how long it takes there
// Exit codes: 0 as expected; 1 wrong result, fault, deadlock or a report of severity error; 2 input
// that is not valid, or the instruction budget used up: one line on stderr; 130 ended by Ctrl-C.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <utility>

#include "ptxsim/cli/case_command.hpp"
#include "ptxsim/cli/exec_command.hpp"
#include "ptxsim/cli/loaded.hpp"
#include "ptxsim/cli/mutate_command.hpp"
#include "ptxsim/cli/run_command.hpp"
#include "ptxsim/cli/speed_command.hpp"
#include "ptxsim/cli/subcommand.hpp"
#include "ptxsim/cli/time_command.hpp"
#include "ptxsim/printable.hpp"

namespace {

int check(const std::string& path) {
  ptxsim::Result<std::string> text = ptxsim::cli::read_kernel(path);
  if (!text.ok()) return ptxsim::cli::print_error(text.error());
  auto module = ptxsim::load(*text, path);
  if (!module.ok()) return ptxsim::cli::print_error(module.error());
  int code = 0;
  for (const ptxsim::Entry& entry : module.value()->entries) {
    auto program = ptxsim::decode(*module, entry.name);
    if (program.ok()) {
      std::cout << fmt::format("{}: {} statements\n",
                               ptxsim::printable(entry.name, ptxsim::kLongestName),
                               entry.statements.size());
    } else {
      code = ptxsim::cli::print_error(program.error());
    }
  }
  const auto& functions = module.value()->functions;
  for (uint32_t i = 0; i < functions.size(); ++i) {
    if (!functions[i].is_defined()) continue;
    if (const auto error = ptxsim::check_function(*module, i))
      code = ptxsim::cli::print_error(*error);
    else
      std::cout << fmt::format("function {}: {} statements\n",
                               ptxsim::printable(functions[i].body.name, ptxsim::kLongestName),
                               functions[i].body.statements.size());
  }
  return code;
}

ptxsim::Error refusal(std::string message) {
  return {ptxsim::ErrorKind::kInput, std::move(message), {}};
}

// A closed one of stdin, stdout and stderr gets something in its place, so that no file that is
// opened gets its number and with it all that is printed. Writing to it still fails.
void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

int run_program(int argc, char** argv) {
  CLI::App app{"Runs PTX kernels on the CPU and checks their synchronisation"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "ptxsim " PTXSIM_VERSION);
  ptxsim::cli::RunArgs args;
  CLI::App* run = app.add_subcommand(
      "run", "Run one entry on the case's buffers and compare with what it expects");
  ptxsim::cli::add_run_options(*run, args);
  std::string checked;
  CLI::App* check_command =
      app.add_subcommand("check", "Decode every entry and function and name what is not known");
  check_command->add_option("kernel", checked, "PTX file")->required();
  ptxsim::cli::CaseArgs case_args;
  CLI::App* draft = app.add_subcommand("case", "Write a case to begin with for one entry");
  ptxsim::cli::add_case_options(*draft, case_args);
  CLI::App* speed = app.add_subcommand("speed", "Measure how quickly this machine interprets");
  ptxsim::cli::MutateArgs mutate_args;
  CLI::App* mutate = app.add_subcommand(
      "mutate", "Drop or weaken one statement at a time; every mutant must be noticed");
  ptxsim::cli::add_mutate_options(*mutate, mutate_args);
  ptxsim::cli::ExecArgs exec_args;
  CLI::App* exec = app.add_subcommand(
      "exec", "Run a CUDA program without a GPU: its launches are interpreted and checked");
  ptxsim::cli::add_exec_options(*exec, exec_args);
  ptxsim::cli::TimeArgs time_args;
  CLI::App* time = app.add_subcommand("time", "Estimate how long a launch takes on a GPU");
  ptxsim::cli::add_time_options(*time, time_args);
  if (const auto refused = ptxsim::cli::check_subcommand(app, argc, argv))
    return ptxsim::cli::print_error(*refused);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return ptxsim::cli::print_error(refusal(std::string(error.what()) + "; see --help"));
  }
  try {
    if (speed->parsed()) return ptxsim::cli::speed_command();
    if (draft->parsed()) return ptxsim::cli::case_command(case_args);
    if (exec->parsed()) return ptxsim::cli::exec_command(exec_args);
    if (time->parsed()) return ptxsim::cli::time_command(time_args);
    if (mutate->parsed()) return ptxsim::cli::mutate_command(mutate_args);
    return run->parsed() ? ptxsim::cli::run_command(args) : check(checked);
  } catch (const std::bad_alloc&) {
    return ptxsim::cli::print_error(refusal("not enough memory"));
  } catch (const std::exception& error) {
    return ptxsim::cli::print_error(refusal(error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  const int code = run_program(argc, argv);
  if (std::cout.flush() || code != 0) return code;
  return ptxsim::cli::print_error(refusal("stdout: cannot be written; must take everything"));
}
