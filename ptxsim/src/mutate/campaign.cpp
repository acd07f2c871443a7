#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim {
namespace {

struct Run {
  size_t problem;
  Schedule schedule;
  uint64_t seed;
};

std::string text_of(const Run& run) {
  const std::string problem = run.problem == 0 ? "" : fmt::format("problem {}, ", run.problem + 1);
  if (run.schedule == Schedule::kEager) return problem + "eager";
  return fmt::format("{}{} {}", problem, run.schedule == Schedule::kLazy ? "lazy" : "random",
                     run.seed);
}

std::vector<Run> runs_of(size_t problems, uint64_t seeds) {
  std::vector<Run> runs;
  for (size_t problem = 0; problem < problems; ++problem) {
    runs.push_back({problem, Schedule::kEager, 1});
    for (Schedule schedule : {Schedule::kLazy, Schedule::kRandom})
      for (uint64_t seed = 1; seed <= seeds; ++seed) runs.push_back({problem, schedule, seed});
  }
  return runs;
}

Options options_of(const Run& run, uint64_t budget) {
  Options options;
  options.schedule = run.schedule;
  options.seed = run.seed;
  options.max_warp_instructions = budget;
  return options;
}

// What the unchanged kernel raises with one problem, in any run: rule and the two statements.
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

std::vector<Mutation> mutations_of(const Program& program, uint32_t ptx_line) {
  std::vector<Mutation> all = enumerate_mutations(program);
  if (ptx_line == 0) return all;
  std::erase_if(all, [&](const Mutation& m) {
    return place_of(program, m.statement).ptx_line != static_cast<int>(ptx_line);
  });
  return all;
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

namespace {

// What the unchanged kernel does, in all runs.
struct Unchanged {
  std::vector<Known> known;        // by problem
  uint64_t longest = 0;            // run, in warp instructions
  std::vector<uint64_t> executed;  // by statement
  // The outputs of each run that has any; equal ones are one object.
  std::vector<std::shared_ptr<const Outputs>> outputs;
};

void keep_outputs(Unchanged& unchanged, size_t problem, const std::vector<Run>& runs,
                  std::optional<Outputs> outputs) {
  std::shared_ptr<const Outputs> kept;
  for (size_t i = 0; outputs && i < unchanged.outputs.size() && !kept; ++i)
    if (runs[i].problem == problem && unchanged.outputs[i] && *unchanged.outputs[i] == *outputs)
      kept = unchanged.outputs[i];
  if (outputs && !kept) kept = std::make_shared<const Outputs>(std::move(*outputs));
  unchanged.outputs.push_back(std::move(kept));
}

Comparison comparison_of(const Unchanged& unchanged, const std::vector<Run>& runs) {
  std::set<std::string> compared, varying;
  std::map<size_t, std::shared_ptr<const Outputs>> first;  // of each problem
  for (size_t run = 0; run < runs.size(); ++run) {
    const auto& outputs = unchanged.outputs[run];
    if (!outputs) continue;
    const Outputs& expected = *first.try_emplace(runs[run].problem, outputs).first->second;
    for (size_t i = 0; i < outputs->buffers.size(); ++i) {
      if (outputs->buffers[i].changed) compared.insert(outputs->buffers[i].name);
      if (outputs->buffers[i] != expected.buffers[i]) varying.insert(outputs->buffers[i].name);
    }
  }
  return {{compared.begin(), compared.end()}, {varying.begin(), varying.end()}};
}

bool is_stopped(const Trial& trial) {
  return trial.run.error && trial.run.error->kind == ErrorKind::kStopped;
}

// Compares where the problem itself says nothing about results.
void judge(Trial& trial, const std::shared_ptr<const Outputs>& unchanged, std::string& detail) {
  if (!trial.outputs || !unchanged || trial.run.error) return;
  detail = difference(*unchanged, *trial.outputs);
  trial.right = trial.right && detail.empty();
}

std::optional<Error> look_at_unchanged(const std::shared_ptr<const Program>& program,
                                       const std::vector<RunTrial>& problems,
                                       const std::vector<Run>& runs, const std::atomic<bool>* stop,
                                       Unchanged& unchanged) {
  unchanged.known.resize(problems.size());
  unchanged.executed.resize(program->insns.size());
  for (const Run& run : runs) {
    Options run_options = options_of(run, UINT64_MAX);
    run_options.stop = stop;
    Trial trial = problems[run.problem](program, run_options);
    std::string detail;
    if (is_stopped(trial)) return *trial.run.error;
    keep_outputs(unchanged, run.problem, runs, std::move(trial.outputs));
    for (const Report& report : trial.run.reports.list)
      unchanged.known[run.problem].insert(key_of(report));
    if (fate_of(trial, nullptr, detail) != Fate::kSurvived)
      return Error{ErrorKind::kInput,
                   fmt::format("the unchanged kernel is not right, {}: {}", text_of(run),
                               trial.run.error ? trial.run.error->message : detail),
                   {}};
    const Stats& stats = trial.run.stats;
    unchanged.longest = std::max(unchanged.longest, stats.warp_instructions);
    for (size_t i = 0; i < unchanged.executed.size() && i < stats.by_statement.size(); ++i)
      unchanged.executed[i] += stats.by_statement[i];
  }
  return std::nullopt;
}

}  // namespace

Result<Campaign> run_campaign(const std::shared_ptr<const Program>& program,
                              const std::vector<RunTrial>& problems, const CampaignOptions& options,
                              const std::function<void(const MutantResult&)>& progress) {
  const std::vector<Run> runs = runs_of(problems.size(), options.seeds);
  Unchanged unchanged;
  if (auto error = look_at_unchanged(program, problems, runs, options.stop, unchanged))
    return *error;
  if (options.compared) options.compared(comparison_of(unchanged, runs));
  const uint64_t budget = unchanged.longest * options.budget_factor + 100000;
  Campaign campaign;
  std::vector<Mutation> mutations =
      select(mutations_of(*program, options.ptx_line), options.max_mutants);
  campaign.selected = mutations.size();
  for (Mutation& mutation : mutations) {
    MutantResult result{std::move(mutation), Fate::kSurvived, "", ""};
    Result<std::shared_ptr<const Program>> mutant = apply_mutation(*program, result.mutation);
    if (unchanged.executed[result.mutation.statement] == 0) {
      result.fate = Fate::kNotExecuted;
    } else if (!mutant.ok()) {
      result.fate = Fate::kInvalid;
      result.detail = mutant.error().message;
    } else {
      const bool may_survive = options.may_survive && options.may_survive(result.mutation);
      for (size_t i = 0; i < runs.size() && result.fate == Fate::kSurvived; ++i) {
        if (may_survive && runs[i].seed > 1) continue;
        Options run_options = options_of(runs[i], budget);
        run_options.stop = options.stop;
        Trial trial = problems[runs[i].problem](*mutant, run_options);
        if (is_stopped(trial)) {
          campaign.stopped = true;
          return campaign;
        }
        std::string differs;
        judge(trial, unchanged.outputs[i], differs);
        result.fate = fate_of(trial, options.strict ? &unchanged.known[runs[i].problem] : nullptr,
                              result.detail);
        if (result.fate == Fate::kWrongResult && !differs.empty()) result.detail = differs;
        result.schedule = text_of(runs[i]);
      }
      if (result.fate == Fate::kSurvived) result.detail.clear();
    }
    if (result.fate != Fate::kNotExecuted) ++campaign.executed;
    if (result.fate != Fate::kNotExecuted && result.fate != Fate::kSurvived) ++campaign.killed;
    if (progress) progress(result);
    campaign.mutants.push_back(std::move(result));
  }
  return campaign;
}

}  // namespace ptxsim
