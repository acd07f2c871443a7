// Random problems of two products side by side, the ways to run into their edges, and what must
// hold of D.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_table.hpp"
#include "core/scale_padding.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {

// n of a half around panels of 16, pairs of panels and tiles of swizzled scales.
inline constexpr int64_t kEdgesOfN[] = {1, 15, 16, 17, 31, 33, 128, 129};

inline Activation activation_of_one_product(Rng& rng) {
  std::vector<ActivationKind> kinds;
  for (const core::EnumRow<ActivationKind>& row : core::kEnumRows<ActivationKind>)
    if (!core::takes_parameters(row.value)) kinds.push_back(row.value);
  return {.kind = rng.pick(kinds)};
}

// For exact inputs: activations round, each backend's in its own way, and leave nothing exact.
inline Problem without_activation(Problem p) {
  p.combine = Combine::kSideBySide;
  p.act = {};
  return p;
}

// `n` is rounded up to 16 for a quantised D.
inline Problem random_side_by_side(Rng& rng, int64_t n, DataType d) {
  constexpr int64_t kRows[] = {1, 2, 4, 5, 17, 33, 70};
  const auto layout = [&] { return static_cast<ScaleLayout>(rng.integer(0, 1)); };
  const int64_t step = d == DataType::kE2M1 ? 16 : 1;
  Problem p{.m = rng.pick(kRows), .n = (n + step - 1) / step * step, .k = 16 * rng.integer(1, 20)};
  p.combine = rng.chance(0.5) ? Combine::kSideBySide : Combine::kActivatedSideBySide;
  if (p.combine == Combine::kActivatedSideBySide) p.act = activation_of_one_product(rng);
  p.up_column = rng.chance(0.4) ? p.n : rng.integer(0, p.n) / step * step;
  p.l = rng.integer(1, 4);
  p.grouping = static_cast<Grouping>(rng.integer(0, 2));
  p.a.type = rng.pick(kTypesOfA);
  if (p.a.type == DataType::kE2M1) p.a.scale_layout = layout();
  p.gate.scale_layout = layout();
  p.up.scale_layout = layout();
  p.d.type = d;
  if (d == DataType::kE2M1) p.d.scale_layout = layout();
  if (rng.chance(0.4)) p.d.ld = p.n + p.up_column + 2 * rng.integer(0, 9);
  p.bias = any_bias(rng);
  if (p.bias != BiasType::kNone && rng.chance(0.6)) p.bias_stride = p.n + rng.integer(0, 40);
  p.residual = d != DataType::kE2M1 && rng.chance(0.6);
  return p;
}

// Its operands; contiguous rows half of the time name their experts.
inline RandomCase side_by_side_case(const Problem& p, Rng& rng, Values values) {
  std::vector<int32_t> rows;
  if (p.grouping == Grouping::kContiguous && rng.chance(0.5))
    rows = random_row_experts(rng, p.l, p.m);
  return RandomCase(p, rng, values, {}, std::move(rows));
}

inline std::string describe_side_by_side(const RandomCase& c) {
  const Problem& p = c.problem;
  std::string text = std::string(name_of(p.grouping)) + ", m " + std::to_string(p.m) + " n " +
                     std::to_string(p.n) + " up_column " + std::to_string(p.up_column) + " k " +
                     std::to_string(p.k) + " l " + std::to_string(p.l) + ", a " +
                     name_of(p.a.type) + " " + name_of(p.a.scale_layout) + ", gate " +
                     name_of(p.gate.scale_layout) + ", up " + name_of(p.up.scale_layout) + ", d " +
                     name_of(p.d.type) + " " + name_of(p.d.scale_layout) + " ld " +
                     std::to_string(p.d.ld) + ", bias " + name_of(p.bias) + " stride " +
                     std::to_string(p.bias_stride) + (p.residual ? ", residual" : "");
  if (p.combine == Combine::kActivatedSideBySide) text += std::string(", ") + name_of(p.act.kind);
  if (!c.row_experts.empty()) text += ", rows of";
  for (const int32_t expert : c.row_experts) text += " " + std::to_string(expert);
  return text;
}

// What a kernel makes of `problem`: exact inputs, without an activation, bit for bit as the oracle
// has them, random ones within the bound, every other byte as it was. The residual may be D.
inline void expect_side_by_side(const Problem& problem, const SimulateCase& simulate, Rng& rng) {
  for (const Values values : {Values::kExact, Values::kRandom}) {
    const Problem p = values == Values::kExact ? without_activation(problem) : problem;
    RandomCase c = side_by_side_case(p, rng, values);
    SCOPED_TRACE(describe_side_by_side(c));
    c.in_place = p.residual && rng.chance(0.5);
    if (values == Values::kRandom && rng.chance(0.5)) add_alphas_and_row_scales(c, rng);
    c.poison_d();
    ASSERT_TRUE(simulate(c));
    EXPECT_TRUE(others_are_poison(c));
    c.in_place = false;
    if (values == Values::kRandom) {
      ASSERT_TRUE(within_bound(p, c.buffers(), reference::Accumulation::kAnyOrder));
      continue;
    }
    const std::vector<uint8_t> got(c.d.data.begin(), c.d.data.end());
    const std::vector<uint8_t> scales(c.d.scales.begin(), c.d.scales.end());
    ASSERT_TRUE(reference::dual_gemm(p, c.buffers()).ok());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), c.d.data.begin()));
    core::clear_scale_padding(c.resolved, c.buffers());
    ASSERT_TRUE(std::equal(scales.begin(), scales.end(), c.d.scales.begin()));
  }
}

// Sizes around tiles of tile_m rows and tile_n columns of a half, every type of D, every grouping.
inline std::vector<Problem> side_by_side_problems(const std::vector<DataType>& a_types,
                                                  int64_t tile_m, int64_t tile_n, int64_t k,
                                                  Rng& rng) {
  std::vector<Problem> problems;
  for (const int64_t n : {tile_n - 15, tile_n, tile_n + 17}) {
    for (const DataType d : {DataType::kE2M1, DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p = random_side_by_side(rng, std::max<int64_t>(n, 1), d);
      p.m = rng.integer(1, 2 * tile_m + 2);
      p.k = k;
      p.a.type = a_types[problems.size() % a_types.size()];
      if (p.a.type != DataType::kE2M1) p.a.scale_layout = ScaleLayout::kLinear;
      problems.push_back(p);
    }
  }
  return problems;
}

}  // namespace dualgemm::test
