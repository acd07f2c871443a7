#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/checkpoint_jobs/layer_problem.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/progress.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/cli/print/verify_report.hpp"

namespace dualgemm::cli {
namespace {

std::vector<StrategyId> strategies_of(const VerifyCommand& command) {
  if (!command.strategies.empty()) return command.strategies;
  std::vector<StrategyId> all = all_strategies(command.execution.device);
  // --samples says that the shape is large, and the scalar oracle would compute every element of
  // it.
  if (command.samples > 0) std::erase(all, StrategyId::kReference);
  return all;
}

// Runs and compares one problem on every strategy.
class CaseVerifier {
 public:
  CaseVerifier(const VerifyCommand& command, const Problem& problem, const Buffers& inputs,
               uint64_t seed, verify::ExpertRows rows)
      : command_(command), inputs_(inputs), item_{problem, seed, rows, {}} {}

  void verify(StrategyId strategy) {
    VerifyResult result{strategy, {}, {}, {}, {}};
    result.error = run_and_check(strategy, result);
    item_.results.push_back(std::move(result));
  }

  const VerifyCase& item() const noexcept { return item_; }

 private:
  Expected<verify::Output> run(StrategyId strategy, Plan& plan, Isa& isa) {
    Expected<verify::Output> output = verify::allocate_output(item_.problem);
    if (!output) return output;
    Buffers buffers = inputs_;
    output->attach_to(buffers);
    Expected<ReadyRun> ready = ReadyRun::make(item_.problem, buffers, strategy, command_.execution);
    if (!ready) return ready.status();
    plan = ready->plan();
    RunInfo info;
    DUALGEMM_TRY(ready->run(&info));
    isa = info.isa;
    return output;
  }

  Status run_and_check(StrategyId strategy, VerifyResult& result) {
    Plan plan;
    Isa isa = Isa::kScalar;
    Expected<verify::Output> output = run(strategy, plan, isa);
    if (!output) return output.status();
    result.config = plan.config();
    Buffers buffers = inputs_;
    output->attach_to(buffers);
    if (strategy == StrategyId::kFp8) return measure_fp8(buffers, result);
    const Expected<verify::CheckReport> check = verify::check_result(
        item_.problem, buffers, isa, {command_.samples, item_.seed, verify::kUnwritten});
    if (!check) return check.status();
    result.check = *check;
    if (check->passed() && !trusted_) trusted_ = *std::move(output);
    return {};
  }

  Status measure_fp8(const Buffers& actual, VerifyResult& result) {
    if (!trusted_) {  // nothing else was asked for
      Plan plan;
      Isa isa = Isa::kScalar;
      Expected<verify::Output> output = run(StrategyId::kReference, plan, isa);
      if (!output) return output.status();
      trusted_ = *std::move(output);
    }
    Buffers expected = inputs_;
    trusted_->attach_to(expected);
    const Expected<verify::OutputDifference> difference =
        verify::output_difference(item_.problem, expected, actual);
    if (!difference) return difference.status();
    result.fp8 = *difference;
    return {};
  }

  const VerifyCommand& command_;
  Buffers inputs_;
  VerifyCase item_;
  std::optional<verify::Output> trusted_;
};

VerifyCase verify_problem(const VerifyCommand& command, const Problem& problem,
                          const Buffers& inputs, uint64_t seed,
                          verify::ExpertRows rows = verify::ExpertRows::kRagged) {
  CaseVerifier verifier(command, problem, inputs, seed, rows);
  for (const StrategyId strategy : strategies_of(command)) verifier.verify(strategy);
  return verifier.item();
}

struct RandomCase {
  Problem problem;
  uint64_t seed;
};

std::vector<RandomCase> random_cases(const VerifyCommand& command) {
  std::vector<RandomCase> cases;
  if (!command.shapes.empty()) {
    for (const Shape& s : command.shapes.combinations({16, 64, 128, 1})) {
      cases.push_back({command.problem.problem(s.m, s.n, s.k, s.l), command.seed});
    }
    return cases;
  }
  const bool groups = command.problem.grouping != Grouping::kNone;
  for (const verify::RandomShape& s :
       verify::random_shapes(command.problem.d_type, command.random_shapes, command.seed, groups)) {
    cases.push_back({command.problem.problem(s.m, s.n, s.k, s.l), s.seed});
  }
  return cases;
}

// Before the first minute is spent: everything that makes the whole request hopeless. Some strategy
// must take some problem; the others are skipped one by one.
Status check_cases(VerifyCommand& command, const std::vector<RandomCase>& cases) {
  for (const RandomCase& item : cases) DUALGEMM_TRY(validate(item.problem));
  DUALGEMM_TRY(check_device(command.execution));
  DUALGEMM_TRY(settle_strategy(cases.front().problem, command.execution, command.strategies));
  Status hopeless;
  bool some = false;
  for (const RandomCase& item : cases) {
    const Expected<OperandSizes> sizes = operand_sizes(item.problem);
    if (!sizes) return sizes.status();
    DUALGEMM_TRY(check_memory(*sizes, 1, 2));
    if (some) continue;
    const Status status = check_some_plan(item.problem, strategies_of(command), command.execution);
    some = status.ok();
    if (hopeless.ok()) hopeless = status;
  }
  return some ? Status() : hopeless;
}

// All ways in which rows can fall to experts; one where there are none.
std::vector<verify::ExpertRows> ways_of_rows(const VerifyCommand& command) {
  using verify::ExpertRows;
  const Grouping grouping = command.problem.grouping;
  if (grouping == Grouping::kNone) return {ExpertRows::kRagged};
  if (grouping == Grouping::kContiguous && !command.row_experts)
    return {ExpertRows::kRagged, ExpertRows::kOneExpert};
  return {ExpertRows::kRagged, ExpertRows::kOneExpert, ExpertRows::kNobody};
}

Status verify_random(VerifyCommand& command, std::vector<VerifyCase>& done) {
  const std::vector<RandomCase> cases = random_cases(command);
  DUALGEMM_TRY(check_cases(command, cases));
  const std::vector<verify::ExpertRows> ways = ways_of_rows(command);
  Progress progress(static_cast<int64_t>(cases.size() * ways.size()));
  for (const RandomCase& item : cases) {
    const Problem& p = item.problem;
    for (const verify::ExpertRows rows : ways) {
      progress.show(static_cast<int64_t>(done.size()), name_of(VerifyCase{p, item.seed, rows, {}}));
      const Expected<verify::Operands> operands = verify::random_operands(
          p, verify::RandomKind::kEdges, item.seed, {command.row_experts, rows});
      if (!operands) return operands.status();
      done.push_back(verify_problem(command, p, operands->buffers(), item.seed, rows));
    }
  }
  return {};
}

int verify_files(VerifyCommand& command, std::vector<VerifyCase>& done) {
  if (const Status usable = check_device(command.execution); !usable.ok())
    return fail_usage(usable);
  const Problem request = command.problem.problem(0, 0, 0, 1);
  const Expected<checkpoint::LayerProblem> layer = checkpoint::open_layer_problem(
      layer_source(command.files), request, command.execution.threads);
  if (!layer) return fail(layer.status());
  for (const std::string& note : layer->notes) talk(note);
  Status status = validate(layer->problem);
  if (status.ok()) status = settle_strategy(layer->problem, command.execution, command.strategies);
  if (status.ok())
    status = check_some_plan(layer->problem, strategies_of(command), command.execution);
  if (!status.ok()) return fail_usage(status);
  done.push_back(verify_problem(command, layer->problem, layer->buffers, command.seed));
  return 0;
}

// Returns the exit code. Skips are named once each, failures one by one.
int talk_about(const VerifyCommand& command, const std::vector<VerifyCase>& cases) {
  std::map<std::string, int> skips;
  int passed = 0, failed = 0;
  for (const VerifyCase& item : cases) {
    for (const VerifyResult& result : item.results) {
      if (result.skipped()) {
        ++skips[fmt::format("{} skipped: {}", name_of(result.strategy), result.error.message())];
        continue;
      }
      ++(result.failed() ? failed : passed);
      if (!result.failed()) continue;
      std::string text = fmt::format("{} on {}: ", name_of(result.strategy), name_of(item)),
                  details;
      if (!result.error.ok()) text += result.error.message();
      if (result.check) {
        text += verdict(*result.check, item.problem.d.type);
        details = failure_details(*result.check);
      }
      if (result.fp8) text += fmt::format("relative L2 error {:.3g}", result.fp8->rel_l2);
      talk(text, details + "  repeat with: " + reproduction(command, item, result.strategy) + "\n");
    }
  }
  for (const auto& [text, count] : skips) talk(fmt::format("{} ({} times)", text, count));
  talk(fmt::format("{} comparisons right, {} wrong", passed, failed));
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

int execute(const VerifyCommand& request) {
  VerifyCommand command = request;
  std::vector<VerifyCase> cases;
  if (command.files.weights.empty()) {
    const Status status = verify_random(command, cases);
    if (!status.ok()) return fail_usage(status);
  } else if (const int code = verify_files(command, cases); code != 0) {
    return code;
  }
  if (command.json) {
    print(dump(verify_json(cases)));
  } else {
    const Style style = stdout_style();
    print_styled(verify_table(cases, strategies_of(command), style));
    print(with_long_lines_broken(
        "\nok: every compared element within its bound (n%: the worst uses so much of it)\n"
        "-: skipped\nfp8: relative L2 distance from a checked result\n",
        style.width));
  }
  return talk_about(command, cases);
}

}  // namespace dualgemm::cli
