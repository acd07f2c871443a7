#include "kernels/suite/checks.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/simulation/results.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

RandomCase random_case(const TestCase& c) {
  Rng rng;
  RandomCase data(c.problem, rng, c.values);
  if (c.factors) add_alphas_and_row_scales(data, rng);
  return data;
}

std::vector<uint8_t> simulated_bits_of(const KernelRow& row, const TestCase& c, RandomCase& data) {
  data.poison_d();
  Setting setting = c.setting;
  EXPECT_TRUE(row.simulate(data, setting));
  return bits_of(data);
}

// How many cases divided a tile among CTAs; limits say how many must.
struct DividedTiles {
  int64_t shared = 0, shared_or_paired = 0;

  void add(const Setting& setting) {
    shared += setting.shares_tiles;
    shared_or_paired += setting.shares_tiles || setting.pairs_ctas;
  }
  void expect(const Limits& limits) const {
    for (const auto& [name, least] : limits) {
      ASSERT_TRUE(name == "shared" || name == "shared_or_paired") << name << " is no limit";
      EXPECT_GE(name == "shared" ? shared : shared_or_paired, least);
    }
  }
};

// Every element against the oracle, within the bound of docs/numerics.md. Everything that must not
// be read for its value is poison.
void within_bound_of_oracle(const KernelRow& row, const TestCase& c, DividedTiles& divided) {
  SCOPED_TRACE(describe(c));
  RandomCase data = random_case(c);
  data.poison_d();
  Setting setting = c.setting;
  ASSERT_TRUE(row.simulate(data, setting));
  EXPECT_TRUE(within_bound(c.problem, data.buffers(), row.accumulation));
  divided.add(setting);
}
void all_within_bound(const KernelRow& row, const std::vector<TestCase>& cases,
                      const Limits& limits) {
  DividedTiles divided;
  for (const TestCase& c : cases) within_bound_of_oracle(row, c, divided);
  divided.expect(limits);
}

// D as NVFP4: the FP32 result of the same kernel, quantised.
void is_wide_output_quantized(const KernelRow& row, const TestCase& c, DividedTiles& divided) {
  SCOPED_TRACE(describe(c));
  const bool is_swizzled = c.problem.d.scale_layout == ScaleLayout::kSwizzled128x4;
  TwoOutputs both(with_nvfp4_output(c.problem, is_swizzled, c.gaps));
  both.change([&c](RandomCase& data) { make_extreme(data, c.extreme); });
  Setting wide = c.setting, narrow = c.setting;
  ASSERT_TRUE(row.simulate(both.wide, wide));
  ASSERT_TRUE(row.simulate(both.narrow, narrow));
  EXPECT_TRUE(both.agree());
  divided.add(narrow);
}
void all_wide_outputs_quantized(const KernelRow& row, const std::vector<TestCase>& cases,
                                const Limits& limits) {
  DividedTiles divided;
  for (const TestCase& c : cases) is_wide_output_quantized(row, c, divided);
  divided.expect(limits);
}

// Inputs whose sums are exact: an identity epilogue leaves the oracle's bits. The product of exact
// g and u is rounded once, by both to the nearest.
void all_equal_to_oracle(const KernelRow& row, const std::vector<TestCase>& cases, const Limits&) {
  for (const TestCase& c : cases) {
    RandomCase data = random_case(c);
    const auto got = simulated_bits_of(row, c, data);
    data.poison_d();
    ASSERT_TRUE(reference::dual_gemm(c.problem, data.buffers()).ok());
    EXPECT_EQ(got, bits_of(data)) << describe(c);
  }
}

// However a problem is computed, its bits are the same: those of the first case. Cases whose key
// `bits` differs may differ.
void same_bits_for_each_problem(const KernelRow& row, const std::vector<TestCase>& cases,
                                const Limits&) {
  struct First {
    const TestCase* of;
    std::vector<uint8_t> bits;
  };
  std::vector<First> first;
  for (const TestCase& c : cases) {
    RandomCase data = random_case(c);
    const auto got = simulated_bits_of(row, c, data);
    const auto is_same = [&](const First& known) {
      return known.of->problem == c.problem && known.of->bits == c.bits;
    };
    const auto known = std::find_if(first.begin(), first.end(), is_same);
    if (known == first.end()) {
      first.push_back({&c, got});
    } else {
      EXPECT_EQ(known->bits, got) << describe(c);
    }
  }
}

// A NaN reaches the row or column it belongs to, and nothing else. Elsewhere the padding, which
// RandomCase fills with NaN, would already have shown.
void nan_reaches_its_row_or_column(const KernelRow& row, const TestCase& c) {
  SCOPED_TRACE(describe(c));
  const Problem& p = c.problem;
  const int64_t blocks = p.k / 16;
  RandomCase data = random_case(c);
  std::vector<bool> lost_rows(static_cast<size_t>(p.m)), lost_columns(static_cast<size_t>(p.n));
  if (p.a.type == DataType::kE2M1) {
    data.a.scales[data.resolved.a.scale_map()(*c.nan_a / blocks, *c.nan_a % blocks)] = 0x7F;
    lost_rows.at(static_cast<size_t>(*c.nan_a / blocks)) = true;
  } else {
    store_element(data.a.data.data(), p.a.type, *c.nan_a, NAN);
    lost_rows.at(static_cast<size_t>(*c.nan_a / p.k)) = true;
  }
  uint8_t sign = 0x80;  // of the first: it does not count
  const auto spoil = [&](Operand& operand, const core::ResolvedMatrix& matrix,
                         const std::vector<int64_t>& places) {
    for (const int64_t place : places) {
      operand.scales[matrix.scale_map()(place / blocks, place % blocks)] =
          static_cast<uint8_t>(0x7F | sign);
      lost_columns.at(static_cast<size_t>(place / blocks)) = true;
      sign = 0;
    }
  };
  spoil(data.gate, data.resolved.gate, c.nan_gate);
  spoil(data.up, data.resolved.up, c.nan_up);
  data.poison_d();
  Setting setting = c.setting;
  ASSERT_TRUE(row.simulate(data, setting));
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const bool lost = lost_rows[static_cast<size_t>(i)] || lost_columns[static_cast<size_t>(j)];
      ASSERT_EQ(std::isnan(load_element(data.d.data.data(), p.d.type, i * p.n + j)), lost)
          << "row " << i << " col " << j;
    }
  }
}
void all_nan_in_their_rows_and_columns(const KernelRow& row, const std::vector<TestCase>& cases,
                                       const Limits&) {
  for (const TestCase& c : cases) {
    ASSERT_TRUE(c.nan_a && !c.nan_gate.empty() && !c.nan_up.empty()) << "no NaN: " << describe(c);
    nan_reaches_its_row_or_column(row, c);
  }
}

// Two products side by side in D: support/side_by_side.hpp.
void all_side_by_side(const KernelRow& row, const std::vector<TestCase>& cases, const Limits&) {
  Rng rng;
  int next = 0;
  for (const TestCase& c : cases) {
    std::vector<DataType> types;
    for (const DataType type : kTypesOfA) {
      if ((c.types >> static_cast<int>(type)) % 2 != 0) types.push_back(type);
    }
    ASSERT_TRUE(!types.empty() && c.rows > 0 && c.columns > 0) << describe(c);
    for (Problem p : side_by_side_problems(types, c.rows, c.columns, c.problem.k, rng)) {
      Setting fixed = c.setting;
      if (!c.groups) p.grouping = Grouping::kNone;
      if (c.wrap_m != 0) p.m = (p.m - 1) % c.wrap_m + 1;
      if (c.clamp_m != 0 && p.grouping == Grouping::kNone) p.m = std::min(p.m, c.clamp_m);
      if (c.dense_d) p.d.ld = 0;
      if (c.any_misalign) fixed.misalign = rng.integer(0, 3);
      if (c.changing_ctas) fixed.max_ctas = 1 + next++ % 5;
      const auto simulate = [&](RandomCase& data) {
        Setting setting = fixed;
        return row.simulate(data, setting);
      };
      expect_side_by_side(p, simulate, rng);
    }
  }
}

}  // namespace

Check find_check(const std::string& name) {
  static const std::map<std::string, Check> checks{{"within_bound", all_within_bound},
                                                   {"fp32_quantized", all_wide_outputs_quantized},
                                                   {"equal_to_oracle", all_equal_to_oracle},
                                                   {"same_bits", same_bits_for_each_problem},
                                                   {"nan_stays", all_nan_in_their_rows_and_columns},
                                                   {"side_by_side", all_side_by_side}};
  const auto found = checks.find(name);
  return found == checks.end() ? nullptr : found->second;
}

}  // namespace dualgemm::test
