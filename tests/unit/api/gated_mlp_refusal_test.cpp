// What GatedMlp refuses: by the name of the field, the observed value and the rule, with nothing
// written.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "support/mlp_case.hpp"
#include "unit/api/mlp_run.hpp"
#include "unit/api/prepared_run.hpp"

namespace dualgemm::test {
namespace {

TEST(GatedMlpRefuses, ProblemsByTheNamesOfTheirFields) {
  const MlpProblem good{.m = 4, .hidden = 64, .intermediate = 96, .l = 2};
  ASSERT_TRUE(GatedMlp::plan(good).ok());
  struct Bad {
    const char* argument;
    std::function<void(MlpProblem&)> spoil;
  };
  const Bad cases[] = {
      {"m", [](auto& p) { p.m = 0; }},
      {"l", [](auto& p) { p.l = 0; }},
      {"hidden", [](auto& p) { p.hidden = 72; }},
      {"hidden", [](auto& p) { p.hidden = 0; }},
      {"intermediate", [](auto& p) { p.intermediate = -16; }},
      {"intermediate", [](auto& p) { p.intermediate = 8; }},
      {"x.type", [](auto& p) { p.x.type = DataType::kE2M1; }},
      {"x.type", [](auto& p) { p.x.type = static_cast<DataType>(9); }},
      {"x.ld", [](auto& p) { p.x.ld = 63; }},
      {"x.batch_stride", [](auto& p) { p.x.batch_stride = 1; }},
      {"gate.type", [](auto& p) { p.gate.type = DataType::kF16; }},
      {"gate.ld", [](auto& p) { p.gate.ld = 65; }},
      {"up.scale_ld", [](auto& p) { p.up.scale_ld = 3; }},
      {"up.scale_ld", [](auto& p) { p.gated = false, p.up.scale_ld = 3; }},
      {"gate", [](auto& p) { p.gated = false, p.gate.ld = 64; }},
      {"act.kind", [](auto& p) { p.gated = false, p.act = Activation::swiglu_oai(); }},
      {"down.type", [](auto& p) { p.down.type = DataType::kF16; }},
      {"down.ld", [](auto& p) { p.down.ld = 94; }},
      {"y.type", [](auto& p) { p.y.type = DataType::kE2M1; }},
      {"y.ld", [](auto& p) { p.y.ld = 63; }},
      {"y.batch_stride", [](auto& p) { p.y.batch_stride = 5; }},
      {"x_scaling", [](auto& p) { p.x_scaling = GlobalScaling::kTensor; }},
      {"x_scaling", [](auto& p) { p.x_scaling = static_cast<GlobalScaling>(7); }},
      {"act.limit", [](auto& p) { p.act.kind = ActivationKind::kClampedSwiglu; }},
      {"grouping", [](auto& p) { p.grouping = static_cast<Grouping>(3); }},
      {"bias", [](auto& p) { p.bias = static_cast<BiasType>(3); }},
      {"m, intermediate, hidden, l", [](auto& p) { p.m = int64_t{1} << 50; }},
      {"x", [](auto& p) { p.m = int64_t{1} << 52; }},
  };
  for (const Bad& bad : cases) {
    MlpProblem p = good;
    bad.spoil(p);
    const auto mlp = GatedMlp::plan(p);
    ASSERT_FALSE(mlp.ok()) << bad.argument;
    EXPECT_EQ(mlp.status().argument(), bad.argument) << mlp.status().message();
  }
  EXPECT_EQ(GatedMlp::plan(good, {.strategy = StrategyId::kTwoPass}).status().argument(),
            "strategy");
  EXPECT_EQ(GatedMlp::plan(good, {.config = "tile_m=8"}).status().argument(), "config");
}

class GatedMlpBuffers : public testing::Test {
 protected:
  static MlpProblem problem(Grouping grouping) {
    MlpProblem p{.m = 4, .hidden = 32, .intermediate = 48, .l = 2};
    p.quantize_x = p.quantize_h = p.residual = true;
    p.x_scaling = GlobalScaling::kGiven;
    p.bias = BiasType::kF32;
    p.grouping = grouping;
    return p;
  }
  // Every way to spoil the buffers is refused under that name, and Y stays as it was.
  using Spoil = std::function<void(MlpBuffers&)>;
  static void refuses(MlpCase& data, const GatedMlp& mlp, const char* argument,
                      const Spoil& spoil) {
    MlpBuffers buffers = data.buffers();
    spoil(buffers);
    data.y.data.fill(kPoison);
    Guarded<uint8_t> workspace(mlp.workspace_bytes());
    const Status status = mlp.run(buffers, workspace.data(), workspace.size());
    ASSERT_FALSE(status.ok()) << argument;
    EXPECT_EQ(status.argument(), argument) << status.message();
    EXPECT_TRUE(data.y.data.all_bytes(kPoison)) << argument;
  }
};

TEST_F(GatedMlpBuffers, NothingIsGatesWithoutAGate) {
  Rng rng;
  MlpProblem p = problem(Grouping::kContiguous);
  p.gated = false;
  MlpCase data(p, rng, {0, 2, 4});
  const GatedMlp mlp = mlp_of(data.problem);
  EXPECT_EQ(mlp.explain().find("gate"), mlp.explain().find("gate: ")) << mlp.explain();
  run_mlp(mlp, data.buffers(), data);
  const float alphas[] = {1.0f, 1.0f};
  const uint8_t bytes[16] = {};
  const std::pair<const char*, Spoil> cases[] = {
      {"gate", [&](auto& b) { b.gate = bytes; }},
      {"gate_scales", [&](auto& b) { b.gate_scales = bytes; }},
      {"alpha_gate_per_batch", [&](auto& b) { b.alpha_gate_per_batch = alphas; }},
      {"bias_gate", [&](auto& b) { b.bias_gate = bytes; }},
      {"up", [](auto& b) { b.up = nullptr; }},
      {"up_scales", [](auto& b) { b.up_scales = nullptr; }}};
  for (const auto& [argument, spoil] : cases) refuses(data, mlp, argument, spoil);
}

TEST_F(GatedMlpBuffers, NullsAndNumbers) {
  Rng rng;
  MlpCase data(problem(Grouping::kContiguous), rng, {0, 2, 4});
  const GatedMlp mlp = mlp_of(data.problem);
  run_mlp(mlp, data.buffers(), data);
  const std::pair<const char*, Spoil> cases[] = {
      {"x", [](auto& b) { b.x = nullptr; }},
      {"x", [](auto& b) { b.x = static_cast<const uint8_t*>(b.x) + 1; }},
      {"x_global_scale", [](auto& b) { b.x_global_scale = nullptr; }},
      {"gate", [](auto& b) { b.gate = nullptr; }},
      {"gate_scales", [](auto& b) { b.gate_scales = nullptr; }},
      {"up", [](auto& b) { b.up = nullptr; }},
      {"up_scales", [](auto& b) { b.up_scales = nullptr; }},
      {"down", [](auto& b) { b.down = nullptr; }},
      {"down_scales", [](auto& b) { b.down_scales = nullptr; }},
      {"bias_gate", [](auto& b) { b.bias_gate = nullptr; }},
      {"bias_up", [](auto& b) { b.bias_up = nullptr; }},
      {"bias_down", [](auto& b) { b.bias_down = nullptr; }},
      {"residual", [](auto& b) { b.residual = nullptr; }},
      {"y", [](auto& b) { b.y = nullptr; }},
      {"h_global_scale", [](auto& b) { b.h_global_scale = 0.0f; }},
      {"h_global_scale", [](auto& b) { b.h_global_scale = -1.0f; }},
      {"h_global_scale",
       [](auto& b) { b.h_global_scale = std::numeric_limits<float>::quiet_NaN(); }},
      {"h_global_scale",
       [](auto& b) { b.h_global_scale = std::numeric_limits<float>::infinity(); }},
      {"expert_offsets", [](auto& b) { b.expert_offsets = nullptr; }},
      {"expert_rows", [](auto& b) { b.expert_rows = b.expert_offsets; }},
      {"expert_offsets", [](auto& b) { b.row_experts = b.expert_offsets; }},
  };
  for (const auto& [argument, spoil] : cases) refuses(data, mlp, argument, spoil);
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
    refuses(data, mlp, "x_global_scale", [&](auto& b) { b.x_global_scale = &bad; });
  }
  const int32_t falling[] = {0, 3, 2}, too_many[] = {0, 2, 5}, late[] = {1, 2, 4};
  for (const auto& [argument, offsets] : {std::pair{"expert_offsets[2]", falling},
                                          {"expert_offsets[2]", too_many},
                                          {"expert_offsets[0]", late}}) {
    refuses(data, mlp, argument, [given = offsets](auto& b) { b.expert_offsets = given; });
  }
}

// What a GPU cannot look at: the host's copy of the numbers, without a workspace or a run.
TEST_F(GatedMlpBuffers, ValidateReadsTheNumbersOfRows) {
  Rng rng;
  const auto answer = [](MlpCase& data, const Spoil& spoil) {
    MlpBuffers buffers = data.buffers();
    spoil(buffers);
    return validate(data.problem, buffers).message();
  };
  MlpCase contiguous(problem(Grouping::kContiguous), rng, {0, 2, 4});
  EXPECT_EQ(answer(contiguous, [](auto&) {}), "ok");
  const int32_t falling[] = {0, 3, 2}, too_many[] = {0, 2, 5}, rows[] = {7, -1, 0, INT32_MIN};
  EXPECT_EQ(answer(contiguous, [&](auto& b) { b.expert_offsets = falling; }),
            "expert_offsets[2]: 2; must not be below the offset before it, 3");
  EXPECT_EQ(answer(contiguous, [&](auto& b) { b.expert_offsets = too_many; }),
            "expert_offsets[2]: 5; the last must be at most m = 4");
  EXPECT_EQ(answer(contiguous, [](auto& b) { b.expert_offsets = nullptr; }),
            "expert_offsets: null; is required");
  EXPECT_EQ(answer(contiguous, [&](auto& b) { b.row_experts = rows; }),
            "expert_offsets: not null; must be null where row_experts is given");
  EXPECT_EQ(answer(contiguous,
                   [&](auto& b) {
                     b.expert_offsets = nullptr;
                     b.row_experts = rows;
                   }),
            "ok")
      << "a row that names no expert is skipped";
  MlpCase masked(problem(Grouping::kMasked), rng, {1, 4});
  EXPECT_EQ(answer(masked, [](auto&) {}), "ok");
  const int32_t above[] = {5, 0}, below[] = {0, -1};
  EXPECT_EQ(answer(masked, [&](auto& b) { b.expert_rows = above; }),
            "expert_rows[0]: 5; must be 0 .. m = 4");
  EXPECT_EQ(answer(masked, [&](auto& b) { b.expert_rows = below; }),
            "expert_rows[1]: -1; must be 0 .. m = 4");
  EXPECT_EQ(answer(masked, [](auto& b) { b.y = nullptr; }), "y: null; is required");
  MlpProblem bad = masked.problem;
  bad.hidden = 24;
  EXPECT_EQ(validate(bad).argument(), "hidden");
  EXPECT_EQ(validate(bad, masked.buffers()).argument(), "hidden");
  EXPECT_TRUE(validate(masked.problem).ok());
}

TEST_F(GatedMlpBuffers, WhatMustBeNull) {
  Rng rng;
  const float one = 1.0f;
  const MlpProblem p{.m = 4, .hidden = 32, .intermediate = 48};
  MlpCase data(p, rng);
  const GatedMlp mlp = mlp_of(p);
  for (const auto& [argument, spoil] :
       {std::pair<const char*, Spoil>{"x_global_scale", [&](auto& b) { b.x_global_scale = &one; }},
        {"bias_gate", [&](auto& b) { b.bias_gate = &one; }},
        {"bias_up", [&](auto& b) { b.bias_up = &one; }},
        {"bias_down", [&](auto& b) { b.bias_down = &one; }},
        {"residual", [&](auto& b) { b.residual = &one; }}}) {
    refuses(data, mlp, argument, spoil);
  }
}

TEST_F(GatedMlpBuffers, Overlaps) {
  Rng rng;
  MlpCase data(problem(Grouping::kMasked), rng, {1, 4});
  const GatedMlp mlp = mlp_of(data.problem);
  const std::pair<const char*, Spoil> cases[] = {
      {"y", [](auto& b) { b.x = b.y; }},
      {"y", [](auto& b) { b.down_scales = static_cast<uint8_t*>(b.y); }},
      {"y", [](auto& b) { b.expert_rows = static_cast<int32_t*>(b.y); }},
      {"y", [](auto& b) { b.residual = static_cast<uint8_t*>(b.y) + 2; }},
      {"y", [](auto& b) { b.alpha_down_per_batch = static_cast<float*>(b.y); }},
  };
  for (const auto& [argument, spoil] : cases) refuses(data, mlp, argument, spoil);
  MlpBuffers buffers = data.buffers();
  Guarded<uint8_t> workspace(mlp.workspace_bytes());
  buffers.y = workspace.data();
  buffers.residual = workspace.data();
  EXPECT_EQ(mlp.run(buffers, workspace.data(), workspace.size()).argument(), "workspace");
  buffers = data.buffers();
  buffers.x = workspace.data() + workspace.size() - 64;
  EXPECT_EQ(mlp.run(buffers, workspace.data(), workspace.size()).argument(), "workspace");
}

TEST_F(GatedMlpBuffers, Workspaces) {
  Rng rng;
  MlpCase data(problem(Grouping::kNone), rng);
  const GatedMlp mlp = mlp_of(data.problem);
  const int64_t bytes = mlp.workspace_bytes();
  Guarded<uint8_t> workspace(bytes + 64);
  const MlpBuffers buffers = data.buffers();
  EXPECT_EQ(mlp.run(buffers, workspace.data(), bytes - 1).code(), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(mlp.run(buffers, nullptr, bytes).argument(), "workspace");
  EXPECT_EQ(mlp.run(buffers, workspace.data() + 8, bytes).argument(), "workspace");
  EXPECT_TRUE(workspace.all_bytes(kPoison));
  EXPECT_TRUE(data.y.data.all_bytes(kPoison));
}

TEST_F(GatedMlpBuffers, PreparedWeightsThatDoNotFit) {
  Rng rng;
  MlpCase data(problem(Grouping::kNone), rng);
  const GatedMlp mlp = mlp_of(data.problem, {.prepared = true});
  const auto gate_up = prepare(mlp.gate_up(), mlp.gate_up_weights(data.buffers()));
  const auto down = prepare(mlp.down(), mlp.down_weights(data.buffers()));
  ASSERT_TRUE(gate_up.ok() && down.ok());
  const PreparedView first = gate_up->view(), second = down->view();
  const auto with = [&](const PreparedView* a, const PreparedView* b) {
    return [a, b](MlpBuffers& buffers) {
      buffers.prepared_gate_up = a;
      buffers.prepared_down = b;
    };
  };
  refuses(data, mlp, "prepared_gate_up", with(nullptr, &second));
  refuses(data, mlp, "prepared_down", with(&first, nullptr));
  refuses(data, mlp, "prepared_gate_up", with(&second, &second));
  refuses(data, mlp, "prepared_down", with(&first, &first));
  refuses(data, mlp_of(data.problem), "prepared_gate_up", with(&first, &second));
  PreparedView in_y = second;
  in_y.memory = data.y.data.data();
  refuses(data, mlp, "y", with(&first, &in_y));
}

TEST(GatedMlpRefuses, RoutedExpertsByTheNamesOfTheirFields) {
  Rng rng;
  MlpProblem p{.m = 3, .hidden = 32, .intermediate = 48, .l = 4, .top_k = 2};
  const auto argument = [](const MlpProblem& problem) { return validate(problem).argument(); };
  const auto with = [&](auto change) {
    MlpProblem q = p;
    change(q);
    return argument(q);
  };
  EXPECT_EQ(argument(p), "");
  EXPECT_EQ(with([](auto& q) { q.top_k = -1; }), "top_k");
  EXPECT_EQ(with([](auto& q) { q.top_k = 0, q.wide_ids = true; }), "top_k");
  EXPECT_EQ(with([](auto& q) { q.grouping = Grouping::kContiguous; }), "grouping");
  EXPECT_EQ(with([](auto& q) { q.named_experts = -2; }), "named_experts");
  EXPECT_EQ(with([](auto& q) { q.weights_type = DataType::kE2M1; }), "weights_type");
  EXPECT_EQ(with([](auto& q) { q.quantize_x = true, q.x_scaling = GlobalScaling::kGivenPerBatch; }),
            "x_scaling");
  EXPECT_EQ(with([](auto& q) { q.x.batch_stride = 64; }), "x.batch_stride");
  EXPECT_EQ(with([](auto& q) { q.m = -1; }), "m");
  p.m = 0;  // a step without tokens
  MlpCase none(p, rng);
  run_mlp(mlp_of(p), none.buffers(), none);

  p.m = 3;
  MlpCase data(p, rng);
  const GatedMlp mlp = mlp_of(p);
  const auto refused = [&](auto change) {
    MlpBuffers b = data.buffers();
    change(b);
    Guarded<uint8_t> workspace(mlp.workspace_bytes());
    return mlp.run(b, workspace.data(), workspace.size()).argument();
  };
  const int32_t numbers[8] = {};
  EXPECT_EQ(refused([](auto& b) { b.topk_ids = nullptr; }), "topk_ids");
  EXPECT_EQ(refused([&](auto& b) { b.expert_map = numbers; }), "expert_map");
  EXPECT_EQ(refused([&](auto& b) { b.expert_offsets = numbers; }), "expert_offsets");
  EXPECT_EQ(refused([&](auto& b) { b.row_experts = numbers; }), "row_experts");
  EXPECT_EQ(refused([&](auto& b) { b.topk_weights = b.y; }), "y");
  const std::string text = mlp.explain();
  EXPECT_NE(text.find("2 ids of each token to rows of experts"), std::string::npos) << text;
  EXPECT_NE(text.find("weighted sums"), std::string::npos) << text;
}

}  // namespace
}  // namespace dualgemm::test
