#include "cli/mutate_command.hpp"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "case/case_outputs.hpp"
#include "cli/loaded.hpp"
#include "cli/stop_signal.hpp"
#include "printable.hpp"
#include "ptxsim/case/survivors.hpp"
#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim::cli {
namespace {

Result<std::vector<Survivor>> read_allowed(const std::string& path) {
  if (path.empty()) return std::vector<Survivor>{};
  Result<std::string> text = read_text(path);
  if (!text.ok()) return text.error();
  Result<std::vector<Survivor>> survivors = parse_survivors(*text);
  if (survivors.ok()) return survivors;
  Error error = survivors.error();
  error.place.ptx_name = path;
  return error;
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

// The first problem's program; all of them run it.
Result<std::shared_ptr<const Program>> load_problems(const MutateArgs& args,
                                                     std::vector<RunTrial>& problems) {
  std::shared_ptr<const Program> program;
  std::vector<std::string> cases = args.case_files;
  if (cases.empty()) cases.emplace_back();
  for (const std::string& file : cases) {
    Result<Loaded> loaded = load_files(args.kernel, file, args.entry);
    if (!loaded.ok()) return loaded.error();
    if (!program) program = loaded->program;
    if (loaded->program->entry->name != program->entry->name)
      return Error{ErrorKind::kInput, "the cases are for different entries", {}};
    const auto description = std::make_shared<const Case>(std::move(loaded->description));
    for (uint32_t resident : args.residents) {
      problems.push_back([=](const std::shared_ptr<const Program>& mutant, Options options) {
        options.resident_clusters = resident;
        CaseResult result = run_case(*description, mutant, options);
        std::optional<Outputs> outputs;
        if (!expects_results(*description)) outputs = outputs_of(*description, result);
        return Trial{result.mismatches.empty(), std::move(result.run), std::move(outputs)};
      });
    }
  }
  return program;
}

void print_comparison(const Comparison& comparison) {
  if (comparison.buffers.empty()) return;
  std::cout << fmt::format(
      "the case expects no results: compared is what the unchanged kernel leaves in {}, under the "
      "same schedule and seed\n",
      fmt::join(comparison.buffers, ", "));
  if (!comparison.varying.empty())
    std::cout << fmt::format(
        "note: {} of the unchanged kernel differs between schedules or seeds (sums in another "
        "order?); a mutant can be noticed there for an order alone\n",
        fmt::join(comparison.varying, ", "));
  std::cout << std::flush;
}

}  // namespace

void add_mutate_options(CLI::App& app, MutateArgs& args) {
  app.add_option("kernel", args.kernel, "PTX file")->required();
  app.add_option("--entry", args.entry, "Kernel; default: the case's, or the only one");
  app.add_option("--case", args.case_files,
                 "JSON; default: the //! lines. Several: a mutant is tried with each");
  app.add_option(
      "--allow,--allowed", args.allowed_file,
      "JSON list of mutants that may survive, each with its reason; tried with one seed");
  app.add_option("--limit", args.limit, "Mutants at most, spread evenly over the groups; 0: all")
      ->capture_default_str();
  app.add_option("--seeds", args.seeds, "Lazy and random schedules besides the eager one")
      ->capture_default_str();
  app.add_option(
         "--resident", args.residents,
         "Clusters that run at the same time: fewer make a persistent kernel go around more. "
         "Several numbers (1,4): each is tried")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--line", args.line, "Only the mutants of this line of the PTX file");
  app.add_flag("--strict", args.strict,
               "Reports of any severity count, when the unchanged kernel does not raise them");
  app.add_flag("--list", args.list, "Print every mutant and its fate, not only the survivors");
}

int mutate_command(const MutateArgs& args) {
  std::vector<RunTrial> problems;
  Result<std::shared_ptr<const Program>> loaded = load_problems(args, problems);
  if (!loaded.ok()) return print_error(loaded.error());
  Result<std::vector<Survivor>> allowed = read_allowed(args.allowed_file);
  if (!allowed.ok()) return print_error(allowed.error());
  const Program& program = **loaded;
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
      std::cout << fmt::format("{}: {}{}\n", name_of(r.fate),
                               printable(to_string(program, r.mutation), kLongestLine),
                               reason != nullptr
                                   ? " [allowed: " + printable(reason->reason, kLongestName) + "]"
                               : r.detail.empty() ? ""
                                                  : fmt::format(" [{}: {}]", r.schedule,
                                                                printable(r.detail, kLongestLine)))
                << std::flush;
  };
  CampaignOptions options{
      .seeds = args.seeds, .max_mutants = args.limit, .ptx_line = args.line, .strict = args.strict};
  options.may_survive = [&](const Mutation& m) {
    return find_survivor(*allowed, program, m) != nullptr;
  };
  options.compared = print_comparison;
  options.stop = &stop_on_interrupt();
  Result<Campaign> campaign = run_campaign(*loaded, problems, options, look_at);
  if (!campaign.ok()) return print_error(campaign.error());
  print_counts(groups);
  const uint64_t allowed_count = campaign->executed - campaign->killed - survivors;
  std::cout << fmt::format(
      "{} mutants executed, {} noticed ({:.1f} %), {} allowed to survive, {} survived without a "
      "reason\n",
      campaign->executed, campaign->killed,
      campaign->executed == 0 ? 0.0 : 100.0 * campaign->killed / campaign->executed, allowed_count,
      survivors);
  if (campaign->stopped) {
    std::cout << fmt::format("stopped: {} of {} mutants were tried\n", campaign->mutants.size(),
                             campaign->selected);
    return kExitStopped;
  }
  return survivors == 0 && campaign->executed > 0 ? 0 : 1;
}

}  // namespace ptxsim::cli
