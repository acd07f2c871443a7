// GatedMlp on the CPU: the same bits as its steps called one by one, whatever is quantised and
// however rows fall to experts.
#include <gtest/gtest.h>

#include <cstring>

#include "support/mlp_case.hpp"
#include "unit/api/mlp_run.hpp"
#include "unit/api/prepared_run.hpp"

namespace dualgemm::test {
namespace {

void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

// The three calls of the public headers, with arrays of their own.
Bytes run_by_hand(MlpCase& data) {
  const MlpProblem& p = data.problem;
  const MlpBuffers b = data.buffers();
  data.y.data.fill(kPoison);
  Problem first{.m = p.m,
                .n = p.intermediate,
                .k = p.hidden,
                .l = p.l,
                .a = p.x,
                .d = {.type = p.x.type},
                .act = p.act,
                .grouping = p.grouping,
                .bias = p.bias};
  first.gate = p.gate, first.up = p.up;
  const bool apart = p.quantize_h && (p.h_transform.any() || p.h_scaling == GlobalScaling::kRow);
  if (p.quantize_x) first.a = {};
  if (p.x_transform.any() && !p.quantize_x) first.a = {.type = p.x.type};
  if (p.quantize_h && !apart) first.d = {};
  const auto sizes = operand_sizes(first);
  EXPECT_TRUE(sizes.ok()) << sizes.status().message();
  Guarded<uint8_t> codes(p.quantize_x ? sizes->a : 0), scales(sizes->a_scales);
  Guarded<float> row_scale(sizes->a_row_scale / 4);
  Buffers dual{.a = b.x, .gate = b.gate, .gate_scales = b.gate_scales, .up = b.up};
  dual.up_scales = b.up_scales;
  dual.alpha_gate = b.alpha_gate, dual.alpha_up = b.alpha_up;
  dual.bias_gate = b.bias_gate, dual.bias_up = b.bias_up;
  dual.expert_offsets = b.expert_offsets, dual.expert_rows = b.expert_rows;
  dual.row_experts = b.row_experts;
  if (p.quantize_x) {
    const bool found = p.x_scaling == GlobalScaling::kRow;
    QuantizeProblem quantize_x{.rows = p.m, .cols = p.hidden, .l = p.l, .x = p.x};
    quantize_x.grouping = p.grouping;
    quantize_x.scaling = p.x_scaling;
    QuantizeBuffers arrays{.x = b.x, .codes = codes.data(), .scales = scales.data()};
    arrays.global_scale = b.x_global_scale;
    arrays.found_scale = found ? row_scale.data() : nullptr;
    arrays.groups = {b.expert_rows, b.expert_offsets, b.row_experts};
    quantize_x.transform = p.x_transform;
    arrays.column_factors = b.x_column_factors;
    expect_ok(quantize(quantize_x, arrays));
    dual.a = codes.data();
    dual.a_scales = scales.data();
    dual.a_row_scale = arrays.found_scale;
  }
  const int64_t batches = data.batches();
  Guarded<uint8_t> rotated(p.x_transform.any() ? batches * p.m * p.hidden * 2 : 0);
  if (p.x_transform.any() && !p.quantize_x) {
    const TransformProblem turn{.rows = p.m,
                                .cols = p.hidden,
                                .l = batches,
                                .x = p.x,
                                .y = first.a,
                                .transform = p.x_transform};
    expect_ok(transform_rows(
        turn, {.x = b.x, .column_factors = b.x_column_factors, .y = rotated.data()}));
    dual.a = rotated.data();
  }
  Guarded<uint8_t> h(sizes->d), h_scales(sizes->d_scales);
  dual.d = h.data();
  dual.d_scales = p.quantize_h && !apart ? h_scales.data() : nullptr;
  dual.d_global_scale = b.h_global_scale;
  if (p.gated) {
    expect_ok(run(first, dual));
  } else {
    LinearProblem up{.m = p.m, .n = p.intermediate, .k = p.hidden, .l = p.l, .a = first.a};
    up.w = p.up, up.d = first.d, up.act = p.act;
    up.grouping = p.grouping, up.bias = p.bias;
    LinearBuffers one{.a = dual.a, .a_scales = dual.a_scales, .a_row_scale = dual.a_row_scale};
    one.w = b.up, one.w_scales = b.up_scales, one.alpha = b.alpha_up, one.bias = b.bias_up;
    one.expert_offsets = b.expert_offsets, one.expert_rows = b.expert_rows;
    one.row_experts = b.row_experts;
    one.d = dual.d, one.d_scales = dual.d_scales, one.d_global_scale = b.h_global_scale;
    expect_ok(run(up, one));
  }

  Guarded<uint8_t> turned(apart ? 0 : sizes->d), h_codes(apart ? sizes->d / 4 : 0);
  Guarded<uint8_t> apart_scales(apart ? sizes->d / 32 : 0);
  Guarded<float> h_row_scale(apart ? batches * p.m : 0);
  if (apart) {
    QuantizeProblem quantize_h{.rows = p.m, .cols = p.intermediate, .l = p.l, .x = first.d};
    quantize_h.grouping = p.grouping;
    quantize_h.scaling = GlobalScaling::kRow;
    quantize_h.transform = p.h_transform;
    QuantizeBuffers arrays{.x = h.data(), .codes = h_codes.data(), .scales = apart_scales.data()};
    arrays.found_scale = h_row_scale.data();
    arrays.groups = {b.expert_rows, b.expert_offsets, b.row_experts};
    arrays.column_factors = b.h_column_factors;
    expect_ok(quantize(quantize_h, arrays));
    first.d = {};
  } else if (p.h_transform.any()) {
    const TransformProblem turn{.rows = p.m,
                                .cols = p.intermediate,
                                .l = batches,
                                .x = first.d,
                                .y = first.d,
                                .transform = p.h_transform};
    expect_ok(transform_rows(
        turn, {.x = h.data(), .column_factors = b.h_column_factors, .y = turned.data()}));
  }
  LinearProblem second{.m = p.m,
                       .n = p.hidden,
                       .k = p.intermediate,
                       .l = p.l,
                       .a = first.d,
                       .w = p.down,
                       .d = p.y,
                       .grouping = p.grouping,
                       .bias = p.bias,
                       .residual = p.residual};
  LinearBuffers linear{.a = h.data(), .a_scales = dual.d_scales, .w = b.down};
  if (apart) {
    linear.a = h_codes.data(), linear.a_scales = apart_scales.data();
    linear.a_row_scale = h_row_scale.data();
  } else if (p.h_transform.any()) {
    linear.a = turned.data();
  }
  linear.w_scales = b.down_scales;
  linear.alpha = b.alpha_down, linear.alpha_per_batch = b.alpha_down_per_batch;
  linear.bias = b.bias_down, linear.residual = b.residual;
  linear.expert_offsets = b.expert_offsets, linear.expert_rows = b.expert_rows;
  linear.row_experts = b.row_experts;
  linear.d = b.y;
  expect_ok(run(second, linear));
  return bytes_of(data.y.data);
}

TEST(GatedMlp, HasTheBitsOfItsStepsCalledOneByOne) {
  Rng rng;
  for (int64_t turn = 0; turn < 120; ++turn) {
    MlpCase data(random_mlp_problem(rng, turn), rng);
    if (data.problem.grouping == Grouping::kContiguous && rng.chance(0.4)) data.name_experts(rng);
    SCOPED_TRACE(data.describe());
    const GatedMlp mlp = mlp_of(data.problem);
    const Bytes y = run_mlp(mlp, data.buffers(), data);
    EXPECT_EQ(y, run_mlp(mlp, data.buffers(), data, 0)) << "depends on what the workspace held";
    EXPECT_EQ(y, run_by_hand(data));
    if (testing::Test::HasFailure()) return;
  }
}

// The rows of each expert, gathered by hand, as groups; then the sums. Without weights on the
// input.
Bytes run_routed_by_hand(MlpCase& data) {
  const MlpProblem& p = data.problem;
  RoutingCase& router = data.router;
  router.scales_rows = false;
  router.token_scale.clear();
  router.poison();
  RoutingBuffers ids = router.buffers();
  ids.weights = nullptr;
  expect_ok(route_tokens(router.problem, ids));
  MlpProblem groups = p;
  groups.m = p.m * p.top_k;
  groups.grouping = Grouping::kContiguous;
  groups.top_k = groups.named_experts = 0;
  groups.wide_ids = groups.residual = false;
  groups.weights_type = DataType::kF32;
  groups.x.ld = groups.y.ld = 0;
  const int64_t row_bytes = 2 * p.hidden;
  Guarded<uint8_t> x(groups.m * row_bytes);
  for (int64_t row = 0; row < groups.m; ++row) {
    std::memcpy(x.data() + row * row_bytes,
                data.x.data.data() +
                    router.row_tokens[static_cast<size_t>(row)] * data.x_matrix.row_bytes(),
                static_cast<size_t>(row_bytes));
  }
  Guarded<uint8_t> rows(groups.m * core::bytes_of(p.y.type, p.hidden));
  MlpBuffers b = data.buffers();
  b.x = x.data();
  b.topk_ids = b.topk_weights = b.expert_map = nullptr;
  b.residual = nullptr;
  b.expert_offsets = router.offsets.data();
  b.y = rows.data();
  const GatedMlp mlp = mlp_of(groups);
  Guarded<uint8_t> workspace(mlp.workspace_bytes());
  expect_ok(mlp.run(b, workspace.data(), workspace.size()));
  const MlpBuffers own = data.buffers();
  data.y.data.fill(kPoison);
  expect_ok(combine_tokens({.tokens = p.m,
                            .top_k = p.top_k,
                            .cols = p.hidden,
                            .rows = {.type = p.y.type},
                            .y = p.y,
                            .weights_type = p.weights_type,
                            .residual = p.residual},
                           {.rows = rows.data(),
                            .places = router.places.data(),
                            .weights = own.topk_weights,
                            .residual = own.residual,
                            .y = own.y}));
  return bytes_of(data.y.data);
}

TEST(GatedMlp, RoutedExpertsHaveTheBitsOfTheirSteps) {
  Rng rng;
  for (int64_t turn = 0; turn < 120; ++turn) {
    MlpProblem p = random_routed_problem(rng, turn);
    p.weights_on_input = false;
    MlpCase data(p, rng);
    SCOPED_TRACE(data.describe());
    const GatedMlp mlp = mlp_of(data.problem);
    const Bytes y = run_mlp(mlp, data.buffers(), data);
    EXPECT_EQ(y, run_mlp(mlp, data.buffers(), data, 0)) << "depends on what the workspace held";
    EXPECT_EQ(y, run_routed_by_hand(data));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(GatedMlp, EveryActivationAndEveryNumberOfRows) {
  Rng rng;
  const std::vector<Activation> activations = every_activation();
  for (int64_t m = 1; m <= 33; ++m) {
    MlpProblem p = random_mlp_problem(rng, m);
    p.m = m;
    p.gated = true;
    p.act = activations[static_cast<size_t>(m) % activations.size()];
    MlpCase data(p, rng);
    SCOPED_TRACE(data.describe());
    EXPECT_EQ(run_mlp(mlp_of(p), data.buffers(), data), run_by_hand(data));
  }
}

TEST(GatedMlp, ExpertsWithoutRowsAndOneWithAll) {
  Rng rng;
  for (int64_t turn = 0; turn < 4; ++turn) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      MlpProblem p = random_mlp_problem(rng, turn);
      p.m = 7;
      p.l = 4;
      p.grouping = grouping;
      const bool masked = grouping == Grouping::kMasked;
      const std::vector<std::vector<int32_t>> ways =
          masked ? std::vector<std::vector<int32_t>>{{0, 7, 0, 0}, {0, 0, 0, 0}, {7, 7, 7, 7}}
                 : std::vector<std::vector<int32_t>>{{0, 0, 7, 7, 7}, {0, 1, 1, 6, 7}};
      for (const std::vector<int32_t>& experts : ways) {
        MlpCase data(p, rng, experts);
        SCOPED_TRACE(data.describe());
        EXPECT_EQ(run_mlp(mlp_of(p), data.buffers(), data), run_by_hand(data));
      }
    }
  }
}

TEST(GatedMlp, NoTokensAtAll) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    MlpProblem p{.m = 0, .hidden = 32, .intermediate = 48, .l = 3};
    p.quantize_x = p.quantize_h = true;
    p.grouping = grouping;
    MlpCase data(p, rng, {0, 0, 0, 0});
    if (grouping == Grouping::kMasked) data.expert_rows.pop_back();
    run_mlp(mlp_of(p), data.buffers(), data);
  }
}

TEST(GatedMlp, RowsOfNobodyStayAsTheyAre) {
  Rng rng;
  MlpProblem p{.m = 5, .hidden = 32, .intermediate = 48, .l = 2};
  p.grouping = Grouping::kContiguous;
  p.quantize_x = true;
  MlpCase data(p, rng);
  data.expert_offsets.clear();
  data.row_experts = {1, -1, 0, 0, 2};
  const Bytes y = run_mlp(mlp_of(p), data.buffers(), data);
  const auto is_poison = [&](int64_t row) {
    const auto first = y.begin() + row * 64;
    return std::all_of(first, first + 64, [](uint8_t byte) { return byte == kPoison; });
  };
  for (const int64_t row : {1, 4}) EXPECT_TRUE(is_poison(row)) << row;
  for (const int64_t row : {0, 2, 3}) EXPECT_FALSE(is_poison(row)) << row;
}

TEST(GatedMlp, ResidualInPlace) {
  Rng rng;
  for (int64_t turn = 0; turn < 8; ++turn) {
    MlpProblem p = random_mlp_problem(rng, turn);
    p.residual = true;
    MlpCase data(p, rng);
    SCOPED_TRACE(data.describe());
    const GatedMlp mlp = mlp_of(p);
    const Bytes apart = run_mlp(mlp, data.buffers(), data);
    // Where nothing is computed the residual stays, and poison otherwise.
    MlpBuffers in_place = data.buffers();
    std::memcpy(data.y.data.data(), data.residual.data(), static_cast<size_t>(data.y.data.size()));
    in_place.residual = in_place.y;
    Guarded<uint8_t> workspace(mlp.workspace_bytes());
    expect_ok(mlp.run(in_place, workspace.data(), workspace.size()));
    const Bytes same = bytes_of(data.y.data);
    for (size_t i = 0; i < apart.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (apart[i] != kPoison) {
        ASSERT_EQ(same[i], apart[i]) << i;
      } else if (same[i] != kPoison) {
        ASSERT_EQ(same[i], data.residual[at]) << i;
      }
    }
  }
}

TEST(GatedMlp, PreparedWeightsGiveTheSameBits) {
  Rng rng;
  for (int64_t turn = 0; turn < 24; ++turn) {
    MlpCase data(random_mlp_problem(rng, turn), rng);
    SCOPED_TRACE(data.describe());
    const Bytes y = run_mlp(mlp_of(data.problem), data.buffers(), data);
    const GatedMlp mlp = mlp_of(data.problem, {.prepared = true});
    MlpBuffers buffers = data.buffers();
    const auto gate_up = prepare(mlp.gate_up(), mlp.gate_up_weights(buffers));
    ASSERT_TRUE(gate_up.ok()) << gate_up.status().message();
    const auto down = prepare(mlp.down(), mlp.down_weights(buffers));
    ASSERT_TRUE(down.ok()) << down.status().message();
    const PreparedView views[] = {gate_up->view(), down->view()};
    buffers.gate = buffers.up = buffers.down = nullptr;
    buffers.gate_scales = buffers.up_scales = buffers.down_scales = nullptr;
    buffers.prepared_gate_up = &views[0];
    buffers.prepared_down = &views[1];
    EXPECT_EQ(run_mlp(mlp, buffers, data), y);
  }
}

TEST(GatedMlp, EveryInstructionSetAndAnyNumberOfThreads) {
  Rng rng;
  for (int64_t turn = 0; turn < 8; ++turn) {
    MlpCase data(random_mlp_problem(rng, turn), rng);
    SCOPED_TRACE(data.describe());
    const Bytes y = run_mlp(mlp_of(data.problem, {.isa = Isa::kScalar}), data.buffers(), data);
    for (const Isa isa : device_caps().isas) {
      if (isa == Isa::kAmxBf16 || isa == Isa::kAvx512Bf16) continue;  // orders of their own
      for (const int threads : {1, 3}) {
        const GatedMlp mlp = mlp_of(data.problem, {.isa = isa, .threads = threads});
        EXPECT_EQ(run_mlp(mlp, data.buffers(), data), y) << name_of(isa) << " " << threads;
      }
    }
  }
}

TEST(GatedMlp, ExplainsItsSteps) {
  MlpProblem p{.m = 4, .hidden = 64, .intermediate = 96};
  const GatedMlp two = mlp_of(p);
  EXPECT_NE(two.explain().find("2. down: " + two.down().config()), std::string::npos);
  EXPECT_EQ(two.explain().find("3. "), std::string::npos);
  p.quantize_x = p.quantize_h = true;
  const GatedMlp three = mlp_of(p);
  for (const std::string& part :
       {std::string("x nvfp4 -> h nvfp4 -> y bf16"), std::string("1. x to nvfp4"),
        "2. gate and up: " + three.gate_up().config(), "3. down: " + three.down().config(),
        "workspace: " + std::to_string(three.workspace_bytes())}) {
    EXPECT_NE(three.explain().find(part), std::string::npos) << part << "\n" << three.explain();
  }
  EXPECT_EQ(three.problem(), p);
  EXPECT_EQ(three.device(), DeviceKind::kCpu);
}

}  // namespace
}  // namespace dualgemm::test
