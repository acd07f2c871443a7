// The C interface adds nothing of its own: results, refusals and texts are those of the C++ API.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "capi/structs.hpp"
#include "dualgemm/dualgemm.h"
#include "dualgemm/dualgemm.hpp"
#include "support/compare.hpp"
#include "support/every_activation.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {
namespace {

template <class Enum>
Enum any(Rng& rng) {
  return static_cast<Enum>(rng.integer(0, core::kEnumCount<Enum> - 1));
}

Matrix random_matrix(Rng& rng, DataType type, int64_t cols) {
  Matrix matrix{.type = type};
  if (rng.chance(0.5)) matrix.ld = cols + cols % 2 + 2 * rng.integer(0, 4);
  if (type != DataType::kE2M1) return matrix;
  matrix.scale_layout = any<ScaleLayout>(rng);
  if (matrix.scale_layout == ScaleLayout::kLinear && rng.chance(0.5)) {
    matrix.scale_ld = cols / kSfVec + rng.integer(0, 3);
  }
  return matrix;
}

void make_side_by_side(Problem& problem, Rng& rng) {
  const bool quantized = problem.d.type == DataType::kE2M1;
  problem.combine = Combine::kSideBySide;
  problem.act = {};
  problem.up_column = quantized ? 16 * rng.integer(0, problem.n / 16) : rng.integer(0, problem.n);
  problem.residual = !quantized && rng.chance(0.5);
  if (problem.d.ld != 0) problem.d.ld += problem.up_column + problem.up_column % 2;
  if (problem.d.scale_ld != 0) problem.d.scale_ld += problem.up_column / kSfVec;
}

Problem random_problem(Rng& rng) {
  Problem problem{.m = rng.integer(1, 40),
                  .n = rng.integer(1, 40),
                  .k = 16 * rng.integer(1, 9),
                  .l = rng.integer(1, 3)};
  const DataType d_type = any<DataType>(rng);
  if (d_type == DataType::kE2M1) problem.n = 16 * rng.integer(1, 3);
  problem.a = random_matrix(rng, any<DataType>(rng), problem.k);
  problem.gate = random_matrix(rng, DataType::kE2M1, problem.k);
  problem.up = random_matrix(rng, DataType::kE2M1, problem.k);
  problem.d = random_matrix(rng, d_type, problem.n);
  problem.act = test::any_activation(rng);
  problem.grouping = any<Grouping>(rng);
  problem.batch_invariant = rng.chance(0.3);
  problem.bias = any<BiasType>(rng);
  if (problem.bias != BiasType::kNone && rng.chance(0.3))
    problem.bias_stride = problem.n + rng.integer(0, 5);
  if (rng.chance(0.4)) make_side_by_side(problem, rng);
  return problem;
}

dualgemm_matrix to_c(const Matrix& matrix) {
  return {static_cast<int32_t>(matrix.type),
          static_cast<int32_t>(matrix.scale_layout),
          matrix.ld,
          matrix.batch_stride,
          matrix.scale_ld,
          matrix.scale_batch_stride};
}

dualgemm_problem to_c(const Problem& from) {
  dualgemm_problem to;
  dualgemm_problem_init(&to, sizeof to);
  to.m = from.m;
  to.n = from.n;
  to.k = from.k;
  to.l = from.l;
  to.a = to_c(from.a);
  to.gate = to_c(from.gate);
  to.up = to_c(from.up);
  to.d = to_c(from.d);
  to.act.kind = static_cast<int32_t>(from.act.kind);
  if (from.act.alpha) to.act.alpha = *from.act.alpha;
  if (from.act.beta) to.act.beta = *from.act.beta;
  if (from.act.limit) to.act.limit = *from.act.limit;

  to.grouping = static_cast<int32_t>(from.grouping);
  to.batch_invariant = from.batch_invariant;
  to.bias = static_cast<int32_t>(from.bias);
  to.bias_stride = from.bias_stride;
  to.up_column = from.up_column;
  to.combine = static_cast<int32_t>(from.combine);
  to.residual = from.residual;
  return to;
}

dualgemm_buffers to_c(const Buffers& from) {
  dualgemm_buffers to;
  dualgemm_buffers_init(&to, sizeof to);
  to.a = from.a;
  to.a_scales = from.a_scales;
  to.a_row_scale = from.a_row_scale;
  to.gate = from.gate;
  to.gate_scales = from.gate_scales;
  to.up = from.up;
  to.up_scales = from.up_scales;
  to.alpha_gate = from.alpha_gate;
  to.alpha_up = from.alpha_up;
  to.alpha_gate_per_batch = from.alpha_gate_per_batch;
  to.alpha_up_per_batch = from.alpha_up_per_batch;
  to.expert_offsets = from.expert_offsets;
  to.expert_rows = from.expert_rows;
  to.d = from.d;
  to.d_scales = from.d_scales;
  to.d_global_scale = from.d_global_scale;
  to.bias_gate = from.bias_gate;
  to.bias_up = from.bias_up;
  to.residual = from.residual;
  to.row_experts = from.row_experts;
  return to;
}

RandomCase random_case(Rng& rng) {
  const Problem p = random_problem(rng);
  std::vector<int32_t> rows;
  if (p.grouping == Grouping::kContiguous && rng.chance(0.4))
    rows = test::random_row_experts(rng, p.l, p.m);
  RandomCase c(p, rng, Values::kRandom, {}, rows);
  const auto fill = [&](std::vector<float>& values, int64_t count) {
    if (rng.chance(0.5)) return;
    values.resize(static_cast<size_t>(count));
    for (float& value : values) value = rng.uniform(0.25f, 2.0f);
  };
  const bool contiguous = c.problem.grouping == Grouping::kContiguous;
  fill(c.a_row_scale, (contiguous ? 1 : c.problem.l) * c.problem.m);
  fill(c.alpha_gate_per_batch, c.problem.l);
  fill(c.alpha_up_per_batch, c.problem.l);
  c.d_global_scale = 0.125f;
  return c;
}

std::vector<uint8_t> bytes_of(const Guarded<uint8_t>& data) {
  return std::vector<uint8_t>(data.begin(), data.end());
}

TEST(CapiEqualsCpp, RunsBitForBit) {
  Rng rng;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    RandomCase c = random_case(rng);
    RunInfo info;
    ASSERT_EQ(run(c.problem, c.buffers(), {}, &info).message(), "ok");
    const auto want_d = bytes_of(c.d.data), want_scales = bytes_of(c.d.scales);
    c.poison_d();
    const dualgemm_problem problem = to_c(c.problem);
    const dualgemm_buffers buffers = to_c(c.buffers());
    dualgemm_run_info c_info{};
    c_info.struct_size = sizeof c_info;
    ASSERT_EQ(dualgemm_run_once(&problem, &buffers, nullptr, &c_info), DUALGEMM_OK)
        << dualgemm_last_error_message();
    EXPECT_EQ(bytes_of(c.d.data), want_d);
    EXPECT_EQ(bytes_of(c.d.scales), want_scales);
    EXPECT_EQ(c_info.isa, static_cast<int32_t>(info.isa));
    EXPECT_EQ(c_info.regime, static_cast<int32_t>(info.regime));
    EXPECT_EQ(c_info.intermediate_bytes, info.intermediate_bytes);
  }
}

TEST(CapiEqualsCpp, PlansDescribeThemselvesAlike) {
  Rng rng;
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random_problem(rng);
    const auto strategies = all_strategies();
    PlanOptions options{.strategy = rng.pick(strategies),
                        .threads = static_cast<int>(rng.integer(0, 2))};
    const auto plan = make_plan(problem, options);
    const dualgemm_problem c_problem = to_c(problem);
    dualgemm_plan_options c_options;
    dualgemm_plan_options_init(&c_options, sizeof c_options);
    c_options.strategy = static_cast<int32_t>(options.strategy);
    c_options.threads = options.threads;
    dualgemm_plan* c_plan = nullptr;
    const dualgemm_status status = dualgemm_plan_create(&c_problem, &c_options, &c_plan);
    ASSERT_EQ(status, static_cast<int32_t>(plan.status().code()));
    ASSERT_EQ(dualgemm_last_error_message(), plan.status().message());
    if (!plan) continue;
    char text[8192];
    ASSERT_EQ(dualgemm_plan_config(c_plan, text, sizeof text, nullptr), DUALGEMM_OK);
    EXPECT_EQ(text, plan->config());
    ASSERT_EQ(dualgemm_plan_explain(c_plan, text, sizeof text, nullptr), DUALGEMM_OK);
    EXPECT_EQ(text, plan->explain());
    dualgemm_plan_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(dualgemm_plan_get_info(c_plan, &info), DUALGEMM_OK);
    EXPECT_EQ(info.strategy, static_cast<int32_t>(plan->strategy));
    EXPECT_EQ(info.device, static_cast<int32_t>(plan->device));
    EXPECT_EQ(info.isa, static_cast<int32_t>(plan->isa));
    EXPECT_EQ(info.regime, static_cast<int32_t>(plan->regime));
    EXPECT_EQ(info.threads, plan->threads);
    EXPECT_EQ(info.tile_m, plan->shape.tile_m);
    EXPECT_EQ(info.tile_n, plan->shape.tile_n);
    EXPECT_EQ(info.tile_k, plan->shape.tile_k);
    EXPECT_EQ(info.workspace_bytes, plan->workspace_bytes);
    EXPECT_EQ(info.prepared_bytes, plan->prepared_bytes);
    EXPECT_EQ(info.stages, plan->shape.stages);
    EXPECT_EQ(info.k_warpgroups, plan->shape.k_warpgroups);
    EXPECT_EQ(info.ctas, plan->shape.ctas);
    EXPECT_EQ(info.preparation, static_cast<int32_t>(plan->preparation));
    EXPECT_EQ(info.kernel, plan->kernel);
    dualgemm_plan_destroy(c_plan);
  }
}

TEST(CapiEqualsCpp, EveryPlanOptionArrives) {
  dualgemm_plan_options from;
  dualgemm_plan_options_init(&from, sizeof from);
  from.unaligned = 1;
  auto to = capi::to_plan_options(&from);
  ASSERT_TRUE(to.ok()) << to.status().message();
  EXPECT_TRUE(to->unaligned && !to->trusted_pointers && !to->prepared);
  from.unaligned = 0;
  from.trusted_pointers = 1;
  to = capi::to_plan_options(&from);
  ASSERT_TRUE(to.ok()) << to.status().message();
  EXPECT_TRUE(!to->unaligned && to->trusted_pointers && !to->prepared);
  from.struct_size = offsetof(dualgemm_plan_options, unaligned);
  to = capi::to_plan_options(&from);
  ASSERT_TRUE(to.ok()) << to.status().message();
  EXPECT_TRUE(!to->unaligned && !to->trusted_pointers);
}

// One field of a valid problem replaced by a number that often breaks a rule.
TEST(CapiEqualsCpp, RefusalsHaveTheSameCodesAndTexts) {
  Rng rng;
  constexpr int64_t kNumbers[] = {-1, 0, 1, 2, 7, 15, 16, 33, 1 << 20, int64_t{1} << 40, INT64_MAX};
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    RandomCase c = random_case(rng);
    Problem problem = c.problem;
    int64_t* const fields[] = {&problem.m,
                               &problem.n,
                               &problem.k,
                               &problem.l,
                               &problem.a.ld,
                               &problem.a.scale_ld,
                               &problem.gate.scale_ld,
                               &problem.d.batch_stride,
                               &problem.d.ld,
                               &problem.up_column,
                               &problem.bias_stride,
                               &problem.up.ld,
                               &problem.up.scale_batch_stride};
    *rng.pick(fields) = rng.pick(kNumbers);
    const Status status = validate(problem);
    const dualgemm_problem c_problem = to_c(problem);
    ASSERT_EQ(dualgemm_validate(&c_problem, nullptr), static_cast<int32_t>(status.code()));
    ASSERT_EQ(dualgemm_last_error_message(), status.message());
    ASSERT_EQ(dualgemm_last_error_argument(), status.argument());
    ASSERT_EQ(dualgemm_last_error_observed(), status.observed());
    ASSERT_EQ(dualgemm_last_error_rule(), status.rule());
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

// The sizes suffice for the operands that the oracle's tests use, and are no larger except where
// the distribution over experts matters.
TEST(CapiEqualsCpp, OperandSizesAreTheSpans) {
  Rng rng;
  for (int round = 0; round < 300; ++round) {
    RandomCase c = random_case(rng);
    const auto sizes = operand_sizes(c.problem);
    ASSERT_TRUE(sizes.ok());
    EXPECT_EQ(sizes->a, c.a.data.size());
    EXPECT_EQ(sizes->gate, c.gate.data.size());
    EXPECT_EQ(sizes->gate_scales, c.gate.scales.size());
    EXPECT_EQ(sizes->up, c.up.data.size());
    EXPECT_EQ(sizes->up_scales, c.up.scales.size());
    EXPECT_EQ(sizes->d, c.d.data.size());
    EXPECT_EQ(sizes->bias_gate, c.bias_gate.size());
    EXPECT_EQ(sizes->bias_up, c.bias_up.size());
    EXPECT_GE(sizes->a_scales, c.a.scales.size());
    EXPECT_GE(sizes->d_scales, c.d.scales.size());
    if (c.problem.grouping != Grouping::kContiguous) {
      EXPECT_EQ(sizes->a_scales, c.a.scales.size());
      EXPECT_EQ(sizes->d_scales, c.d.scales.size());
    }
  }
}

// The bound for contiguous groups is reached: no distribution of m rows over l experts takes more.
TEST(CapiEqualsCpp, ContiguousScaleSizeIsTheWorstDistribution) {
  for (int64_t m : {0, 1, 2, 127, 128, 129, 130, 255, 256, 257, 300}) {
    for (int64_t l : {1, 2, 3}) {
      Problem problem{.m = m, .n = 1, .k = 16, .l = l, .grouping = Grouping::kContiguous};
      problem.a.scale_layout = ScaleLayout::kSwizzled128x4;
      int64_t most = 0;
      for (int64_t first = 0; first <= m; ++first) {
        for (int64_t second = 0; first + second <= m; ++second) {
          if (l < 3 && first + second < m) continue;
          if (l < 2 && first < m) continue;
          const int64_t rows = core::round_up_rows(first) + core::round_up_rows(second) +
                               core::round_up_rows(m - first - second);
          most = std::max(most, rows * 4);
        }
      }
      const auto sizes = operand_sizes(problem);
      ASSERT_TRUE(sizes.ok()) << sizes.status().message();
      EXPECT_EQ(sizes->a_scales, most) << "m " << m << ", l " << l;
    }
  }
}

TEST(CapiEqualsCpp, FormatsBitForBit) {
  Rng rng;
  for (int round = 0; round < 100; ++round) {
    const int64_t rows = rng.integer(1, 70), cols = 16 * rng.integer(1, 6);
    std::vector<float> x(static_cast<size_t>(rows * cols));
    for (float& value : x) value = rng.normal();
    const QuantizeOptions options{.global_scale = rng.chance(0.5) ? 0.0f : 0.01f,
                                  .four_over_six = rng.chance(0.5),
                                  .scale_layout = any<ScaleLayout>(rng)};
    dualgemm_quantize_options c_options;
    dualgemm_quantize_options_init(&c_options, sizeof c_options);
    c_options.global_scale = options.global_scale;
    c_options.four_over_six = options.four_over_six;
    c_options.scale_layout = static_cast<int32_t>(options.scale_layout);
    int64_t span = 0;
    ASSERT_EQ(dualgemm_scale_span(c_options.scale_layout, rows, cols / 16, 0, &span), DUALGEMM_OK);
    Guarded<uint8_t> codes(rows * cols / 2), c_codes(rows * cols / 2), scales(span), c_scales(span);
    const auto global = quantize_nvfp4(x.data(), DataType::kF32, rows, cols, 0, codes.data(), 0,
                                       scales.data(), options);
    ASSERT_TRUE(global.ok()) << global.status().message();
    float c_global = 0.0f;
    ASSERT_EQ(dualgemm_quantize(x.data(), DUALGEMM_F32, rows, cols, 0, c_codes.data(), 0,
                                c_scales.data(), &c_options, &c_global),
              DUALGEMM_OK);
    EXPECT_EQ(c_global, *global);
    EXPECT_TRUE(same_bits(c_codes.data(), codes.data(), codes.size()));
    EXPECT_TRUE(same_bits(c_scales.data(), scales.data(), scales.size()));

    Guarded<float> back(rows * cols), c_back(rows * cols);
    ASSERT_TRUE(dequantize_nvfp4(codes.data(), 0, scales.data(), options.scale_layout, 0, *global,
                                 rows, cols, back.data(), 0)
                    .ok());
    ASSERT_EQ(dualgemm_dequantize(codes.data(), 0, scales.data(), c_options.scale_layout, 0,
                                  *global, rows, cols, c_back.data(), 0),
              DUALGEMM_OK);
    EXPECT_TRUE(same_bits(c_back.data(), back.data(), back.size()));

    const auto report = inspect_scales(scales.data(), options.scale_layout, rows, cols / 16);
    dualgemm_scale_report c_report{};
    c_report.struct_size = sizeof c_report;
    ASSERT_EQ(dualgemm_inspect_scales(scales.data(), c_options.scale_layout, rows, cols / 16, 0,
                                      &c_report),
              DUALGEMM_OK);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(c_report.zero, report->zero);
    EXPECT_EQ(c_report.subnormal, report->subnormal);
    EXPECT_EQ(c_report.negative, report->negative);
    EXPECT_EQ(c_report.nan, report->nan);
  }
}

TEST(CapiErrors, EachThreadHasItsOwnLastError) {
  dualgemm_problem problem;
  ASSERT_EQ(dualgemm_problem_init(&problem, sizeof problem), DUALGEMM_OK);
  EXPECT_EQ(dualgemm_validate(&problem, nullptr), DUALGEMM_INVALID_ARGUMENT);
  const std::string here = dualgemm_last_error_message();
  std::string there_before, there_after;
  std::thread([&] {
    there_before = dualgemm_last_error_message();
    dualgemm_parse_isa("no such thing", nullptr);
    there_after = dualgemm_last_error_message();
  }).join();
  EXPECT_EQ(there_before, "ok");
  EXPECT_EQ(there_after, "isa: null; must not be null");
  EXPECT_EQ(dualgemm_last_error_message(), here);
}

TEST(CapiErrors, NamesAgreeForEveryEnumerator) {
  for (int32_t i = -2; i < 12; ++i) {
    EXPECT_STREQ(dualgemm_data_type_name(i), name_of(static_cast<DataType>(i)));
    EXPECT_STREQ(dualgemm_scale_layout_name(i), name_of(static_cast<ScaleLayout>(i)));
    EXPECT_STREQ(dualgemm_activation_name(i), name_of(static_cast<ActivationKind>(i)));
    EXPECT_STREQ(dualgemm_grouping_name(i), name_of(static_cast<Grouping>(i)));
    EXPECT_STREQ(dualgemm_strategy_name(i), name_of(static_cast<StrategyId>(i)));
    EXPECT_STREQ(dualgemm_device_name(i), name_of(static_cast<DeviceKind>(i)));
    EXPECT_STREQ(dualgemm_isa_name(i), name_of(static_cast<Isa>(i)));
    EXPECT_STREQ(dualgemm_bias_name(i), name_of(static_cast<BiasType>(i)));
    EXPECT_STREQ(dualgemm_regime_name(i), name_of(static_cast<Regime>(i)));
    EXPECT_STREQ(dualgemm_combine_name(i), name_of(static_cast<Combine>(i)));
    EXPECT_STREQ(dualgemm_preparation_name(i), name_of(static_cast<Preparation>(i)));
    EXPECT_STREQ(dualgemm_global_scaling_name(i), name_of(static_cast<GlobalScaling>(i)));
    EXPECT_STREQ(dualgemm_prepared_format_name(i), name_of(static_cast<PreparedFormat>(i)));
    EXPECT_STREQ(dualgemm_status_name(i), status_code_name(static_cast<StatusCode>(i)));
  }
  EXPECT_STREQ(dualgemm_version(), version());
}

TEST(CapiErrors, GlobalScalingsAreParsed) {
  int32_t scaling = -1;
  EXPECT_EQ(dualgemm_parse_global_scaling("row", &scaling), DUALGEMM_OK);
  EXPECT_EQ(scaling, DUALGEMM_SCALING_ROW);
  EXPECT_EQ(dualgemm_parse_global_scaling("rows", &scaling), DUALGEMM_INVALID_ARGUMENT);
  EXPECT_STREQ(dualgemm_last_error_rule(), "must be one of given, given_per_batch, tensor, row");
}

}  // namespace
}  // namespace dualgemm::test
