// GatedMlp: the steps of mlp_parts.hpp, planned together and run one after the other.
#include <fmt/format.h>

#include <string>

#include "api/checked_run.hpp"
#include "api/guarded.hpp"
#include "api/mlp_checks.hpp"
#include "api/mlp_parts.hpp"
#include "dualgemm/mlp.hpp"

namespace dualgemm {
namespace {

using api::guarded;

Status check_options(const PlanOptions& options) {
  const char* const rule = "must be left to the plans of the two products";
  if (options.strategy != StrategyId::kAuto) {
    return Status::invalid("strategy", name_of(options.strategy), rule);
  }
  return options.config.empty() ? Status() : Status::invalid("config", options.config, rule);
}

std::string indented(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && c != '\n') out += "  ";
    out += c;
    begins = c == '\n';
  }
  if (!begins) out += '\n';
  return out;
}

std::string text_of(const RowTransform& transform) {
  std::string text;
  if (transform.factors) text += " times factors of its columns";
  if (transform.hadamard == 0) return text;
  return text + fmt::format("{} times Hadamard matrices of {}", transform.factors ? "," : "",
                            transform.hadamard);
}

std::string type_of(bool quantized, DataType type) {
  return quantized ? std::string("nvfp4") : name_of(type);
}

// Without a gate both operands are halves of Up.
Status renamed_of_gate_up(const MlpProblem& problem, const Status& status, api::Renamed also) {
  if (problem.gated) return api::renamed(status, {also});
  return api::renamed(status, {also,
                               {"gate", "up"},
                               {"gate_scales", "up_scales"},
                               {"alpha_gate_per_batch", "alpha_up_per_batch"},
                               {"bias_gate", "bias_up"}});
}

}  // namespace

Status validate(const MlpProblem& problem) {
  return guarded([&] { return api::check_problem(problem); });
}

Status validate(const MlpProblem& problem, const MlpBuffers& buffers) {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(api::check_problem(problem));
    DUALGEMM_TRY(api::check_arrays(problem, buffers, false, nullptr, 0));
    return api::check_experts(problem, buffers);
  });
}

Expected<GatedMlp> GatedMlp::plan(const MlpProblem& problem, const PlanOptions& options) {
  return guarded([&]() -> Expected<GatedMlp> {
    DUALGEMM_TRY(check_options(options));
    DUALGEMM_TRY(api::check_problem(problem));
    GatedMlp mlp;
    mlp.problem_ = problem;
    Expected<Plan> gate_up = make_plan(api::gate_up_problem_of(problem), options);
    if (!gate_up) return gate_up.status();
    Expected<Plan> down = make_plan(api::down_problem_of(problem), options);
    if (!down) return down.status();
    mlp.gate_up_ = *std::move(gate_up);
    mlp.down_ = *std::move(down);
    mlp.workspace_bytes_ = api::workspace_of(problem, mlp.gate_up_, mlp.down_).bytes;
    return mlp;
  });
}

Buffers GatedMlp::gate_up_weights(const MlpBuffers& buffers) const {
  Buffers to = api::gate_up_weights_of(problem_, buffers);
  to.stream = buffers.stream;
  return to;
}

Buffers GatedMlp::down_weights(const MlpBuffers& buffers) const {
  LinearBuffers to;
  to.w = buffers.down;
  to.w_scales = buffers.down_scales;
  to.stream = buffers.stream;
  return dual_buffers(api::down_problem_of(problem_), to);
}

Status GatedMlp::run(const MlpBuffers& buffers, void* workspace, int64_t workspace_bytes) const {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(api::check_workspace(workspace, workspace_bytes, workspace_bytes_));
    DUALGEMM_TRY(
        api::check_arrays(problem_, buffers, gate_up_.prepared, workspace, workspace_bytes_));
    const api::MlpWorkspace places = api::workspace_of(problem_, gate_up_, down_);
    auto* const bytes = static_cast<uint8_t*>(workspace);
    const auto gate_up =
        api::check_run(gate_up_, api::gate_up_buffers_of(problem_, buffers, places, workspace),
                       bytes + places.gate_up, gate_up_.workspace_bytes);
    if (!gate_up)
      return renamed_of_gate_up(problem_, gate_up.status(), {"prepared", "prepared_gate_up"});
    const auto down =
        api::check_run(down_,
                       dual_buffers(api::down_problem_of(problem_),
                                    api::down_buffers_of(problem_, buffers, places, workspace)),
                       bytes + places.down, down_.workspace_bytes);
    if (!down) return api::renamed(down.status(), {{"prepared", "prepared_down"}});
    if (problem_.m == 0) return {};  // experts without any token
    if (!gate_up_.trusted_pointers)
      DUALGEMM_TRY(api::check_places(gate_up_.device, problem_, buffers, workspace));
    // The arrays of the steps beside the products have been looked at.
    const ExecutionOptions same{
        .device = gate_up_.device, .threads = gate_up_.threads, .trusted_pointers = true};
    if (problem_.quantize_x) {
      const QuantizeBuffers x = api::quantize_buffers_of(problem_, buffers, places, workspace);
      DUALGEMM_TRY(api::renamed(quantize(api::quantize_problem_of(problem_), x, same),
                                {{"global", "x_global"}}));
    } else if (api::stores_x(problem_)) {
      DUALGEMM_TRY(transform_rows(api::transform_x_problem_of(problem_),
                                  api::transform_x_buffers_of(buffers, places, workspace), same));
    }
    DUALGEMM_TRY(renamed_of_gate_up(problem_, api::run_checked(*gate_up, nullptr), {"a", "x"}));
    if (api::quantizes_h_apart(problem_)) {
      DUALGEMM_TRY(quantize(api::quantize_h_problem_of(problem_),
                            api::quantize_h_buffers_of(buffers, places, workspace), same));
    } else if (problem_.h_transform.any()) {
      DUALGEMM_TRY(transform_rows(api::transform_h_problem_of(problem_),
                                  api::transform_h_buffers_of(buffers, places, workspace), same));
    }
    return api::renamed(api::run_checked(*down, nullptr),
                        {{"gate", "down"}, {"up", "down"}, {"d", "y"}});
  });
}

std::string GatedMlp::explain() const {
  const MlpProblem& p = problem_;
  std::string text =
      fmt::format("{}: m {}, hidden {}, intermediate {}, l {}, {}; x {} -> h {} -> y {}, {}\n",
                  p.gated ? "gated MLP" : "MLP without a gate", p.m, p.hidden, p.intermediate, p.l,
                  name_of(p.grouping), type_of(p.quantize_x, p.x.type),
                  type_of(p.quantize_h, p.x.type), name_of(p.y.type), name_of(p.act.kind));
  int step = 0;
  if (p.quantize_x) {
    text += fmt::format("{}. x{} to nvfp4, global scale: {}\n", ++step, text_of(p.x_transform),
                        name_of(p.x_scaling));
  } else if (p.x_transform.any()) {
    text += fmt::format("{}. x{}\n", ++step, text_of(p.x_transform));
  }
  text += fmt::format("{}. {}: {}\n", ++step, p.gated ? "gate and up" : "up", gate_up_.config());
  text += indented(gate_up_.explain());
  if (p.h_transform.any()) {
    text += fmt::format("{}. h{}{}\n", ++step, text_of(p.h_transform),
                        p.quantize_h ? " to nvfp4, global scale: row" : "");
  }
  text += fmt::format("{}. down: {}\n", ++step, down_.config());
  text += indented(down_.explain());
  return text + fmt::format("workspace: {} bytes\n", workspace_bytes_);
}

}  // namespace dualgemm
