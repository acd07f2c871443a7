// Whole random MLPs whose padding, Y and workspace are poison.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/mlp_parts.hpp"
#include "dualgemm/mlp.hpp"
#include "support/every_activation.hpp"
#include "support/inputs.hpp"
#include "support/quantize_case.hpp"
#include "support/routing_case.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {

struct MlpCase {
  MlpProblem problem;
  core::ResolvedProblem gate_up;
  core::ResolvedMatrix gate_matrix, up_matrix, x_matrix, down_matrix, y_matrix;
  Operand x, gate, up, down, y;
  Guarded<uint8_t> residual;  // of Y's size
  Guarded<uint8_t> bias_gate, bias_up, bias_down;
  std::vector<float> x_global_scale, alpha_down_per_batch, x_factors, h_factors;
  std::vector<int32_t> expert_offsets, expert_rows, row_experts;
  RoutingCase router;  // of top_k
  float alpha_gate, alpha_up, alpha_down, h_global_scale;

  // `experts`: as for RandomCase.
  MlpCase(const MlpProblem& p, Rng& rng, std::vector<int32_t> experts = {})
      : problem(p),
        gate_up(core::resolve(api::gate_up_problem_of(p))),
        gate_matrix(core::resolve(p.gate, p.intermediate, p.hidden)),
        up_matrix(core::resolve(p.up, p.intermediate, p.hidden)),
        x_matrix(core::resolve(p.x, p.m, p.hidden)),
        down_matrix(core::resolve(p.down, p.hidden, p.intermediate)),
        y_matrix(core::resolve(p.y, p.m, p.hidden)),
        x(x_matrix, batches()),
        gate(gate_matrix, p.l),
        up(up_matrix, p.l),
        down(down_matrix, p.l),
        y(y_matrix, batches()),
        residual(p.residual ? y.data.size() : 0) {
    // Products of a deviation of about 2, whatever K is.
    const auto alpha = [&](int64_t k) {
      return rng.uniform(0.5f, 1.5f) / std::sqrt(static_cast<float>(k));
    };
    alpha_gate = alpha(p.hidden);
    alpha_up = alpha(p.hidden);
    alpha_down = alpha(p.intermediate);
    h_global_scale = rng.uniform(0.005f, 0.02f);
    x.randomize(x_matrix, batches(), rng, Values::kRandom);
    gate.randomize(gate_matrix, p.l, rng, Values::kRandom);
    up.randomize(up_matrix, p.l, rng, Values::kRandom);
    down.randomize(down_matrix, p.l, rng, Values::kRandom);
    if (p.residual) randomize_residual(rng);
    if (p.quantize_x && p.x_scaling != GlobalScaling::kRow) {
      const int64_t count = p.x_scaling == GlobalScaling::kGiven ? 1 : p.l;
      for (int64_t i = 0; i < count; ++i) x_global_scale.push_back(rng.uniform(0.001f, 0.01f));
      alpha_gate *= 0.005f;
      alpha_up *= 0.005f;
    }
    if (p.quantize_h && !api::quantizes_h_apart(p)) alpha_down *= h_global_scale;
    for (int64_t i = 0; p.x_transform.factors && i < p.hidden; ++i)
      x_factors.push_back(rng.uniform(0.5f, 1.5f));
    for (int64_t i = 0; p.h_transform.factors && i < p.intermediate; ++i)
      h_factors.push_back(rng.uniform(0.5f, 1.5f));
    if (p.l > 1 && rng.chance(0.5)) {
      for (int64_t i = 0; i < p.l; ++i)
        alpha_down_per_batch.push_back(alpha_down * rng.uniform(0.5f, 2.0f));
    }
    for (auto [bias, columns] : {std::pair{&bias_gate, p.intermediate},
                                 {&bias_up, p.intermediate},
                                 {&bias_down, p.hidden}}) {
      *bias = Guarded<uint8_t>(p.l * columns * core::bytes_of(p.bias));
      store_random_bias(*bias, p.bias, rng, Values::kRandom);
    }
    if (p.top_k > 0) route(rng);
    if (p.grouping == Grouping::kContiguous) {
      expert_offsets = experts.empty() ? random_expert_offsets(rng, p.l, p.m) : std::move(experts);
    }
    if (p.grouping == Grouping::kMasked)
      expert_rows = experts.empty() ? random_expert_rows(rng, p.l, p.m) : std::move(experts);
  }

  // Batches of X and Y.
  int64_t batches() const {
    return problem.top_k > 0 || problem.grouping == Grouping::kContiguous ? 1 : problem.l;
  }

  void route(Rng& rng) {
    router = routing_case(api::routing_problem_of(problem), rng, rng.chance(0.2));
    const auto bytes = router.count() * core::bytes_of(problem.weights_type, 1);
    router.weights.resize(rng.chance(0.1) ? 0 : static_cast<size_t>(bytes));
    randomize_weights(rng);
  }
  // Other ids and weights, where there were some.
  void reroute(Rng& rng) {
    router.ids = routing_case(router.problem, rng).ids;
    randomize_weights(rng);
  }

  // Rows that name their experts instead of offsets: a share of `unwanted` of no expert, in runs.
  void name_experts(Rng& rng, double unwanted = 0.2) {
    expert_offsets.clear();
    row_experts.resize(static_cast<size_t>(problem.m));
    int32_t expert = 0;
    for (int32_t& one : row_experts) {
      if (rng.chance(0.4)) expert = static_cast<int32_t>(rng.integer(0, problem.l - 1));
      one = rng.chance(unwanted) ? -1 : expert;
    }
  }

  MlpBuffers buffers() {
    const auto or_null = [](auto& array) { return array.empty() ? nullptr : array.data(); };
    MlpBuffers b{.x = x.data.data(),
                 .x_global_scale = or_null(x_global_scale),
                 .gate = gate.data.data(),
                 .gate_scales = gate.scales.data(),
                 .up = up.data.data(),
                 .up_scales = up.scales.data(),
                 .down = down.data.data(),
                 .down_scales = down.scales.data(),
                 .alpha_gate = alpha_gate,
                 .alpha_up = alpha_up,
                 .alpha_down = alpha_down,
                 .alpha_down_per_batch = or_null(alpha_down_per_batch),
                 .h_global_scale = h_global_scale,
                 .x_column_factors = or_null(x_factors),
                 .h_column_factors = or_null(h_factors),
                 .expert_offsets = or_null(expert_offsets),
                 .expert_rows = or_null(expert_rows),
                 .row_experts = or_null(row_experts),
                 .topk_ids = or_null(router.ids),
                 .expert_map = or_null(router.expert_map),
                 .topk_weights = or_null(router.weights),
                 .y = y.data.data()};
    if (problem.bias != BiasType::kNone) {
      b.bias_gate = bias_gate.data();
      b.bias_up = bias_up.data();
      b.bias_down = bias_down.data();
    }
    if (problem.residual) b.residual = residual.data();
    if (!problem.gated) b.gate = nullptr, b.gate_scales = nullptr, b.bias_gate = nullptr;
    return b;
  }

  std::string describe() const {
    const MlpProblem& p = problem;
    return std::string(name_of(p.grouping)) + (row_experts.empty() ? "" : " by rows") + ", m " +
           std::to_string(p.m) + " hidden " + std::to_string(p.hidden) + " intermediate " +
           std::to_string(p.intermediate) + " l " + std::to_string(p.l) + ", x " +
           name_of(p.x.type) + (p.quantize_x ? " quantised " : "") +
           (p.quantize_x ? name_of(p.x_scaling) : "") + (p.quantize_h ? ", h quantised " : "") +
           (p.quantize_h ? name_of(p.h_scaling) : "") +
           (p.x_transform.any() ? ", x transformed" : "") +
           (p.h_transform.any() ? ", h transformed" : "") + ", y " + name_of(p.y.type) + ", " +
           name_of(p.act.kind) + (p.gated ? "" : ", no gate") + ", bias " + name_of(p.bias) +
           (p.residual ? ", residual" : "") +
           (p.top_k > 0 ? ", routed: " + router.describe() : "") +
           (p.weights_on_input ? ", weights on the input" : "");
  }

 private:
  void randomize_weights(Rng& rng) {
    for (int64_t i = 0; !router.weights.empty() && i < router.count(); ++i)
      store_element(router.weights.data(), problem.weights_type, i, rng.uniform(0.0f, 1.0f));
  }
  void randomize_residual(Rng& rng) {
    for (int64_t batch = 0; batch < batches(); ++batch) {
      for (int64_t row = 0; row < problem.m; ++row) {
        for (int64_t col = 0; col < problem.hidden; ++col) {
          store_element(residual.data(), problem.y.type,
                        batch * y_matrix.batch_stride + row * y_matrix.ld + col, rng.normal());
        }
      }
    }
  }
};

// Small ones of every kind; the four ways to quantise in turn.
inline MlpProblem random_mlp_problem(Rng& rng, int64_t turn) {
  constexpr DataType kHalves[] = {DataType::kF16, DataType::kBF16};
  constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  constexpr GlobalScaling kScalings[] = {GlobalScaling::kRow, GlobalScaling::kGiven,
                                         GlobalScaling::kGivenPerBatch};
  MlpProblem p;
  p.m = rng.chance(0.3) ? rng.integer(1, 4) : rng.integer(1, 33);
  p.hidden = 16 * rng.integer(1, 9);
  p.intermediate = 16 * rng.integer(1, 9);
  p.grouping = static_cast<Grouping>(rng.integer(0, 2));
  p.l = p.grouping == Grouping::kNone && rng.chance(0.6) ? 1 : rng.integer(1, 5);
  p.x.type = rng.pick(kHalves);
  p.y.type = rng.pick(kOutputs);
  p.quantize_x = turn % 2 == 1;
  p.quantize_h = turn / 2 % 2 == 1;
  p.x_scaling = rng.pick(kScalings);
  if (rng.chance(0.3)) p.h_scaling = GlobalScaling::kRow;
  p.act = any_activation(rng);
  p.bias = rng.chance(0.5) ? BiasType::kNone : any_bias(rng);
  p.residual = rng.chance(0.4);
  for (Matrix* weights : {&p.gate, &p.up, &p.down}) {
    if (rng.chance(0.3)) weights->scale_layout = ScaleLayout::kSwizzled128x4;
  }
  if (rng.chance(0.3)) {
    p.gated = false;
    p.gate = {};
    p.act = activation_of_one_product(rng);
  }
  if (rng.chance(0.3)) p.x_transform = random_transform(rng, p.hidden);
  if (rng.chance(0.3)) p.h_transform = random_transform(rng, p.intermediate);
  if (rng.chance(0.3)) p.x.ld = p.hidden + 8;
  if (rng.chance(0.3)) p.y.ld = p.hidden + 16;
  return p;
}

// The same of a mixture's experts with a router.
inline MlpProblem random_routed_problem(Rng& rng, int64_t turn) {
  constexpr DataType kWeights[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
  MlpProblem p = random_mlp_problem(rng, turn);
  p.grouping = Grouping::kNone;
  p.l = rng.integer(1, 6);
  p.top_k = rng.integer(1, 4);
  if (rng.chance(0.3)) p.named_experts = rng.integer(1, 9);
  p.wide_ids = rng.chance(0.5);
  p.weights_type = rng.pick(kWeights);
  p.weights_on_input = rng.chance(0.3);
  if (p.x_scaling == GlobalScaling::kGivenPerBatch) p.x_scaling = GlobalScaling::kRow;
  return p;
}

}  // namespace dualgemm::test
