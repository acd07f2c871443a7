// GatedMlp on the CPU: the same bits as its steps called one by one, whatever is quantised and
// however rows fall to experts, and nothing written where a rule is broken.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "support/mlp_case.hpp"
#include "unit/api/prepared_run.hpp"

namespace dualgemm::test {
namespace {

GatedMlp mlp_of(const MlpProblem& problem, const PlanOptions& options = {}) {
  auto mlp = GatedMlp::plan(problem, options);
  EXPECT_TRUE(mlp.ok()) << mlp.status().message();
  return *std::move(mlp);
}

// Y after a run in a workspace that held `fill` and has not a byte too many.
Bytes run_mlp(const GatedMlp& mlp, const MlpBuffers& buffers, MlpCase& data,
              uint8_t fill = kPoison) {
  data.y.data.fill(kPoison);
  Guarded<uint8_t> workspace(mlp.workspace_bytes(), 0, fill);
  const Status status = mlp.run(buffers, workspace.data(), workspace.size());
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes_of(data.y.data);
}

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

TEST(GatedMlp, RoutedExpertsRefuseByTheNamesOfTheirFields) {
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

// ---- what is refused ----

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

}  // namespace
}  // namespace dualgemm::test
