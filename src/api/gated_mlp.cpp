// GatedMlp: the steps of mlp_parts.hpp, planned together and run one after the other.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "api/backend.hpp"
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

// X by index where that takes no other kernel.
Expected<Plan> plan_gate_up(const MlpProblem& problem, const PlanOptions& options) {
  Expected<Plan> by_index = make_plan(api::gate_up_problem_of(problem), options);
  if (!api::is_routed(problem)) return by_index;
  Expected<Plan> gathered = make_plan(api::gate_up_problem_of(problem, false), options);
  const bool same = by_index && gathered && by_index->isa == gathered->isa;
  return same || !gathered ? std::move(by_index) : std::move(gathered);
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

struct Products {
  api::CheckedRun gate_up, down;
};

// The steps of one call.
class Call {
 public:
  Call(const GatedMlp& mlp, const MlpBuffers& buffers, void* workspace)
      : mlp_(mlp),
        problem_(mlp.problem()),
        buffers_(buffers),
        workspace_(workspace),
        places_(api::workspace_of(problem_, mlp.gate_up(), mlp.down())),
        same_{.device = mlp.device(), .threads = mlp.gate_up().threads, .trusted_pointers = true} {}

  Expected<Products> check_products() const {
    auto* const bytes = static_cast<uint8_t*>(workspace_);
    const auto gate_up =
        api::check_run(mlp_.gate_up(),
                       api::gate_up_buffers_of(problem_, buffers_, places_, workspace_, by_index()),
                       bytes + places_.gate_up, mlp_.gate_up().workspace_bytes);
    if (!gate_up)
      return renamed_of_gate_up(problem_, gate_up.status(), {"prepared", "prepared_gate_up"});
    const auto down =
        api::check_run(mlp_.down(),
                       dual_buffers(api::down_problem_of(problem_),
                                    api::down_buffers_of(problem_, buffers_, places_, workspace_)),
                       bytes + places_.down, mlp_.down().workspace_bytes);
    if (!down) return api::renamed(down.status(), {{"prepared", "prepared_down"}});
    return Products{*gate_up, *down};
  }

  Status prepare_x() const {
    if (problem_.quantize_x) {
      return api::renamed(
          quantize(api::quantize_problem_of(problem_),
                   api::quantize_buffers_of(problem_, buffers_, places_, workspace_), same_),
          {{"global", "x_global"}});
    }
    if (!api::stores_x(problem_)) return {};
    return transform_rows(api::transform_x_problem_of(problem_),
                          api::transform_x_buffers_of(buffers_, places_, workspace_), same_);
  }

  Status route() const {
    DUALGEMM_TRY(route_tokens(api::routing_problem_of(problem_),
                              api::routing_buffers_of(problem_, buffers_, places_, workspace_),
                              same_));
    if (by_index()) return {};
    for (const core::Gather& gather : api::gathers_of(problem_, buffers_, places_, workspace_))
      DUALGEMM_TRY(api::backend_of(mlp_.device()).gather_rows(gather, buffers_.stream));
    return {};
  }

  Status prepare_h() const {
    if (api::quantizes_h_apart(problem_)) {
      return quantize(api::quantize_h_problem_of(problem_),
                      api::quantize_h_buffers_of(problem_, buffers_, places_, workspace_), same_);
    }
    if (!problem_.h_transform.any()) return {};
    return transform_rows(api::transform_h_problem_of(problem_),
                          api::transform_h_buffers_of(buffers_, places_, workspace_), same_);
  }

  Status combine() const {
    return combine_tokens(api::combine_problem_of(problem_),
                          api::combine_buffers_of(problem_, buffers_, places_, workspace_), same_);
  }

 private:
  bool by_index() const { return mlp_.gate_up().problem.a_rows > 0; }

  const GatedMlp& mlp_;
  const MlpProblem& problem_;
  const MlpBuffers& buffers_;
  void* workspace_;
  const api::MlpWorkspace places_;
  const ExecutionOptions same_;  // the arrays of the steps beside the products have been looked at
};

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
    Expected<Plan> gate_up = plan_gate_up(problem, options);
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
    const Call call{*this, buffers, workspace};
    const bool routed = api::is_routed(problem_);
    // On the CPU the experts' rows are looked at, which are there when ids have been routed.
    std::optional<Expected<Products>> products;
    if (!routed) {
      products.emplace(call.check_products());
      if (!*products) return products->status();
    }
    if (problem_.m == 0) return {};  // experts without any token
    if (!gate_up_.trusted_pointers)
      DUALGEMM_TRY(api::check_places(gate_up_.device, problem_, buffers, workspace));
    DUALGEMM_TRY(call.prepare_x());
    if (routed) {
      DUALGEMM_TRY(call.route());
      products.emplace(call.check_products());
      if (!*products) return products->status();
    }
    DUALGEMM_TRY(
        renamed_of_gate_up(problem_, api::run_checked((*products)->gate_up, nullptr), {"a", "x"}));
    DUALGEMM_TRY(call.prepare_h());
    DUALGEMM_TRY(api::renamed(api::run_checked((*products)->down, nullptr),
                              {{"gate", "down"}, {"up", "down"}, {"d", "y"}}));
    return routed ? call.combine() : Status();
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
  if (api::is_routed(p)) {
    text += fmt::format("{}. {} ids of each token to rows of experts\n", ++step, p.top_k);
    if (gate_up_.problem.a_rows == 0) text += fmt::format("{}. rows of x, gathered\n", ++step);
  }
  text += fmt::format("{}. {}: {}\n", ++step, p.gated ? "gate and up" : "up", gate_up_.config());
  text += indented(gate_up_.explain());
  if (p.h_transform.any() || api::quantizes_h_apart(p)) {
    text += fmt::format("{}. h{}{}\n", ++step, text_of(p.h_transform),
                        p.quantize_h ? " to nvfp4, global scale: row" : "");
  }
  text += fmt::format("{}. down: {}\n", ++step, down_.config());
  text += indented(down_.explain());
  if (api::is_routed(p)) text += fmt::format("{}. y: the weighted sums of rows\n", ++step);
  return text + fmt::format("workspace: {} bytes\n", workspace_bytes_);
}

}  // namespace dualgemm
