// One broken rule at a time: validate() must name the argument, what it saw, and the right code.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/enum_table.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/limits.hpp"

namespace dualgemm {
namespace {

using test::kInfinity;
using test::kNan;

constexpr int64_t kHuge = int64_t{1} << 62;

Problem valid() { return {.m = 5, .n = 48, .k = 64, .l = 2}; }

struct ProblemRule {
  std::string argument, observed;
  std::function<void(Problem&)> breaks;
  StatusCode code = StatusCode::kInvalidArgument;
};

void expect_refused(const std::vector<ProblemRule>& rules) {
  for (const ProblemRule& rule : rules) {
    Problem problem = valid();
    ASSERT_TRUE(validate(problem).ok());
    rule.breaks(problem);
    const Status status = validate(problem);
    EXPECT_EQ(status.argument(), rule.argument) << status.message();
    EXPECT_EQ(status.observed(), rule.observed) << status.message();
    EXPECT_EQ(status.code(), rule.code) << status.message();
    EXPECT_FALSE(status.rule().empty()) << rule.argument;
  }
}

template <class Enum>
Enum number(int value) {
  return static_cast<Enum>(value);
}

TEST(ValidateProblem, MessagePattern) {
  Problem problem = valid();
  problem.k = 4090;
  EXPECT_EQ(validate(problem).message(), "k: 4090; must be a multiple of 16");
}

TEST(ValidateProblem, Extents) {
  expect_refused({
      {"m", "0", [](Problem& p) { p.m = 0; }},
      {"m", "-1", [](Problem& p) { p.m = -1; }},
      {"m", "-1",
       [](Problem& p) {
         p.m = -1;
         p.grouping = Grouping::kContiguous;
       }},
      {"n", "0", [](Problem& p) { p.n = 0; }},
      {"k", "0", [](Problem& p) { p.k = 0; }},
      {"k", "8", [](Problem& p) { p.k = 8; }},
      {"k", "-16", [](Problem& p) { p.k = -16; }},
      {"k", "72", [](Problem& p) { p.k = 72; }},
      {"l", "0", [](Problem& p) { p.l = 0; }},
      {"n", "47",
       [](Problem& p) {
         p.n = 47;
         p.d.type = DataType::kE2M1;
       }},
  });
}

TEST(ValidateProblem, Enumerators) {
  expect_refused({
      {"grouping", "3", [](Problem& p) { p.grouping = number<Grouping>(3); }},
      {"grouping", "-1", [](Problem& p) { p.grouping = number<Grouping>(-1); }},
      {"act.kind", "-1", [](Problem& p) { p.act.kind = number<ActivationKind>(-1); }},
      {"a.type", "4", [](Problem& p) { p.a.type = number<DataType>(4); }},
      {"gate.type", "-7", [](Problem& p) { p.gate.type = number<DataType>(-7); }},
      {"d.type", "99", [](Problem& p) { p.d.type = number<DataType>(99); }},
      {"a.scale_layout", "2", [](Problem& p) { p.a.scale_layout = number<ScaleLayout>(2); }},
      {"d.scale_layout", "2", [](Problem& p) { p.d.scale_layout = number<ScaleLayout>(2); }},
      {"bias", "3", [](Problem& p) { p.bias = number<BiasType>(3); }},
      {"bias", "-1", [](Problem& p) { p.bias = number<BiasType>(-1); }},
      {"gate.type", "f16", [](Problem& p) { p.gate.type = DataType::kF16; }},
      {"up.type", "f32", [](Problem& p) { p.up.type = DataType::kF32; }},
  });
}

TEST(ValidateProblem, Combinations) {
  const auto side_by_side = [](std::function<void(Problem&)> also) {
    return [=](Problem& p) {
      p.combine = Combine::kSideBySide;
      p.up_column = 16;
      Problem whole = p;
      EXPECT_TRUE(validate(whole).ok());
      also(p);
    };
  };
  expect_refused({
      {"combine", "3", [](Problem& p) { p.combine = number<Combine>(3); }},
      {"combine", "-1", [](Problem& p) { p.combine = number<Combine>(-1); }},
      {"up_column", "1", [](Problem& p) { p.up_column = 1; }},
      {"residual", "true", [](Problem& p) { p.residual = true; }},
      {"act", "identity", side_by_side([](Problem& p) { p.act.kind = ActivationKind::kIdentity; })},
      {"act", "silu", side_by_side([](Problem& p) { p.act.alpha = 1.0f; })},
      {"act.kind", "swiglu_oai", side_by_side([](Problem& p) {
         p.combine = Combine::kActivatedSideBySide;
         p.act = Activation::swiglu_oai();
       })},
      {"act.limit", "2", side_by_side([](Problem& p) {
         p.combine = Combine::kActivatedSideBySide;
         p.act = {.kind = ActivationKind::kSilu, .limit = 2.0f};
       })},
      {"up_column", "-1", side_by_side([](Problem& p) { p.up_column = -1; })},
      {"up_column", "49", side_by_side([](Problem& p) { p.up_column = 49; })},
      {"up_column", "8", side_by_side([](Problem& p) {
         p.up_column = 8;
         p.d.type = DataType::kE2M1;
       })},
      {"n", "47", side_by_side([](Problem& p) {
         p.n = 47;
         p.d.type = DataType::kE2M1;
       })},
      {"residual", "true", side_by_side([](Problem& p) {
         p.residual = true;
         p.d.type = DataType::kE2M1;
       })},
      {"d.ld", "63", side_by_side([](Problem& p) { p.d.ld = 63; })},
      {"up_column", "4611686018427387904", side_by_side([](Problem& p) { p.up_column = kHuge; })},
  });
}

TEST(ValidateProblem, BiasStrides) {
  expect_refused({
      {"bias_stride", "48", [](Problem& p) { p.bias_stride = 48; }},
      {"bias_stride", "47",
       [](Problem& p) {
         p.bias = BiasType::kF32;
         p.bias_stride = 47;
       }},
      {"bias_stride", "-1",
       [](Problem& p) {
         p.bias = BiasType::kF32;
         p.bias_stride = -1;
       }},
      {"bias", "2 batches, stride 4611686018427387904",
       [](Problem& p) {
         p.bias = BiasType::kBF16;
         p.bias_stride = kHuge;
       },
       StatusCode::kOverflow},
  });
}

TEST(ValidateProblem, Activations) {
  const auto clamped = [](float alpha, float beta, float limit) {
    return [=](Problem& p) { p.act = {ActivationKind::kClampedSwiglu, alpha, beta, limit}; };
  };
  const auto silu = [](float alpha, float beta, float limit) {
    return [=](Problem& p) { p.act = {ActivationKind::kSilu, alpha, beta, limit}; };
  };
  expect_refused({
      {"act.alpha", "2", silu(2.0f, 0.0f, kInfinity)},
      {"act.beta", "1", silu(1.0f, 1.0f, kInfinity)},
      {"act.limit", "7", silu(1.0f, 0.0f, 7.0f)},
      {"act.alpha", "nan", silu(kNan, 0.0f, kInfinity)},
      {"act.alpha", "nan", clamped(kNan, 0.0f, 7.0f)},
      {"act.alpha", "inf", clamped(kInfinity, 0.0f, 7.0f)},
      {"act.beta", "-inf", clamped(1.0f, -kInfinity, 7.0f)},
      {"act.beta", "nan", clamped(1.0f, kNan, 7.0f)},
      {"act.limit", "0", clamped(1.0f, 0.0f, 0.0f)},
      {"act.limit", "-1", clamped(1.0f, 0.0f, -1.0f)},
      {"act.limit", "nan", clamped(1.0f, 0.0f, kNan)},
      {"act.alpha", "0", clamped(0.0f, 0.0f, 7.0f)},
      {"act.limit", "not given", [](Problem& p) { p.act = {ActivationKind::kClampedSwiglu}; }},
      {"act.limit", "not given",
       [](Problem& p) { p.act = {.kind = ActivationKind::kClampedSwiglu, .alpha = 1.5f}; }},
      {"act.alpha", "0", [](Problem& p) { p.act = Activation::swiglu_oai(0.0f); }},
      {"act.alpha", "nan", [](Problem& p) { p.act = Activation::swiglu_oai(kNan); }},
      {"act.limit", "0", [](Problem& p) { p.act = Activation::swiglu_oai({}, {}, 0.0f); }},
      {"act.limit", "1.5",
       [](Problem& p) { p.act = {.kind = ActivationKind::kIdentity, .limit = 1.5f}; }},
  });
}

// A number just past the last enumerator, and the rule names the last one: both from the table.
TEST(ValidateProblem, EnumeratorsEndWhereTheirTableEnds) {
  Problem p = valid();
  p.act.kind = number<ActivationKind>(core::kEnumCount<ActivationKind>);
  EXPECT_EQ(validate(p).rule(),
            "must be 0 .. " + std::to_string(core::kEnumCount<ActivationKind> - 1));
}

TEST(ValidateProblem, Strides) {
  expect_refused({
      {"a.ld", "62", [](Problem& p) { p.a.ld = 62; }},
      {"a.ld", "-64", [](Problem& p) { p.a.ld = -64; }},
      {"a.ld", "65", [](Problem& p) { p.a.ld = 65; }},
      {"gate.ld", "65", [](Problem& p) { p.gate.ld = 65; }},
      {"up.ld", "16", [](Problem& p) { p.up.ld = 16; }},
      {"d.ld", "47", [](Problem& p) { p.d.ld = 47; }},
      {"d.ld", "49",
       [](Problem& p) {
         p.d.ld = 49;
         p.d.type = DataType::kE2M1;
       }},
      {"a.batch_stride", "318", [](Problem& p) { p.a.batch_stride = 318; }},
      {"a.batch_stride", "321", [](Problem& p) { p.a.batch_stride = 321; }},
      {"a.batch_stride", "-2", [](Problem& p) { p.a.batch_stride = -2; }},
      {"gate.batch_stride", "3070", [](Problem& p) { p.gate.batch_stride = 3070; }},
      {"d.batch_stride", "239", [](Problem& p) { p.d.batch_stride = 239; }},
      {"a.scale_ld", "3", [](Problem& p) { p.a.scale_ld = 3; }},
      {"a.scale_ld", "-4", [](Problem& p) { p.a.scale_ld = -4; }},
      {"up.scale_batch_stride", "191", [](Problem& p) { p.up.scale_batch_stride = 191; }},
      {"up.scale_batch_stride", "-1", [](Problem& p) { p.up.scale_batch_stride = -1; }},
      {"up.scale_ld", "4",
       [](Problem& p) {
         p.up.scale_layout = ScaleLayout::kSwizzled128x4;
         p.up.scale_ld = 4;
       }},
      {"up.scale_batch_stride", "511",
       [](Problem& p) {
         p.up.scale_layout = ScaleLayout::kSwizzled128x4;
         p.up.scale_batch_stride = 511;
       }},
      {"d.scale_ld", "3", [](Problem& p) { p.d.scale_ld = 3; }},
      {"d.scale_batch_stride", "15", [](Problem& p) { p.d.scale_batch_stride = 15; }},
  });
}

TEST(ValidateProblem, ContiguousGroupsHaveNoBatchStride) {
  const auto contiguous = [](auto set) {
    return [=](Problem& p) {
      p.grouping = Grouping::kContiguous;
      set(p);
    };
  };
  expect_refused({
      {"a.batch_stride", "320", contiguous([](Problem& p) { p.a.batch_stride = 320; })},
      {"d.batch_stride", "240", contiguous([](Problem& p) { p.d.batch_stride = 240; })},
      {"a.scale_batch_stride", "20", contiguous([](Problem& p) { p.a.scale_batch_stride = 20; })},
      {"d.scale_batch_stride", "9", contiguous([](Problem& p) { p.d.scale_batch_stride = 9; })},
  });
}

TEST(ValidateProblem, SizesThatLeave64Bits) {
  const auto kOverflow = StatusCode::kOverflow;
  const auto swizzled = [](Problem& p) { p.a.scale_layout = ScaleLayout::kSwizzled128x4; };
  expect_refused({
      {"a", "4611686018427387904 rows, ld 64", [](Problem& p) { p.m = kHuge; }, kOverflow},
      {"a", "2 batches, stride 4611686018427387904", [](Problem& p) { p.a.batch_stride = kHuge; },
       kOverflow},
      {"gate", "4611686018427387904 rows, ld 64", [](Problem& p) { p.n = kHuge; }, kOverflow},
      {"a", "5 rows, ld 4611686018427387904", [](Problem& p) { p.k = kHuge; }, kOverflow},
      {"a", "4611686018427387904 batches, stride 0", [](Problem& p) { p.l = kHuge; }, kOverflow},
      {"d", "5 rows, ld 4611686018427387904", [](Problem& p) { p.d.ld = kHuge; }, kOverflow},
      {"a_scales", "5 rows of 4 scales", [](Problem& p) { p.a.scale_ld = kHuge; }, kOverflow},
      {"d", "1 rows, ld 4611686018427387904",  // a single row has no use for it
       [](Problem& p) { p.m = p.l = 1, p.d.ld = kHuge; }, kOverflow},
      {"a_scales", "1 rows of 4 scales", [](Problem& p) { p.m = p.l = 1, p.a.scale_ld = kHuge; },
       kOverflow},
      {"a", "1 batches, stride 4611686018427387904",
       [](Problem& p) { p.l = 1, p.a.batch_stride = kHuge; }, kOverflow},
      {"a_scales", "2 batches, stride 4611686018427387904",
       [](Problem& p) { p.a.scale_batch_stride = kHuge; }, kOverflow},
      {"a_scales", "288230376151711744 experts",
       [&](Problem& p) {
         swizzled(p);
         p.grouping = Grouping::kContiguous;
         p.l = int64_t{1} << 58;
       },
       kOverflow},
      {"m, n, k, l", "1, 1, 16, 18014398509481984",  // 8 bytes each, but padded to tiles far more
       [](Problem& p) { p = {.m = 1, .n = 1, .k = 16, .l = int64_t{1} << 54}; }, kOverflow},
  });
}

TEST(ValidateProblem, WhatIsLegalIsAccepted) {
  const std::vector<std::function<void(Problem&)>> legal = {
      [](Problem& p) { p.m = p.n = p.l = 1, p.k = 16; },
      [](Problem& p) { p.m = 0, p.grouping = Grouping::kContiguous; },
      [](Problem& p) { p.m = 0, p.grouping = Grouping::kMasked; },
      [](Problem& p) { p.a = {.ld = 66, .batch_stride = 5 * 66, .scale_ld = 9}; },
      [](Problem& p) { p.a.batch_stride = 320; },
      [](Problem& p) { p.l = 1, p.a.batch_stride = 2; },  // of a single batch: not used
      [](Problem& p) { p.a = {.type = DataType::kF32, .ld = 65, .batch_stride = 325}; },
      [](Problem& p) { p.d = {.type = DataType::kE2M1, .ld = 50, .scale_ld = 3}; },
      [](Problem& p) { p.n = 47, p.d.ld = 47; },
      [](Problem& p) { p.act = Activation::swiglu_oai(); },
      [](Problem& p) { p.act = Activation::clamped_swiglu(kInfinity); },
      [](Problem& p) { p.act = {.kind = ActivationKind::kSwigluOai}; },
      [](Problem& p) { p.act = Activation::swiglu_oai({}, 0.0f); },
      [](Problem& p) {
        p.act = {ActivationKind::kSilu, 1.0f, 0.0f, kInfinity};  // changes nothing
      },
      [](Problem& p) {
        p.act = {ActivationKind::kSwigluOai, -1.0f, -2.0f, 1e-30f};
      },
      [](Problem& p) { p.act.kind = ActivationKind::kIdentity; },
      [](Problem& p) {
        p.a.scale_layout = p.gate.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
        p.up.scale_batch_stride = 512;
      },
  };
  for (size_t i = 0; i < legal.size(); ++i) {
    Problem problem = valid();
    legal[i](problem);
    EXPECT_TRUE(validate(problem).ok()) << "case " << i << ": " << validate(problem).message();
  }
}

}  // namespace
}  // namespace dualgemm
