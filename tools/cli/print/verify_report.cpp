#include "tools/cli/print/verify_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

std::string cell(const VerifyResult& result, DataType d_type) {
  if (result.skipped()) return "-";
  if (!result.error.ok()) return "ERROR";
  if (result.fp8)
    return fmt::format("{}{:.1e}", result.failed() ? "WRONG " : "", result.fp8->rel_l2);
  if (result.failed()) return "WRONG";
  return d_type == DataType::kF32 ? fmt::format("ok {:.0f}%", 100.0 * result.check->worst_share)
                                  : "ok";
}

const char* state(const VerifyResult& result) {
  if (result.skipped()) return "skipped";
  if (!result.error.ok()) return "error";
  return result.failed() ? "wrong" : "ok";
}

// For sh: in single quotes unless it is plain.
std::string quoted(const std::string& text) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+=:,@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string source_options(const VerifyCommand& command, const VerifyCase& item) {
  if (command.files.weights.empty()) {
    const Problem& p = item.problem;
    return fmt::format(" --m {} --n {} --k {} --l {} --seed {}", p.m, p.n, p.k, p.l, item.seed);
  }
  const LayerFiles& files = command.files;
  std::string text =
      " --weights " + quoted(files.weights) + " --activations " + quoted(files.activations);
  if (!files.prefix.empty()) text += " --prefix " + quoted(files.prefix);
  if (!files.activations_tensor.empty())
    text += " --activations-tensor " + quoted(files.activations_tensor);
  if (files.u2_is_bf16) text += " --u2-is-bf16";
  if (files.max_input_scale) text += " --max-input-scale";
  if (files.allow_nan) text += " --allow-nan";
  if (files.stacked_order == checkpoint::StackedOrder::kUpFirst)
    text += " --stacked-order up_first";
  return text;
}

std::string problem_options(const ProblemOptions& problem) {
  std::string text =
      fmt::format(" --a-type {} --d-type {} --scale-layout {} --act {}", name_of(problem.a_type),
                  name_of(problem.d_type), name_of(problem.scale_layout), name_of(problem.act));
  if (problem.act_alpha) text += fmt::format(" --act-alpha {}", *problem.act_alpha);
  if (problem.act_beta) text += fmt::format(" --act-beta {}", *problem.act_beta);
  if (problem.act_limit) text += fmt::format(" --act-limit {}", *problem.act_limit);
  if (problem.batch_invariant) text += " --batch-invariant";
  if (problem.bias != BiasType::kNone) text += fmt::format(" --bias {}", name_of(problem.bias));
  if (problem.grouping != Grouping::kNone)
    text += fmt::format(" --grouping {}", name_of(problem.grouping));
  return text;
}

}  // namespace

bool VerifyResult::failed() const {
  if (!error.ok()) return !skipped();
  if (fp8) return !fp8->is_fp8_rounding();
  return !check || !check->passed();
}

std::string name_of(const VerifyCase& item) {
  const Problem& p = item.problem;
  std::string text = fmt::format("{} x {} x {} x {}", p.m, p.n, p.k, p.l);
  if (p.grouping == Grouping::kNone) return text;
  return text + fmt::format(", {}, rows {}", name_of(p.grouping), verify::name_of(item.rows));
}

std::string verify_table(const std::vector<VerifyCase>& cases,
                         const std::vector<StrategyId>& strategies, const Style& style) {
  std::vector<Column> columns = {{"M"}, {"N"}, {"K"}, {"L"}, {"seed"}};
  const bool groups = !cases.empty() && cases.front().problem.grouping != Grouping::kNone;
  if (groups) columns.push_back({"rows"});
  const size_t keys = columns.size();  // what names a problem
  for (const StrategyId strategy : strategies) columns.push_back({name_of(strategy)});
  Table table(std::move(columns), keys);
  for (const VerifyCase& item : cases) {
    const Problem& p = item.problem;
    std::vector<std::string> row;
    for (const int64_t extent : {p.m, p.n, p.k, p.l}) row.push_back(std::to_string(extent));
    row.push_back(std::to_string(item.seed));
    if (groups) row.push_back(verify::name_of(item.rows));
    for (const VerifyResult& result : item.results) row.push_back(cell(result, p.d.type));
    table.add_row(std::move(row));
  }
  return table.text(style);
}

Json verify_json(const std::vector<VerifyCase>& cases) {
  Json list = Json::array();
  bool passed = true;
  for (const VerifyCase& item : cases) {
    Json results = Json::array();
    for (const VerifyResult& result : item.results) {
      Json entry = {{"strategy", name_of(result.strategy)},
                    {"status", state(result)},
                    {"config", result.config}};
      if (!result.error.ok()) entry["reason"] = result.error.message();
      if (result.check) entry["check"] = to_json(*result.check);
      if (result.fp8) entry["rel_l2"] = number(result.fp8->rel_l2);
      results.push_back(std::move(entry));
      passed = passed && !result.failed();
    }
    Json entry = {
        {"problem", to_json(item.problem)}, {"seed", item.seed}, {"results", std::move(results)}};
    if (item.problem.grouping != Grouping::kNone) entry["rows"] = verify::name_of(item.rows);
    list.push_back(std::move(entry));
  }
  return {{"passed", passed}, {"cases", std::move(list)}, {"build", provenance()}};
}

std::string reproduction(const VerifyCommand& command, const VerifyCase& item,
                         StrategyId strategy) {
  const ExecutionOptions& execution = command.execution;
  std::string text =
      "dualgemm verify" + source_options(command, item) + problem_options(command.problem);
  text += fmt::format(" --strategy {} --isa {} --threads {}", name_of(strategy),
                      name_of(execution.isa), execution.threads);
  if (execution.device != DeviceKind::kAuto)
    text += fmt::format(" --device {}", name_of(execution.device));
  if (command.row_experts) text += " --row-experts";
  if (execution.prepared) text += " --prepared";
  if (!execution.config.empty()) text += " --config " + quoted(execution.config);
  if (command.samples > 0) text += fmt::format(" --samples {}", command.samples);
  return text;
}

}  // namespace dualgemm::cli
