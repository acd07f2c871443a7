#include "tools/cli/commands/run_experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/problem.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/checkpoint_jobs/expert_problem.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/verify/check.hpp"

namespace dualgemm::cli {
namespace {

struct Outcome {
  double seconds = 0.0;
  RunInfo info;
  std::optional<verify::CheckReport>
      check;  // of all experts' rows, and that no others were written

  bool wrong() const { return check && !check->passed(); }
};

int64_t experts_with_rows(const checkpoint::ExpertProblem& layer) {
  return std::count_if(layer.rows.begin(), layer.rows.end(), [](int64_t rows) { return rows > 0; });
}

// Rows that belong to no expert stay as they are in a run; in a file they are 0.
void clear_unused_rows(const checkpoint::ExpertProblem& layer, verify::Output& output) {
  if (layer.problem.grouping != Grouping::kMasked) return;
  const int64_t row_bytes = core::bytes_of(layer.problem.d.type, layer.problem.n);
  for (int64_t expert = 0; expert < layer.problem.l; ++expert) {
    const int64_t used = layer.rows[static_cast<size_t>(expert)];
    std::memset(output.d.data() + (expert * layer.problem.m + used) * row_bytes, 0,
                static_cast<size_t>((layer.problem.m - used) * row_bytes));
  }
}

Status write_output(const RunCommand& command, const checkpoint::ExpertProblem& layer,
                    const verify::Output& output) {
  if (command.out.empty()) return {};
  const Problem& problem = layer.problem;
  checkpoint::TensorView view;
  view.name = "d";
  view.dtype = checkpoint::element_type(problem.d.type);
  view.shape = {problem.m, problem.n};
  if (problem.grouping == Grouping::kMasked) view.shape.insert(view.shape.begin(), problem.l);
  view.data = {reinterpret_cast<const std::byte*>(output.d.data()),
               static_cast<size_t>(core::bytes_of(problem.d.type, view.elements()))};
  checkpoint::TensorFile file;
  DUALGEMM_TRY(file.add(view));
  return write_tensors(command.out, file);
}

std::string check_line(const checkpoint::ExpertProblem& layer, const Outcome& outcome) {
  if (!outcome.wrong())
    return fmt::format("ok, {} elements of {} experts within the bound", outcome.check->compared,
                       experts_with_rows(layer));
  const std::string text = verdict(*outcome.check, layer.problem.d.type);
  if (outcome.check->failed == 0) return text;
  return text + fmt::format("; the worst is expert {}'s", outcome.check->worst_batch);
}

void report(const RunCommand& command, const checkpoint::ExpertProblem& layer, const Plan& plan,
            const Outcome& outcome) {
  const Problem& problem = layer.problem;
  if (command.json) {
    Json json = {{"layer", layer.prefix},
                 {"experts", problem.l},
                 {"grouping", name_of(problem.grouping)},
                 {"rows", layer.rows},
                 {"notes", layer.notes},
                 {"plan", to_json(plan)},
                 {"milliseconds", outcome.seconds * 1e3},
                 {"threads", outcome.info.threads},
                 {"out", command.out},
                 {"build", provenance()}};
    if (command.check)
      json["check"] = {{"passed", !outcome.wrong()},
                       {"experts", experts_with_rows(layer)},
                       {"compared", outcome.check->compared}};
    print(dump(json));
    return;
  }
  const auto line = [](const char* name, const std::string& value) {
    print(fmt::format("{:<13} {}\n", name, value));
  };
  line("layer",
       fmt::format("{}, {} experts, {}", layer.prefix, problem.l, name_of(problem.grouping)));
  line("problem",
       fmt::format("M {}{}, N {}, K {}, {} x e2m1 -> {}, {}", problem.m,
                   problem.grouping == Grouping::kMasked ? " each" : "", problem.n, problem.k,
                   name_of(problem.a.type), name_of(problem.d.type), name_of(problem.act.kind)));
  line("plan", plan.config());
  line("time",
       fmt::format("{:.3f} ms, once, {} threads", outcome.seconds * 1e3, outcome.info.threads));
  if (command.check) line("check", check_line(layer, outcome));
  if (!command.out.empty()) line("written", command.out);
}

}  // namespace

int run_experts(const RunCommand& command) {
  const Problem request = command.problem.problem(0, 0, 0, 1);
  Expected<checkpoint::ExpertProblem> layer =
      checkpoint::open_expert_problem(layer_source(command.files), command.expert_tokens,
                                      command.masked, request, command.execution.threads);
  if (!layer) return fail(layer.status());
  for (const std::string& note : layer->notes) talk(note);
  Expected<verify::Output> output = verify::allocate_output(layer->problem);
  if (!output) return fail_usage(output.status());
  Buffers buffers = layer->buffers;
  output->attach_to(buffers);
  Expected<ReadyRun> ready =
      ReadyRun::make(layer->problem, buffers, command.strategy, command.execution);
  if (!ready) return fail_usage(ready.status());
  if (command.dry_run) return end_dry_run({command.out}, command.json);
  Outcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  if (const Status status = ready->run(&outcome.info); !status.ok()) return fail(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (command.check) {
    const Expected<verify::CheckReport> check = verify::check_result(
        layer->problem, buffers, outcome.info.isa, {.unwritten = verify::kUnwritten});
    if (!check) return fail(check.status());
    outcome.check = *check;
  }
  clear_unused_rows(*layer, *output);
  if (!outcome.wrong()) {
    if (const Status status = write_output(command, *layer, *output); !status.ok())
      return fail(status);
  }
  report(command, *layer, ready->plan(), outcome);
  if (!outcome.wrong()) return 0;
  talk("the result does not agree with the oracle; nothing written",
       failure_details(*outcome.check));
  return 1;
}

}  // namespace dualgemm::cli
