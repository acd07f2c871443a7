#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim {
namespace {

struct Run {
  Schedule schedule;
  uint64_t seed;
};

std::string text_of(const Run& run) {
  switch (run.schedule) {
    case Schedule::kEager:
      return "eager";
    case Schedule::kLazy:
      return "lazy";
    default:
      return fmt::format("random {}", run.seed);
  }
}

std::vector<Run> runs_of(const CampaignOptions& options) {
  std::vector<Run> runs{{Schedule::kEager, 1}, {Schedule::kLazy, 1}};
  for (uint64_t seed = 1; seed <= options.random_seeds; ++seed)
    runs.push_back({Schedule::kRandom, seed});
  return runs;
}

Options options_of(const Run& run, uint64_t budget) {
  Options options;
  options.schedule = run.schedule;
  options.seed = run.seed;
  options.max_warp_instructions = budget;
  return options;
}

// What the unchanged kernel raises, in any run: rule and the two statements.
using Key = std::tuple<int, int, int, std::string>;
using Known = std::set<Key>;

Key key_of(const Report& report) {
  return {report.rule, report.statement, report.other_statement,
          report.statement < 0 ? report.message : std::string()};
}

Fate fate_of(const Trial& trial, const Known* known, std::string& detail) {
  if (trial.run.error) {
    detail = trial.run.error->message.substr(0, trial.run.error->message.find('\n'));
    const ErrorKind kind = trial.run.error->kind;
    return kind == ErrorKind::kDeadlock || kind == ErrorKind::kBudget ? Fate::kDeadlock
                                                                      : Fate::kFault;
  }
  for (const Report& report : trial.run.reports.list) {
    const bool counts = report.severity == Severity::kError ||
                        (known != nullptr && !known->contains(key_of(report)));
    if (!counts) continue;
    detail = fmt::format("R{} {}: {}", report.rule, name_of(report.severity), report.message);
    return Fate::kReported;
  }
  detail = "wrong result";
  return trial.right ? Fate::kSurvived : Fate::kWrongResult;
}

// An even selection: the groups in turn, and within a group spread over its statements.
std::vector<Mutation> select(std::vector<Mutation> all, uint64_t most) {
  if (most == 0 || all.size() <= most) return all;
  std::map<std::string, std::vector<Mutation>> groups;
  for (Mutation& m : all) groups[m.group].push_back(std::move(m));
  std::map<std::string, uint64_t> take;
  for (uint64_t taken = 0; taken < most;)
    for (const auto& [name, list] : groups)
      if (taken < most && take[name] < list.size()) ++take[name], ++taken;
  std::vector<Mutation> chosen;
  for (auto& [name, list] : groups)
    for (uint64_t i = 0; i < take[name]; ++i) chosen.push_back(list[i * list.size() / take[name]]);
  return chosen;
}

}  // namespace

const char* name_of(Fate fate) {
  switch (fate) {
    case Fate::kNotExecuted:
      return "not executed";
    case Fate::kWrongResult:
      return "wrong result";
    case Fate::kReported:
      return "reported";
    case Fate::kFault:
      return "fault";
    case Fate::kDeadlock:
      return "deadlock";
    case Fate::kSurvived:
      return "survived";
    default:
      return "invalid";
  }
}

Result<Campaign> run_campaign(std::shared_ptr<const Program> program, const RunTrial& run_trial,
                              const CampaignOptions& options,
                              const std::function<void(const MutantResult&)>& progress) {
  uint64_t longest = 0;
  std::vector<uint64_t> executed(program->insns.size(), 0);
  const std::vector<Run> runs = runs_of(options);
  Known known;
  for (const Run& run : runs) {
    const Trial trial = run_trial(program, options_of(run, UINT64_MAX));
    std::string detail;
    for (const Report& report : trial.run.reports.list) known.insert(key_of(report));
    if (fate_of(trial, nullptr, detail) != Fate::kSurvived)
      return Error{ErrorKind::kInput,
                   fmt::format("the unchanged kernel is not right, {}: {}", text_of(run),
                               trial.run.error ? trial.run.error->message : detail),
                   {}};
    longest = std::max(longest, trial.run.stats.warp_instructions);
    for (size_t i = 0; i < executed.size() && i < trial.run.stats.by_statement.size(); ++i)
      executed[i] += trial.run.stats.by_statement[i];
  }
  Campaign campaign;
  for (Mutation& mutation : select(enumerate_mutations(*program), options.max_mutants)) {
    MutantResult result{std::move(mutation), Fate::kSurvived, "", ""};
    Result<std::shared_ptr<const Program>> mutant = apply_mutation(*program, result.mutation);
    if (executed[result.mutation.statement] == 0) {
      result.fate = Fate::kNotExecuted;
    } else if (!mutant.ok()) {
      result.fate = Fate::kInvalid;
      result.detail = mutant.error().message;
    } else {
      for (size_t i = 0; i < runs.size() && result.fate == Fate::kSurvived; ++i) {
        const Trial trial =
            run_trial(*mutant, options_of(runs[i], longest * options.budget_factor + 100000));
        result.fate = fate_of(trial, options.strict ? &known : nullptr, result.detail);
        result.schedule = text_of(runs[i]);
      }
    }
    if (result.fate != Fate::kNotExecuted) ++campaign.executed;
    if (result.fate != Fate::kNotExecuted && result.fate != Fate::kSurvived) ++campaign.killed;
    if (progress) progress(result);
    campaign.mutants.push_back(std::move(result));
  }
  return campaign;
}

}  // namespace ptxsim
