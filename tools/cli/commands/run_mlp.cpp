#include "tools/cli/commands/run_mlp.hpp"

#include <fmt/format.h>

#include <chrono>

#include "core/problem.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/checkpoint_jobs/mlp_problem.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/verify/check_mlp.hpp"
#include "tools/verify/mlp_run.hpp"

namespace dualgemm::cli {
namespace {

struct MlpOutcome {
  double seconds = 0.0;
  std::optional<verify::CheckReport> check;
};

checkpoint::MlpRequest request_of(const RunCommand& command) {
  checkpoint::MlpRequest request;
  // E2M1 is what --a-type is where it was not given; --quantize-x asks for NVFP4.
  if (command.problem.a_type != DataType::kE2M1) request.x_type = command.problem.a_type;
  request.y_type = command.problem.d_type;
  request.act = command.problem.activation();
  request.batch_invariant = command.problem.batch_invariant;
  request.quantize_x = command.quantize_x;
  request.quantize_h = command.quantize_h;
  request.h_global_scale = static_cast<float>(command.h_global_scale);
  request.experts = command.experts;
  request.expert_rows = command.expert_tokens;
  request.masked = command.masked;
  return request;
}

// Zeros: rows that belong to no expert are 0 in the file.
Expected<verify::AlignedBytes> allocate_y(const MlpProblem& problem) {
  const int64_t batches = problem.grouping == Grouping::kContiguous ? 1 : problem.l;
  return verify::allocate_filled(
      core::bytes_of(problem.y.type, batches * problem.m * problem.hidden), 0);
}

Status run_and_check(const RunCommand& command, const checkpoint::MlpFromFiles& layer,
                     const MlpBuffers& buffers, verify::MlpRun& ready, MlpOutcome& outcome) {
  const auto begin = std::chrono::steady_clock::now();
  DUALGEMM_TRY(ready.run());
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!command.check) return {};
  const Expected<verify::CheckReport> check =
      verify::check_mlp(layer.problem, buffers, ready.mlp().gate_up().isa, ready.mlp().down().isa);
  if (!check) return check.status();
  outcome.check = *check;
  return {};
}

// Experts may all be without rows: then there was nothing to compare.
bool is_wrong(const MlpOutcome& outcome) { return outcome.check && outcome.check->failed > 0; }

Status write_y(const RunCommand& command, const MlpProblem& problem,
               const verify::AlignedBytes& y) {
  if (command.out.empty()) return {};
  checkpoint::TensorView view;
  view.name = "y";
  view.dtype = checkpoint::element_type(problem.y.type);
  view.shape = {problem.m, problem.hidden};
  if (problem.grouping == Grouping::kMasked) view.shape.insert(view.shape.begin(), problem.l);
  view.data = {reinterpret_cast<const std::byte*>(y.data()), static_cast<size_t>(y.size())};
  checkpoint::TensorFile file;
  DUALGEMM_TRY(file.add(view));
  return write_tensors(command.out, file);
}

void print_text(const RunCommand& command, const checkpoint::MlpFromFiles& layer,
                const GatedMlp& mlp, const MlpOutcome& outcome) {
  const auto line = [](const char* name, const std::string& value) {
    print(fmt::format("{:<13} {}\n", name, value));
  };
  const MlpProblem& p = layer.problem;
  std::string which = layer.prefix;
  if (command.files.expert) which += fmt::format(", expert {}", *command.files.expert);
  if (command.experts) which += fmt::format(", {} experts, {}", p.l, name_of(p.grouping));
  const auto stored = [&](bool quantized) { return quantized ? "e2m1" : name_of(p.x.type); };
  line("layer", which);
  line("problem", fmt::format("M {}{}, hidden {}, intermediate {}, X {} -> H {} -> Y {}, {}", p.m,
                              p.grouping == Grouping::kMasked ? " each" : "", p.hidden,
                              p.intermediate, stored(p.quantize_x), stored(p.quantize_h),
                              name_of(p.y.type), name_of(p.act.kind)));
  line(p.gated ? "gate and up" : "up", mlp.gate_up().config());
  line("down", mlp.down().config());
  line("workspace", format_bytes(mlp.workspace_bytes()));
  line("time", fmt::format("{:.3f} ms, once", outcome.seconds * 1e3));
  if (outcome.check) {
    line("check", outcome.check->compared == 0 ? "ok, no rows to compare"
                                               : verdict(*outcome.check, p.y.type));
  }
  if (!command.out.empty()) line("written", command.out);
}

void print_json(const RunCommand& command, const checkpoint::MlpFromFiles& layer,
                const GatedMlp& mlp, const MlpOutcome& outcome) {
  const MlpProblem& p = layer.problem;
  Json json = {{"layer", layer.prefix},
               {"hidden", p.hidden},
               {"intermediate", p.intermediate},
               {"experts", p.l},
               {"grouping", name_of(p.grouping)},
               {"gated", p.gated},
               {"rows", layer.rows},
               {"quantize_x", p.quantize_x},
               {"quantize_h", p.quantize_h},
               {"notes", layer.notes},
               {"gate_up", to_json(mlp.gate_up())},
               {"down", to_json(mlp.down())},
               {"workspace_bytes", mlp.workspace_bytes()},
               {"milliseconds", outcome.seconds * 1e3},
               {"out", command.out},
               {"build", provenance()}};
  if (outcome.check) {
    json["check"] = to_json(*outcome.check);
    json["check"]["passed"] = !is_wrong(outcome);
  }
  print(dump(json));
}

}  // namespace

int run_mlp(const RunCommand& command) {
  Expected<checkpoint::MlpFromFiles> layer =
      checkpoint::open_mlp_problem(layer_source(command.files), request_of(command));
  if (!layer) return fail(layer.status());
  for (const std::string& note : layer->notes) talk(note);
  const Expected<verify::AlignedBytes> y = allocate_y(layer->problem);
  if (!y) return fail(y.status());
  MlpBuffers buffers = layer->buffers;
  buffers.y = const_cast<uint8_t*>(y->data());
  Expected<verify::MlpRun> ready = verify::MlpRun::make(
      layer->problem, buffers, command.execution.plan_options(StrategyId::kAuto));
  if (!ready) return fail_usage(ready.status());
  if (command.dry_run) return end_dry_run({command.out}, command.json);
  MlpOutcome outcome;
  if (const Status status = run_and_check(command, *layer, buffers, *ready, outcome); !status.ok())
    return fail(status);
  if (!is_wrong(outcome)) {
    if (const Status status = write_y(command, layer->problem, *y); !status.ok())
      return fail(status);
  }
  command.json ? print_json(command, *layer, ready->mlp(), outcome)
               : print_text(command, *layer, ready->mlp(), outcome);
  if (!is_wrong(outcome)) return 0;
  talk("the result does not agree with the oracle; nothing written",
       failure_details(*outcome.check));
  return 1;
}

}  // namespace dualgemm::cli
