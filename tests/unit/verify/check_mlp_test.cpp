// The definition of a whole MLP in double precision: it accepts what the library computes, however
// its sums are ordered, and no other Y.
#include "tools/verify/check_mlp.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/mlp_case.hpp"

namespace dualgemm::test {
namespace {

using verify::check_mlp;
using verify::CheckReport;

void run_mlp(MlpCase& data, const MlpBuffers& buffers, Isa isa = Isa::kAuto) {
  const auto mlp = GatedMlp::plan(data.problem, {.isa = isa});
  ASSERT_TRUE(mlp.ok()) << mlp.status().message();
  data.y.data.fill(kPoison);
  Guarded<uint8_t> workspace(mlp->workspace_bytes());
  const Status status = mlp->run(buffers, workspace.data(), workspace.size());
  ASSERT_TRUE(status.ok()) << status.message();
}

CheckReport report_of(MlpCase& data, const MlpBuffers& buffers, Isa isa) {
  const auto report = check_mlp(data.problem, buffers, isa, isa);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report ? *report : CheckReport();
}

std::string worst_of(const CheckReport& report) {
  return std::to_string(report.failed) + " outside; worst at (" + std::to_string(report.worst_row) +
         ", " + std::to_string(report.worst_col) + "): " + std::to_string(report.actual) +
         ", expected " + std::to_string(report.expected) + ", accepted " +
         std::to_string(report.lowest) + " .. " + std::to_string(report.highest);
}

int64_t computed_rows(const MlpCase& data) {
  const MlpProblem& p = data.problem;
  int64_t rows = p.grouping == Grouping::kNone ? p.l * p.m : 0;
  for (const int32_t count : data.expert_rows) rows += count;
  if (!data.expert_offsets.empty()) rows = p.m;
  for (const int32_t expert : data.row_experts) rows += expert >= 0 ? 1 : 0;
  return rows;
}

TEST(CheckMlp, AcceptsWhatTheLibraryComputes) {
  Rng rng;
  double largest_share = 0.0;
  for (int64_t turn = 0; turn < 160; ++turn) {
    MlpProblem p = random_mlp_problem(rng, turn);
    if (rng.chance(0.2)) p.x.type = DataType::kF32;
    MlpCase data(p, rng);
    if (data.problem.grouping == Grouping::kContiguous && rng.chance(0.4)) data.name_experts(rng);
    const Isa isa = rng.pick(device_caps().isas);
    SCOPED_TRACE(data.describe() + ", " + name_of(isa));
    run_mlp(data, data.buffers(), isa);
    const CheckReport report = report_of(data, data.buffers(), isa);
    EXPECT_EQ(report.failed, 0) << worst_of(report);
    EXPECT_EQ(report.compared, computed_rows(data) * data.problem.hidden);
    largest_share = std::max(largest_share, report.worst_share);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(largest_share, 0.0);  // some elements are not exact
}

TEST(CheckMlp, AcceptsRoutedExperts) {
  Rng rng;
  for (int64_t turn = 0; turn < 120; ++turn) {
    MlpProblem p = random_routed_problem(rng, turn);
    if (rng.chance(0.2)) p.x.type = DataType::kF32;
    MlpCase data(p, rng);
    const Isa isa = rng.pick(device_caps().isas);
    SCOPED_TRACE(data.describe() + ", " + name_of(isa));
    run_mlp(data, data.buffers(), isa);
    const CheckReport report = report_of(data, data.buffers(), isa);
    EXPECT_EQ(report.failed, 0) << worst_of(report);
    EXPECT_EQ(report.compared, data.problem.m * data.problem.hidden);
    if (testing::Test::HasFailure()) return;
    if (data.router.weights.empty()) continue;
    // Another weight is another sum, unless its expert is none.
    const auto index = rng.integer(0, data.router.count() - 1);
    const float weight = weight_at(data.problem.weights_type, data.router.weights, index);
    store_element(data.router.weights.data(), data.problem.weights_type, index, weight + 8.0f);
    run_mlp(data, data.buffers(), isa);
    const bool counts = !report_of(data, data.buffers(), isa).failed;
    EXPECT_TRUE(counts);
    store_element(data.router.weights.data(), data.problem.weights_type, index, weight);
    data.router.scales_rows = false, data.router.token_scale.clear();
    data.router.poison();
    RoutingBuffers ids = data.router.buffers();
    ids.weights = nullptr;
    ASSERT_TRUE(route_tokens(data.router.problem, ids).ok());
    const bool is_there = data.router.places[static_cast<size_t>(index)] >= 0;
    EXPECT_EQ(report_of(data, data.buffers(), isa).failed > 0, is_there);
  }
}

// One unit in the last place of bf16, or 2^-6 of an FP32 Y, is more than the bound allows almost
// everywhere.
TEST(CheckMlp, RefusesAnElementThatIsWrong) {
  Rng rng;
  for (int64_t turn = 0; turn < 16; ++turn) {
    MlpProblem p = random_mlp_problem(rng, turn);
    p.grouping = Grouping::kNone;
    p.y.type = DataType::kF32;
    MlpCase data(p, rng);
    SCOPED_TRACE(data.describe());
    run_mlp(data, data.buffers());
    const int64_t row = rng.integer(0, p.m - 1), col = rng.integer(0, p.hidden - 1);
    auto* const y = reinterpret_cast<float*>(data.y.data.data());
    float& element = y[row * data.y_matrix.ld + col];
    const float right = element;
    for (const float wrong : {right + 0.5f + std::abs(right), std::nanf(""), INFINITY}) {
      element = wrong;
      const CheckReport report = report_of(data, data.buffers(), Isa::kScalar);
      EXPECT_EQ(report.failed, 1) << worst_of(report);
      EXPECT_EQ(report.worst_row, row);
      EXPECT_EQ(report.worst_col, col);
      EXPECT_FALSE(report.passed());
    }
    element = right;
  }
}

// What a mistake between the steps would give.
TEST(CheckMlp, RefusesAnotherMlp) {
  Rng rng;
  for (int64_t turn = 0; turn < 4; ++turn) {
    MlpProblem p{.m = 5, .hidden = 64, .intermediate = 96};
    p.quantize_x = turn % 2 == 1;
    p.quantize_h = turn / 2 == 1;
    p.bias = BiasType::kF32;
    p.residual = true;
    MlpCase data(p, rng);
    SCOPED_TRACE(data.describe());
    const MlpBuffers good = data.buffers();
    run_mlp(data, good);
    ASSERT_TRUE(report_of(data, good, Isa::kScalar).passed());
    const auto refused = [&](const char* what, auto spoil) {
      MlpBuffers bad = good;
      spoil(bad);
      EXPECT_GT(report_of(data, bad, Isa::kScalar).failed, 5 * 64 / 2) << what;
    };
    refused("gate and up swapped", [](MlpBuffers& b) {
      std::swap(b.gate, b.up);
      std::swap(b.gate_scales, b.up_scales);
    });
    refused("another alpha of down", [](MlpBuffers& b) { b.alpha_down *= 1.25f; });
    refused("another bias of down", [](MlpBuffers& b) { b.bias_down = b.bias_gate; });
    refused("another residual", [&](MlpBuffers& b) { b.residual = good.down; });
    if (p.quantize_h)
      refused("another scale of h", [](MlpBuffers& b) { b.h_global_scale *= 1.5f; });
  }
}

TEST(CheckMlp, RefusesAResidualThatIsGone) {
  Rng rng;
  MlpProblem p{.m = 2, .hidden = 32, .intermediate = 32};
  p.residual = true;
  MlpCase data(p, rng);
  MlpBuffers buffers = data.buffers();
  buffers.residual = buffers.y;
  EXPECT_EQ(check_mlp(p, buffers, Isa::kScalar, Isa::kScalar).status().argument(), "residual");
}

}  // namespace
}  // namespace dualgemm::test
