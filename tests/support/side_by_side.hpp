// Random problems of kSideBySide, and the ways to run into their edges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/inputs.hpp"

namespace dualgemm::test {

// n of a half around panels of 16, pairs of panels and tiles of swizzled scales.
inline constexpr int64_t kEdgesOfN[] = {1, 15, 16, 17, 31, 33, 128, 129};

// `n` is rounded up to 16 for a quantised D.
inline Problem random_side_by_side(Rng& rng, int64_t n, DataType d) {
  constexpr int64_t kRows[] = {1, 2, 4, 5, 17, 33, 70};
  const auto layout = [&] { return static_cast<ScaleLayout>(rng.integer(0, 1)); };
  const int64_t step = d == DataType::kE2M1 ? 16 : 1;
  Problem p{.m = rng.pick(kRows), .n = (n + step - 1) / step * step, .k = 16 * rng.integer(1, 20)};
  p.combine = Combine::kSideBySide;
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
  if (!c.row_experts.empty()) text += ", rows of";
  for (const int32_t expert : c.row_experts) text += " " + std::to_string(expert);
  return text;
}

}  // namespace dualgemm::test
