// linear.hpp: one product, cut into halves, is the uncut product, bit for bit where inputs are
// exact; its errors name what LinearProblem and LinearBuffers name.
#include "dualgemm/linear.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"
#include "support/grouped.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm {
namespace {

using test::RandomCase;
using test::Rng;
using test::Values;

// Around halves, panels of 16, pairs of them, and tiles of swizzled scales.
constexpr int64_t kColumns[] = {1, 15, 16, 17, 31, 33, 48, 127, 255, 256, 257, 384};
constexpr DataType kOutputs[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16, DataType::kF32};

// The product that is not cut in two: all of W is Up, and nothing of Gate stands in D.
struct Uncut {
  LinearProblem linear;
  RandomCase data;

  LinearBuffers buffers() {
    const Buffers b = data.buffers();
    return {.a = b.a,
            .a_scales = b.a_scales,
            .a_row_scale = b.a_row_scale,
            .w = b.up,
            .w_scales = b.up_scales,
            .alpha = b.alpha_up,
            .alpha_per_batch = b.alpha_up_per_batch,
            .bias = b.bias_up,
            .residual = b.residual,
            .expert_offsets = b.expert_offsets,
            .expert_rows = b.expert_rows,
            .row_experts = b.row_experts,
            .d = b.d,
            .d_scales = b.d_scales,
            .d_global_scale = b.d_global_scale};
  }
  std::vector<uint8_t> output() const {
    std::vector<uint8_t> bytes(data.d.data.begin(), data.d.data.end());
    bytes.insert(bytes.end(), data.d.scales.begin(), data.d.scales.end());
    return bytes;
  }
};

Uncut random_uncut(Rng& rng, int64_t n, DataType d, Values values) {
  Problem p = test::random_side_by_side(rng, n, d);
  if (values == Values::kExact) p = test::without_activation(p);
  p.up_column = 0;
  if (p.d.ld != 0) p.d.ld = p.n + 2 * rng.integer(0, 9);
  p.bias_stride = 0;
  if (rng.chance(0.3)) p.up.ld = p.k + 16 * rng.integer(0, 2);
  if (p.up.scale_layout == ScaleLayout::kLinear && rng.chance(0.3)) p.up.scale_ld = p.k / 16 + 3;
  if (p.l > 1 && rng.chance(0.4)) p.up.batch_stride = (p.n + 2) * std::max(p.up.ld, p.k);
  p.gate = p.up;
  return {.linear = {.m = p.m,
                     .n = p.n,
                     .k = p.k,
                     .l = p.l,
                     .a = p.a,
                     .w = p.up,
                     .d = p.d,
                     .grouping = p.grouping,
                     .bias = p.bias,
                     .residual = p.residual,
                     .act = p.combine == Combine::kSideBySide ? LinearProblem().act : p.act},
          .data = test::side_by_side_case(p, rng, values)};
}

TEST(Linear, ExactInputsGiveTheBitsOfTheUncutProduct) {
  Rng rng;
  for (const int64_t n : kColumns) {
    for (const DataType d : kOutputs) {
      Uncut one = random_uncut(rng, n, d, Values::kExact);
      SCOPED_TRACE(test::describe_side_by_side(one.data));
      one.data.poison_d();
      const PlanOptions oracle{.strategy = StrategyId::kReference};
      ASSERT_EQ(run(one.data.problem, one.data.buffers(), oracle).message(), "ok");
      const auto expected = one.output();
      ASSERT_EQ(validate(one.linear, one.buffers()).message(), "ok");
      for (const StrategyId strategy : {StrategyId::kAuto, StrategyId::kReference}) {
        one.data.poison_d();
        ASSERT_EQ(run(one.linear, one.buffers(), {.strategy = strategy}).message(), "ok");
        ASSERT_EQ(one.output(), expected) << name_of(strategy);
      }
      one.data.poison_d();
      ASSERT_EQ(run(one.linear, one.buffers(), {.prepared = true}).message(), "ok");
      ASSERT_EQ(one.output(), expected) << "prepared";
    }
  }
}

TEST(Linear, RandomInputsStayWithinTheBoundOfTheUncutProduct) {
  Rng rng;
  for (const int64_t n : kColumns) {
    Uncut one = random_uncut(rng, n, rng.pick(kOutputs), Values::kRandom);
    if (rng.chance(0.5)) test::add_alphas_and_row_scales(one.data, rng);
    SCOPED_TRACE(test::describe_side_by_side(one.data));
    one.data.in_place = one.linear.residual && rng.chance(0.7);
    one.data.poison_d();
    RunInfo info;
    ASSERT_EQ(run(one.linear, one.buffers(), {}, &info).message(), "ok");
    EXPECT_TRUE(test::others_are_poison(one.data));
    one.data.in_place = false;
    const Isa isa = make_plan(one.linear)->isa;
    EXPECT_TRUE(test::within_bound(one.data.problem, one.data.buffers(), isa));
  }
}

// The identity is the default and none; the others are those of the dual problem.
TEST(Linear, AnActivationIsThatOfTheDualProblem) {
  LinearProblem linear{.m = 2, .n = 64, .k = 32};
  EXPECT_EQ(dual_problem(linear)->combine, Combine::kSideBySide);
  EXPECT_EQ(dual_problem(linear)->act, Activation{});
  linear.act = {.kind = ActivationKind::kSilu};
  EXPECT_EQ(dual_problem(linear)->combine, Combine::kActivatedSideBySide);
  EXPECT_EQ(dual_problem(linear)->act, linear.act);
  for (const Activation& refused : {Activation::swiglu_oai(), Activation::clamped_swiglu(1.0f)}) {
    linear.act = refused;
    EXPECT_EQ(dual_problem(linear).status().argument(), "act.kind");
    EXPECT_EQ(dual_problem(linear).status().observed(), name_of(refused.kind));
  }
  linear.act = {.kind = ActivationKind::kIdentity, .alpha = 2.0f};
  EXPECT_EQ(dual_problem(linear).status().argument(), "act.alpha");
}

// prepare() once, for each expert's part, then run() by the plan.
TEST(Linear, PreparedWeightsOfADualProblem) {
  Rng rng;
  LinearProblem linear{.m = 9, .n = 272, .k = 96, .l = 3, .grouping = Grouping::kContiguous};
  linear.w.scale_layout = ScaleLayout::kSwizzled128x4;
  linear.d.type = DataType::kF32;
  linear.residual = true;
  Problem p{.m = 9, .n = 272, .k = 96, .l = 3, .gate = linear.w, .up = linear.w, .d = linear.d};
  p.grouping = linear.grouping;
  p.combine = Combine::kSideBySide;
  p.residual = true;
  Uncut one{linear, RandomCase(p, rng, Values::kExact)};
  ASSERT_TRUE(run(linear, one.buffers()).ok());
  const auto expected = one.output();

  const Expected<Plan> plan = make_plan(linear, {.prepared = true});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->problem.up_column, 128);
  EXPECT_EQ(plan->problem.n, 144);
  const Expected<PreparedWeights> weights = prepare(*plan, dual_buffers(linear, one.buffers()));
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  LinearBuffers b = one.buffers();
  b.w = nullptr;
  b.w_scales = nullptr;
  b.prepared = &*weights;
  one.data.poison_d();
  EXPECT_EQ(validate(linear, b).message(), "ok");
  ASSERT_EQ(run(linear, b).message(), "ok");
  EXPECT_EQ(one.output(), expected);
}

TEST(Linear, OperandSizesOfADualProblem) {
  LinearProblem linear{.m = 4, .n = 80, .k = 32, .l = 3, .bias = BiasType::kBF16};
  const Expected<OperandSizes> sizes = operand_sizes(*dual_problem(linear));
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(sizes->d, 3 * 4 * 80 * 2);
  EXPECT_EQ(sizes->gate, (2 * 80 + 48) * 16) << "the halves of all three batches, where they lie";
  EXPECT_EQ(sizes->bias_gate, (2 * 80 + 48) * 2);
}

TEST(Linear, NoRows) {
  const LinearProblem linear{.m = 0, .n = 20, .k = 32, .l = 2, .grouping = Grouping::kContiguous};
  const std::vector<uint8_t> w(2 * 20 * 16), scales(2 * 20 * 2);
  const int32_t offsets[] = {0, 0, 0};
  const LinearBuffers b{.w = w.data(), .w_scales = scales.data(), .expert_offsets = offsets};
  EXPECT_EQ(run(linear, b).message(), "ok");
}

TEST(Linear, TheCut) {
  const auto cut = [](int64_t n, ScaleLayout layout) {
    LinearProblem linear{.m = 2, .n = n, .k = 32};
    linear.w.scale_layout = layout;
    const Problem p = *dual_problem(linear);
    EXPECT_EQ(p.up_column + p.n, n);
    EXPECT_LE(p.up_column, p.n);
    return p.up_column;
  };
  EXPECT_EQ(cut(1, ScaleLayout::kLinear), 0);
  EXPECT_EQ(cut(31, ScaleLayout::kLinear), 0);
  EXPECT_EQ(cut(32, ScaleLayout::kLinear), 16);
  EXPECT_EQ(cut(47, ScaleLayout::kLinear), 16);
  EXPECT_EQ(cut(4096, ScaleLayout::kLinear), 2048);
  EXPECT_EQ(cut(255, ScaleLayout::kSwizzled128x4), 0);
  EXPECT_EQ(cut(384, ScaleLayout::kSwizzled128x4), 128);
  EXPECT_EQ(cut(512, ScaleLayout::kSwizzled128x4), 256);
}

// A caller of linear.hpp reads of W, bias and n, never of halves.
TEST(Linear, ErrorsNameWhatTheCallerHas) {
  const auto refusal = [](auto change) {
    LinearProblem linear{.m = 4, .n = 64, .k = 32, .l = 2};
    change(linear);
    const Expected<Problem> dual = dual_problem(linear);
    EXPECT_EQ(make_plan(linear).status().message(), dual.status().message());
    EXPECT_EQ(run(linear, {}).message(), dual.status().message());
    return dual.status().message();
  };
  EXPECT_EQ(refusal([](LinearProblem& p) { p.n = 0; }), "n: 0; must be at least 1");
  EXPECT_EQ(refusal([](LinearProblem& p) { p.k = 24; }), "k: 24; must be a multiple of 16");
  EXPECT_EQ(refusal([](LinearProblem& p) { p.w.type = DataType::kF16; }),
            "w.type: f16; weights must be e2m1");
  EXPECT_EQ(refusal([](LinearProblem& p) { p.w.ld = 30; }),
            "w.ld: 30; must be at least 32 (columns), or 0 for tight");
  EXPECT_EQ(refusal([](LinearProblem& p) { p.w.batch_stride = 32 * 63; }),
            "w.batch_stride: 2016; must be at least 2048 (one batch), or 0 for tight");
  EXPECT_EQ(refusal([](LinearProblem& p) {
              p.n = 63;
              p.d.type = DataType::kE2M1;
            }),
            "n: 63; must be a multiple of 16 when d is e2m1");
  EXPECT_EQ(refusal([](LinearProblem& p) {
              p.residual = true;
              p.d.type = DataType::kE2M1;
            }),
            "residual: true; must be false when d is e2m1");
  EXPECT_EQ(refusal([](LinearProblem& p) { p.d.ld = 63; }),
            "d.ld: 63; must be at least 64 (columns), or 0 for tight");
  EXPECT_EQ(refusal([](LinearProblem& p) { p.n = INT64_MAX; }).substr(0, 2), "w:");
}

TEST(Linear, ErrorsOfBuffersNameWhatTheCallerHas) {
  Rng rng;
  LinearProblem linear{.m = 4, .n = 64, .k = 32};
  linear.bias = BiasType::kF32;
  linear.residual = true;
  Problem p{.m = 4, .n = 64, .k = 32, .bias = BiasType::kF32, .combine = Combine::kSideBySide};
  p.residual = true;
  Uncut one{linear, RandomCase(p, rng, Values::kRandom)};
  const auto refusal = [&](auto change) {
    LinearBuffers b = one.buffers();
    change(b);
    const Status status = validate(linear, b);
    EXPECT_EQ(run(linear, b).message(), status.message());
    return status.message();
  };
  const std::string shares = "must not share bytes with any other operand";
  EXPECT_EQ(refusal([](LinearBuffers&) {}), "ok");
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.w = nullptr; }), "w: null; is required");
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.w_scales = nullptr; }), "w_scales: null; is required");
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.bias = nullptr; }), "bias: null; is required");
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.residual = nullptr; }), "residual: null; is required");
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.d = const_cast<void*>(b.w); }),
            "d: overlaps w; " + shares);
  EXPECT_EQ(refusal([](LinearBuffers& b) {
              b.d = const_cast<uint8_t*>(static_cast<const uint8_t*>(b.w)) + 64 * 16 - 2;
            }),
            "d: overlaps w; " + shares);
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.residual = static_cast<uint8_t*>(b.d) + 2; }),
            "d: overlaps residual; " + shares);
  EXPECT_EQ(refusal([](LinearBuffers& b) { b.residual = b.d; }), "ok");
}

}  // namespace
}  // namespace dualgemm
