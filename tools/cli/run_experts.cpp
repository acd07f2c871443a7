#include "tools/cli/run_experts.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "core/problem.hpp"
#include "tools/checkpoint/element_types.hpp"
#include "tools/checkpoint/expert_problem.hpp"
#include "tools/cli/check_text.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/layer_source.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/ready_run.hpp"
#include "tools/cli/report.hpp"
#include "tools/verify/check.hpp"

namespace dualgemm::cli {
namespace {

struct Outcome {
  double seconds = 0.0;
  RunInfo info;
  int64_t checked = 0, compared = 0;                // experts, elements
  int64_t wrong_expert = -1;                        // the first one
  std::optional<verify::CheckReport> wrong_report;  // of it
};

// Each expert that has rows against the oracle, as a problem of its own.
Status check_experts(const checkpoint::ExpertProblem& layer, const verify::Output& output,
                     Outcome& outcome) {
  for (int64_t expert = 0; expert < layer.problem.l; ++expert) {
    if (layer.rows[static_cast<size_t>(expert)] == 0) continue;
    const Expected<verify::CheckReport> report = verify::check_result(
        layer.problem_of(expert), layer.buffers_of(expert, output.d.data()), outcome.info.isa);
    if (!report) return report.status();
    ++outcome.checked;
    outcome.compared += report->compared;
    if (report->passed() || outcome.wrong_expert >= 0) continue;
    outcome.wrong_expert = expert;
    outcome.wrong_report = *report;
  }
  return {};
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
  // allocate_output() gives every batch m rows; groups that share m rows need only the first m.
  view.data = {reinterpret_cast<const std::byte*>(output.d.data()),
               static_cast<size_t>(core::bytes_of(problem.d.type, view.elements()))};
  checkpoint::TensorFile file;
  DUALGEMM_TRY(file.add(view));
  return write_tensors(command.out, file);
}

std::string check_line(const Outcome& outcome) {
  if (outcome.wrong_expert >= 0) return fmt::format("WRONG: expert {}", outcome.wrong_expert);
  return fmt::format("ok, {} elements of {} experts within the bound", outcome.compared,
                     outcome.checked);
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
      json["check"] = {{"passed", outcome.wrong_expert < 0},
                       {"experts", outcome.checked},
                       {"compared", outcome.compared}};
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
  if (command.check) line("check", check_line(outcome));
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
  Outcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  if (const Status status = ready->run(&outcome.info); !status.ok()) return fail(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (command.check) {
    if (const Status status = check_experts(*layer, *output, outcome); !status.ok())
      return fail(status);
  }
  clear_unused_rows(*layer, *output);
  if (outcome.wrong_expert < 0) {
    if (const Status status = write_output(command, *layer, *output); !status.ok())
      return fail(status);
  }
  report(command, *layer, ready->plan(), outcome);
  if (outcome.wrong_expert < 0) return 0;
  talk("the result does not agree with the oracle; nothing written\n" +
       failure_details(*outcome.wrong_report));
  return 1;
}

}  // namespace dualgemm::cli
