// The FP32 activations of every instruction set against double: the contract that the error bound
// relies on (docs/numerics.md, "Activation"), the accuracy that "Epilogue" there lists, equal bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/activation.hpp"
#include "cpu/kernel_table.hpp"
#include "support/activation_rows.hpp"
#include "support/sanitizers.hpp"
#include "unit/cpu/run.hpp"

namespace dualgemm::cpu::as_compiled_here {
#include "cpu/generic/activation-inl.hpp"
}

namespace dualgemm::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// g of every exponent and both signs, infinities and NaNs among them: every kFineStride-th bit
// pattern; in a sanitizer or emulator, which are slow, fewer. Primes: no mantissa bit stands still.
constexpr uint32_t kFineStride = 509;
uint32_t stride() {
  if (kSanitized) return 65521;
  return std::getenv("DUALGEMM_TEST_EMULATED") != nullptr ? 8191 : kFineStride;
}
constexpr int kTileValues = 32 * cpu::kPanelN;

template <class Check>
void sweep(Check check) {
  std::vector<float> g(kTileValues);
  const uint32_t step = stride();
  uint64_t bits = 0;
  while (bits <= 0xFFFFFFFFu) {
    for (float& value : g) {
      value = std::bit_cast<float>(static_cast<uint32_t>(bits & 0xFFFFFFFFu));
      bits += step;
    }
    check(g);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// An activation and the u that makes the factor beside act(g) exactly 1.
struct Case {
  std::string name;
  Activation act;
  float u = 1.0f;
};
Case case_of(const std::string& name, const Activation& act) {
  return {name, act, 1.0f - core::ResolvedActivation(act).beta};
}
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ActivationRow& row : activation_rows()) {
    all.push_back(case_of(name_of(row.tried.kind), row.tried));
  }
  all.push_back(
      case_of("steep swiglu_oai",
              Activation::swiglu_oai(5.0f, 0.0f, std::numeric_limits<float>::infinity())));
  return all;
}

std::vector<float> activate(Isa isa, const Activation& act, const std::vector<float>& g, float u) {
  const std::vector<float> up(g.size(), u), no_bias(cpu::kPanelN, -0.0f);
  const cpu::PanelFactors factors{1.0f, no_bias.data()};
  std::vector<float> out(g.size());
  cpu::kernel_table(isa)->activate(act, g.data(), cpu::kPanelN, up.data(), cpu::kPanelN,
                                   static_cast<int>(g.size()) / cpu::kPanelN, factors, factors,
                                   nullptr, out.data());
  return out;
}

// What evaluating act(g) may lose by the bound, whose constants are those of docs/numerics.md.
static_assert(core::kFunctionRounds == 16.0 && core::kSigmoidFloor == 0x1p-124);
double contract(const core::ResolvedActivation& act, double g) {
  constexpr double kTiny = 0x1p-149;  // the bound's term for a product that is subnormal
  const double error = core::gate_factor(act, {g, 0.0}).error;
  return error == 0.0 ? 0.0 : error + kTiny;
}

class Activate : public ::testing::TestWithParam<Isa> {};

TEST_P(Activate, KeepsTheContractOfTheBound) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    sweep([&](const std::vector<float>& g) {
      const std::vector<float> got = activate(GetParam(), c.act, g, c.u);
      for (size_t i = 0; i < g.size(); ++i) {
        const double f = core::activate(c.act, g[i], c.u);
        if (std::isnan(f)) {
          ASSERT_TRUE(std::isnan(got[i])) << g[i];
        } else if (std::abs(f) <= std::numeric_limits<float>::max()) {
          ASSERT_LE(std::abs(got[i] - f), contract(c.act, g[i])) << g[i] << " gives " << got[i];
        } else {
          ASSERT_EQ(got[i], static_cast<float>(f)) << g[i];
        }
      }
    });
  }
}

TEST_P(Activate, GivesTheBitsOfScalar) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    sweep([&](const std::vector<float>& g) {
      const auto got = activate(GetParam(), c.act, g, c.u);
      const auto expected = activate(Isa::kScalar, c.act, g, c.u);
      for (size_t i = 0; i < g.size(); ++i) {
        if (std::isnan(expected[i]) && std::isnan(got[i]))
          continue;  // payloads of NaN are not specified
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i])) << g[i];
      }
    });
  }
}

TEST_P(Activate, SpecialValues) {
  const float nan = std::nanf(""), inf = INFINITY, least = 0x1p-149f;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    for (const float special :
         {nan, inf, -inf, 0.0f, -0.0f, least, -least, 0x1p-127f, -0x1p-127f}) {
      for (const bool in_gate : {true, false}) {
        const float g = in_gate ? special : 1.0f, u = in_gate ? c.u : special;
        const double exact = core::activate(c.act, g, u);
        const float got =
            activate(GetParam(), c.act, std::vector<float>(cpu::kPanelN, g), u).front();
        if (std::isfinite(exact)) {
          EXPECT_NEAR(got, exact, 4e-7 * std::abs(exact) + 0x1p-149) << g << ", " << u;
        } else if (std::isnan(exact)) {
          EXPECT_TRUE(std::isnan(got)) << g << ", " << u;
        } else {
          EXPECT_EQ(got, exact) << g << ", " << u;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllIsas, Activate, ::testing::ValuesIn(isas()), isa_name);

// The largest error over low <= x <= high, as a multiple of `unit` of (x, exact result).
struct Range {
  double low, high;
};
template <class Function, class Exact, class Unit>
double largest_error(Range range, Function function, Exact exact, Unit unit) {
  double largest = 0.0;
  sweep([&](const std::vector<float>& x) {
    const std::vector<float> got = function(x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (!(range.low <= x[i] && x[i] <= range.high)) continue;
      const double f = exact(double{x[i]});
      largest = std::max(largest, std::abs(got[i] - f) / unit(double{x[i]}, f));
    }
  });
  return largest;
}
template <float (*kFunction)(float)>
std::vector<float> each(const std::vector<float>& x) {
  std::vector<float> out;
  for (const float value : x) out.push_back(kFunction(value));
  return out;
}

// The table in docs/numerics.md, "Epilogue".
TEST(ActivationAccuracy, IsAsDocumented) {
  using namespace cpu::as_compiled_here;
  const auto erfc_unit = [](double z, double f) {
    return (1.0 + (z > 0.0 ? z * z : 0.0)) * unit_in_last_place(z, f);
  };
  const auto expect = [](const std::string& name, double error, double documented) {
    EXPECT_LE(error, documented) << name;
    if (stride() != kFineStride) return;  // too few numbers to meet the largest error
    EXPECT_GT(error, documented - 0.1) << name << ": the documentation is too modest";
  };
  const auto exp_exact = [](double x) { return std::exp(x); };
  const auto erfc_exact = [](double z) { return std::erfc(z); };
  expect("exp", largest_error({-87.0, 88.7}, each<exp_f32>, exp_exact, unit_in_last_place), 1.0);
  expect("erfc", largest_error({-kInfinity, 9.0}, each<erfc_f32>, erfc_exact, erfc_unit), 7.9);
  for (const ActivationRow& row : activation_rows()) {
    const DocumentedError& documented = row.error;
    if (documented.most == 0.0) continue;  // held to be exact by the contract
    const Case c = case_of(name_of(row.tried.kind), row.tried);
    const double error = largest_error(
        {documented.low, documented.high},
        [&](const std::vector<float>& g) { return activate(Isa::kScalar, c.act, g, c.u); },
        [&](double g) { return core::activate(c.act, g, c.u); }, documented.unit);
    expect(c.name, error, documented.most);
  }
}

}  // namespace
}  // namespace dualgemm::test
