#include "core/activation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/every_activation.hpp"
#include "support/limits.hpp"

namespace dualgemm::core {
namespace {

using test::kInfinity;
using test::kNan;

Activation of(ActivationKind kind) { return {.kind = kind}; }

struct Case {
  Activation act;
  double g, u, want;
};

// The wanted values were computed apart from this code, with 50 digits.
TEST(Activation, KnownValues) {
  const Case cases[] = {
      {Activation::silu(), 1.0, 1.0, 0.73105857863000487925},
      {Activation::silu(), -2.0, 3.0, -0.71521753213270533565},
      {Activation::silu(), 0.0, 5.0, 0.0},
      {{.kind = ActivationKind::kGeluErf}, 1.0, 1.0, 0.84134474606854294859},
      {{.kind = ActivationKind::kGeluErf}, -3.0, 2.0, -0.0080993881897805671600},
      {{.kind = ActivationKind::kGeluTanh}, 1.0, 1.0, 0.84119199060827670478},
      {{.kind = ActivationKind::kGeluTanh}, -3.0, 2.0, -0.0072747841635460376757},
      {{.kind = ActivationKind::kRelu2}, 3.0, -2.0, -18.0},
      {{.kind = ActivationKind::kRelu2}, -3.0, -2.0, 0.0},
      {{.kind = ActivationKind::kSigmoid}, -1.0, 4.0, 1.0757656854799804830},
      {{.kind = ActivationKind::kIdentity}, -1.5, 4.0, -6.0},
      {Activation::clamped_swiglu(2.0f), 5.0, 5.0, 3.5231883119115297762},      // 2 sigmoid(2) * 2
      {Activation::clamped_swiglu(2.0f), -5.0, -5.0, 0.066928509242848555594},  // g only from above
      {Activation::swiglu_oai(1.5f, 1.0f, 7.0f), 2.0, -9.0, -11.430889521869198629},
  };
  for (const Case& c : cases) {
    EXPECT_NEAR(activate(c.act, c.g, c.u), c.want, 1e-14 * (1.0 + std::abs(c.want)))
        << name_of(c.act.kind) << " g " << c.g << " u " << c.u;
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
