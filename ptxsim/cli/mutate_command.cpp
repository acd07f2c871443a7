#include "ptxsim/cli/mutate_command.hpp"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <vector>

#include "ptxsim/case/survivors.hpp"
#include "ptxsim/cli/loaded.hpp"
#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim::cli {
namespace {

Result<std::vector<Survivor>> read_allowed(const std::string& path) {
  if (path.empty()) return std::vector<Survivor>{};
  Result<std::string> text = read_text(path);
  if (!text.ok()) return text.error();
  return parse_survivors(*text);
}

struct Counts {
  uint64_t mutants = 0, executed = 0, killed = 0, allowed = 0;
};

void print_counts(const std::map<std::string, Counts>& groups) {
  std::cout << fmt::format("{:<22} {:>8} {:>9} {:>8} {:>8} {:>9}\n", "group", "mutants", "executed",
                           "noticed", "allowed", "survived");
  for (const auto& [name, c] : groups)
    std::cout << fmt::format("{:<22} {:>8} {:>9} {:>8} {:>8} {:>9}\n", name, c.mutants, c.executed,
                             c.killed, c.allowed, c.executed - c.killed - c.allowed);
}

}  // namespace

void add_mutate_options(CLI::App& app, MutateArgs& args) {
  app.add_option("kernel", args.kernel, "PTX file")->required();
  app.add_option("--entry", args.entry, "Kernel; default: the case's, or the only one");
  app.add_option("--case", args.case_file, "JSON; default: the //! lines");
  app.add_option("--allowed", args.allowed_file,
                 "JSON list of mutants that may survive, each with its reason");
  app.add_option("--limit", args.limit, "Mutants at most, spread evenly over the groups; 0: all")
      ->capture_default_str();
  app.add_option("--seeds", args.seeds, "Random schedules besides eager and lazy")
      ->capture_default_str();
  app.add_flag("--strict", args.strict,
               "Reports of any severity count, when the unchanged kernel does not raise them");
  app.add_flag("--list", args.list, "Print every mutant and its fate, not only the survivors");
}

int mutate_command(const MutateArgs& args) {
  Result<Loaded> loaded = load_files(args.kernel, args.case_file, args.entry);
  if (!loaded.ok()) return print_error(loaded.error());
  Result<std::vector<Survivor>> allowed = read_allowed(args.allowed_file);
  if (!allowed.ok()) return print_error(allowed.error());
  const Case& description = loaded->description;
  const RunTrial trial = [&](std::shared_ptr<const Program> program, const Options& options) {
    CaseResult result = run_case(description, std::move(program), options);
    return Trial{result.mismatches.empty(), std::move(result.run)};
  };
  const Program& program = *loaded->program;
  std::map<std::string, Counts> groups;
  uint64_t survivors = 0;
  const auto look_at = [&](const MutantResult& r) {
    Counts& counts = groups[r.mutation.group];
    ++counts.mutants;
    if (r.fate != Fate::kNotExecuted) ++counts.executed;
    const bool survived = r.fate == Fate::kSurvived;
    if (!survived && r.fate != Fate::kNotExecuted) ++counts.killed;
    const Survivor* reason = survived ? find_survivor(*allowed, program, r.mutation) : nullptr;
    if (reason != nullptr) ++counts.allowed;
    if (survived && reason == nullptr) ++survivors;
    if (args.list || survived)
      std::cout << fmt::format("{}: {}{}\n", name_of(r.fate), to_string(program, r.mutation),
                               reason != nullptr  ? " [allowed: " + reason->reason + "]"
                               : r.detail.empty() ? ""
                                                  : fmt::format(" [{}: {}]", r.schedule, r.detail));
  };
  CampaignOptions options{args.seeds, args.limit, args.strict, 4};
  Result<Campaign> campaign = run_campaign(loaded->program, trial, options, look_at);
  if (!campaign.ok()) return print_error(campaign.error());
  print_counts(groups);
  std::cout << fmt::format("{} mutants executed, {} noticed, {} survived without a reason\n",
                           campaign->executed, campaign->killed, survivors);
  return survivors == 0 && campaign->executed > 0 ? 0 : 1;
}

}  // namespace ptxsim::cli
