#include <fmt/format.h>

#include <chrono>

#include "tools/checkpoint_jobs/layer_problem.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/commands/run_experts.hpp"
#include "tools/cli/commands/run_mlp.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/verify/check.hpp"

namespace dualgemm::cli {
namespace {

struct Outcome {
  double seconds = 0.0;
  RunInfo info;
  std::optional<verify::CheckReport> check;
};

void print_text(const RunCommand& command, const checkpoint::LayerProblem& layer, const Plan& plan,
                const Outcome& outcome) {
  const auto line = [](const char* name, const std::string& value) {
    print(fmt::format("{:<13} {}\n", name, value));
  };
  const Problem& problem = layer.problem;
  const std::string expert =
      command.files.expert ? fmt::format(", expert {}", *command.files.expert) : "";
  line("layer", fmt::format("{}{} ({}{})", layer.prefix, expert, checkpoint::stored_as(layer.layer),
                            layer.layer.stacked ? ", stacked" : ""));
  line("problem",
       fmt::format("M {}, N {}, K {}, {} x e2m1 -> {}, {}", problem.m, problem.n, problem.k,
                   name_of(problem.a.type), name_of(problem.d.type), name_of(problem.act.kind)));
  line("plan", plan.config());
  line("time",
       fmt::format("{:.3f} ms, once, {} threads", outcome.seconds * 1e3, outcome.info.threads));
  line("intermediates", format_bytes(outcome.info.intermediate_bytes));
  if (outcome.check) line("check", verdict(*outcome.check, problem.d.type));
  if (!command.out.empty()) line("written", command.out);
}

void print_json(const RunCommand& command, const checkpoint::LayerProblem& layer, const Plan& plan,
                const Outcome& outcome) {
  Json json = {{"layer", layer.prefix},
               {"convention", checkpoint::stored_as(layer.layer)},
               {"notes", layer.notes},
               {"plan", to_json(plan)},
               {"milliseconds", outcome.seconds * 1e3},
               {"threads", outcome.info.threads},
               {"intermediate_bytes", outcome.info.intermediate_bytes},
               {"out", command.out},
               {"build", provenance()}};
  if (outcome.check) json["check"] = to_json(*outcome.check);
  print(dump(json));
}

Status run_and_check(const RunCommand& command, const checkpoint::LayerProblem& layer,
                     ReadyRun& ready, Outcome& outcome) {
  const auto begin = std::chrono::steady_clock::now();
  DUALGEMM_TRY(ready.run(&outcome.info));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!command.check) return {};
  const Expected<verify::CheckReport> check =
      verify::check_result(layer.problem, ready.buffers(), outcome.info.isa);
  if (!check) return check.status();
  outcome.check = *check;
  return {};
}

Status write_output(const RunCommand& command, const Problem& problem,
                    const verify::Output& output) {
  if (command.out.empty()) return {};
  const Expected<checkpoint::TensorFile> file = checkpoint::output_tensors(problem, output, "d");
  if (!file) return file.status();
  return write_tensors(command.out, *file);
}

}  // namespace

int execute(const RunCommand& command) {
  if (!command.out.empty()) {
    if (const Status status = check_output_name(command.out); !status.ok())
      return fail_usage(status);
    if (is_npy(command.out) && command.problem.d_type == DataType::kE2M1) {
      return fail_usage(Status::invalid("--out", command.out,
                                        "--d-type e2m1 has scales too and needs .safetensors"));
    }
  }
  if (const Status status = check_different_files(
          {{"--out", command.out}},
          {command.files.weights, command.files.activations, command.expert_tokens});
      !status.ok()) {
    return fail_usage(status);
  }
  if (command.mlp) return run_mlp(command);
  if (command.experts) return run_experts(command);
  const Problem request = command.problem.problem(0, 0, 0, 1);
  Expected<checkpoint::LayerProblem> layer = checkpoint::open_layer_problem(
      layer_source(command.files), request, command.execution.threads);
  if (!layer) return fail(layer.status());
  for (const std::string& note : layer->notes) talk(note);

  Expected<verify::Output> output = verify::allocate_output(layer->problem);
  if (!output)
    return fail_usage(
        output.status());  // validates: what the files leave open came from the options
  output->d_global_scale =
      command.d_global_scale == 0.0 ? 1.0f : static_cast<float>(command.d_global_scale);
  Buffers buffers = layer->buffers;
  output->attach_to(buffers);
  Expected<ReadyRun> ready =
      ReadyRun::make(layer->problem, buffers, command.strategy, command.execution);
  if (!ready) return fail_usage(ready.status());
  if (command.dry_run) return end_dry_run({command.out}, command.json);

  Outcome outcome;
  if (const Status status = run_and_check(command, *layer, *ready, outcome); !status.ok())
    return fail(status);
  const bool wrong = outcome.check && !outcome.check->passed();
  if (!wrong) {
    if (const Status status = write_output(command, layer->problem, *output); !status.ok())
      return fail(status);
  }
  command.json ? print_json(command, *layer, ready->plan(), outcome)
               : print_text(command, *layer, ready->plan(), outcome);
  if (!wrong) return 0;
  talk("the result does not agree with the oracle; nothing written",
       failure_details(*outcome.check));
  return 1;
}

}  // namespace dualgemm::cli
