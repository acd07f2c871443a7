#include "core/activation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/activation_rows.hpp"
#include "support/every_activation.hpp"
#include "support/limits.hpp"

namespace dualgemm::core {
namespace {

using test::kInfinity;
using test::kNan;

Activation of(ActivationKind kind) { return {.kind = kind}; }

// A kind without a row would be left out of every test of values.
TEST(Activation, EveryKindHasARowInOrder) {
  const auto rows = test::activation_rows();
  ASSERT_EQ(rows.size(), size_t{kEnumCount<ActivationKind>});
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].tried.kind, static_cast<ActivationKind>(i));
    EXPECT_FALSE(rows[i].known.empty()) << name_of(rows[i].tried.kind);
    for (const auto& value : rows[i].known) EXPECT_EQ(value.act.kind, rows[i].tried.kind);
  }
}

TEST(Activation, KnownValues) {
  for (const auto& row : test::activation_rows()) {
    for (const auto& [act, g, u, want] : row.known) {
      EXPECT_NEAR(activate(act, g, u), want, 1e-14 * (1.0 + std::abs(want)))
          << name_of(act.kind) << " g " << g << " u " << u;
    }
  }
}

TEST(Activation, EveryKindPropagatesNaN) {
  for (const Activation& a : test::every_activation()) {
    EXPECT_TRUE(std::isnan(activate(a, kNan, 2.0))) << name_of(a.kind);
    EXPECT_TRUE(std::isnan(activate(a, 2.0, kNan))) << name_of(a.kind);
  }
}

TEST(Activation, WhatIsNotGivenHasTheKindsDefault) {
  const ResolvedActivation oai = of(ActivationKind::kSwigluOai);
  EXPECT_EQ(oai.alpha, 1.702f);
  EXPECT_EQ(oai.beta, 1.0f);
  EXPECT_EQ(oai.limit, 7.0f);
  const ResolvedActivation clamped = Activation::clamped_swiglu(7.0f);
  EXPECT_EQ(clamped.alpha, 1.0f);
  EXPECT_EQ(clamped.beta, 0.0f);
  EXPECT_EQ(clamped.limit, 7.0f);
  const ResolvedActivation given =
      Activation{.kind = ActivationKind::kSwigluOai, .beta = 0.0f, .limit = 9.0f};
  EXPECT_EQ(given.alpha, 1.702f);
  EXPECT_EQ(given.beta, 0.0f) << "given is given";
  EXPECT_EQ(given.limit, 9.0f);
  // gpt-oss: g = min(2, 7), u = max(-9, -7); 2 * sigmoid(1.702 * 2) * (-7 + 1)
  EXPECT_NEAR(activate(of(ActivationKind::kSwigluOai), 2.0, -9.0),
              -12.0 / (1.0 + std::exp(-2.0 * 1.702f)), 1e-13);
  EXPECT_EQ(activate(of(ActivationKind::kSwigluOai), 2.0, -9.0),
            activate(Activation::swiglu_oai(), 2.0, -9.0));
}

TEST(Activation, EqualWhenTheSameWasGiven) {
  EXPECT_EQ(of(ActivationKind::kSwigluOai), Activation::swiglu_oai());
  EXPECT_NE(of(ActivationKind::kSwigluOai), Activation::swiglu_oai(1.702f, 1.0f, 7.0f));
  EXPECT_EQ((Problem{.m = 1, .n = 1, .k = 16}), (Problem{.m = 1, .n = 1, .k = 16}));
}

TEST(Activation, LargeArgumentsSaturate) {
  EXPECT_EQ(activate(Activation::silu(), 1000.0, 2.0), 2000.0);
  EXPECT_EQ(activate(Activation::silu(), -1000.0, 2.0), 0.0);
  EXPECT_EQ(activate(of(ActivationKind::kGeluTanh), 1e30, 1.0), 1e30);
  EXPECT_EQ(activate(of(ActivationKind::kGeluErf), -1e30, 1.0), 0.0);
  EXPECT_EQ(activate(of(ActivationKind::kSigmoid), -kInfinity, 3.0), 0.0);
  EXPECT_EQ(activate(Activation::clamped_swiglu(7.0f), kInfinity, kInfinity),
            activate(Activation::clamped_swiglu(7.0f), 7.0, 7.0));
}

// 0.5*g*(1 + erf(g/sqrt(2))) as written would lose every digit here.
TEST(Activation, GeluKeepsItsTail) {
  EXPECT_NEAR(activate(of(ActivationKind::kGeluErf), -10.0, 1.0) / -7.619853024160593e-23, 1.0,
              1e-10);
}

}  // namespace
}  // namespace dualgemm::core
