// What must hold of the quantiser whatever its code, the block functions' policy for NaN and
// infinity, and the way back.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/quantize_block.hpp"
#include "dualgemm/formats.hpp"
#include "support/compare.hpp"
#include "support/guarded.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"
#include "unit/core/nearest.hpp"
#include "unit/core/slow_quantizer.hpp"

namespace dualgemm::test {
namespace {

struct Quantized {
  std::vector<uint8_t> codes, scales;
  float global_scale;
};

Quantized quantize(const std::vector<float>& x, int64_t cols, const QuantizeOptions& options = {}) {
  Quantized out{std::vector<uint8_t>(x.size() / 2), std::vector<uint8_t>(x.size() / 16), 0.0f};
  const auto rows = static_cast<int64_t>(x.size()) / cols;
  const Expected<float> global = quantize_nvfp4(x.data(), DataType::kF32, rows, cols, 0,
                                                out.codes.data(), 0, out.scales.data(), options);
  EXPECT_TRUE(global.ok());
  out.global_scale = *global;
  return out;
}

std::vector<float> dequantize(const Quantized& q, int64_t cols) {
  std::vector<float> out(q.codes.size() * 2);
  const auto rows = static_cast<int64_t>(out.size()) / cols;
  EXPECT_TRUE(dequantize_nvfp4(q.codes.data(), 0, q.scales.data(), ScaleLayout::kLinear, 0,
                               q.global_scale, rows, cols, out.data(), 0)
                  .ok());
  return out;
}

std::vector<float> normals(Rng& rng, size_t count) {
  std::vector<float> x(count);
  for (float& value : x) value = rng.normal();
  return x;
}

TEST(QuantizeProperties, ScalingByAPowerOfTwoChangesTheGlobalScaleOnly) {
  Rng rng;
  const std::vector<float> x = normals(rng, 64 * 96);
  const Quantized base = quantize(x, 96);
  for (const int exponent : {-60, -7, 1, 50}) {
    std::vector<float> scaled = x;
    for (float& value : scaled) value = std::ldexp(value, exponent);
    const Quantized other = quantize(scaled, 96);
    EXPECT_EQ(other.codes, base.codes);
    EXPECT_EQ(other.scales, base.scales);
    EXPECT_EQ(other.global_scale, std::ldexp(base.global_scale, exponent));
  }
}

TEST(QuantizeProperties, RowsPermuteAndSplitWithAGivenGlobalScale) {
  Rng rng;
  const size_t rows = 40, cols = 64;
  const std::vector<float> x = normals(rng, rows * cols);
  const QuantizeOptions options{.global_scale = 0.001f};
  const Quantized whole = quantize(x, cols, options);
  for (size_t row = 0; row < rows; ++row) {
    const Quantized alone = quantize({x.begin() + static_cast<long>(row * cols),
                                      x.begin() + static_cast<long>((row + 1) * cols)},
                                     cols, options);
    EXPECT_TRUE(same_bits(alone.codes.data(), &whole.codes[row * cols / 2], cols / 2)) << row;
    EXPECT_TRUE(same_bits(alone.scales.data(), &whole.scales[row * cols / 16], cols / 16)) << row;
  }
}

TEST(QuantizeProperties, NegatedInputFlipsSignsOnly) {
  Rng rng;
  const std::vector<float> x = normals(rng, 32 * 64);
  std::vector<float> negated = x;
  for (float& value : negated) value = -value;
  const Quantized a = quantize(x, 64), b = quantize(negated, 64);
  EXPECT_EQ(a.scales, b.scales);
  EXPECT_EQ(a.global_scale, b.global_scale);
  for (size_t i = 0; i < a.codes.size(); ++i) ASSERT_EQ(a.codes[i] ^ 0x88, b.codes[i]) << i;
}

// A representable tensor whose every block holds a code +-6 comes back bit for bit when the global
// scale is a power of two.
TEST(QuantizeProperties, RepresentableValuesRoundTripExactly) {
  Rng rng;
  for (const float global : {1.0f, 0x1p-11f, 0x1p20f}) {
    Quantized original{std::vector<uint8_t>(32 * 64 / 2), std::vector<uint8_t>(32 * 64 / 16),
                       global};
    for (uint8_t& byte : original.codes) byte = rng.byte();
    for (uint8_t& scale : original.scales) scale = static_cast<uint8_t>(rng.integer(1, 0x7E));
    for (size_t b = 0; b < original.scales.size(); ++b) {
      original.codes[b * 8 + static_cast<size_t>(rng.integer(0, 7))] =
          static_cast<uint8_t>(0x07 | rng.byte() << 4 | (rng.byte() & 8));
    }
    const Quantized again = quantize(dequantize(original, 64), 64, {.global_scale = global});
    EXPECT_EQ(again.scales, original.scales);
    EXPECT_EQ(again.codes, original.codes);
  }
}

// In units of the block scale s the error is at most 1 (half of the widest gap, 4 ... 6), and of a
// value y < 5 at most y - 4 or half. amax/6: a normal scale rounds up by 1/17 at most, so that s <=
// 18/17 * amax/6 < 0.18 amax. amax/4: the largest value is at most 4.25 and the error 1/2, but
// where s saturates at 448 it reaches 6, and the error amax/5 (at y = 5).
TEST(QuantizeProperties, ErrorIsBoundedByTheBlocksLargestValue) {
  Rng rng;
  const std::vector<float> x = normals(rng, 256 * 128);
  for (const bool four_over_six : {false, true}) {
    const float bound = four_over_six ? 0.2001f : 0.18f;
    const Quantized q = quantize(x, 128, {.four_over_six = four_over_six});
    const std::vector<float> back = dequantize(q, 128);
    for (size_t b = 0; b < x.size(); b += 16) {
      ASSERT_GE(q.scales[b / 16], 0x08);
      float amax = 0.0f;
      for (size_t i = b; i < b + 16; ++i) amax = std::max(amax, std::abs(x[i]));
      for (size_t i = b; i < b + 16; ++i) ASSERT_LE(std::abs(back[i] - x[i]), bound * amax) << i;
    }
  }
}

TEST(FourOverSix, IsNeverWorseInItsOwnMeasureAndOftenBetter) {
  Rng rng;
  const std::vector<float> x = normals(rng, 512 * 64);
  const Quantized six = quantize(x, 64), best = quantize(x, 64, {.four_over_six = true});
  ASSERT_EQ(six.global_scale, best.global_scale);
  const std::vector<float> from_six = dequantize(six, 64), from_best = dequantize(best, 64);
  double total_six = 0.0, total_best = 0.0;
  for (size_t b = 0; b < x.size(); b += 16) {
    double error_six = 0.0, error_best = 0.0;
    for (size_t i = b; i < b + 16; ++i) {
      error_six += std::abs(static_cast<double>(from_six[i]) - x[i]);
      error_best += std::abs(static_cast<double>(from_best[i]) - x[i]);
    }
    // The measure is summed in FP32 and in units of G; 1e-5 covers that.
    ASSERT_LE(error_best, error_six * (1.0 + 1e-5));
    total_six += error_six;
    total_best += error_best;
  }
  EXPECT_LT(total_best, 0.97 * total_six);
}

TEST(FourOverSix, KnownBlocks) {
  // {4, 4, ...}: with amax/6 the scale is 0.6875, and 4/0.6875 = 5.8 -> 6 * 0.6875 = 4.125; with
  // amax/4 the scale is 1: exact.
  const std::vector<float> fours(16, 4.0f);
  Quantized q = quantize(fours, 16, {.global_scale = 1.0f, .four_over_six = true});
  EXPECT_EQ(q.scales[0], 0x38);
  EXPECT_EQ(q.codes, std::vector<uint8_t>(8, 0x66));
  // {6, 6, ...}: exact with amax/6 (scale 1) and with amax/4 (scale 1.5): a tie, which goes to
  // amax/6.
  q = quantize(std::vector<float>(16, 6.0f), 16, {.global_scale = 1.0f, .four_over_six = true});
  EXPECT_EQ(q.scales[0], 0x38);
  EXPECT_EQ(q.codes, std::vector<uint8_t>(8, 0x77));
  // The largest value of a tensor: amax/4 would need a scale of 672, saturates at 448, and ties.
  q = quantize(fours, 16, {.four_over_six = true});
  EXPECT_EQ(q.scales[0], 0x7E);
  EXPECT_EQ(q.codes, std::vector<uint8_t>(8, 0x77));
}

TEST(QuantizeBlock, NanGivesANanScaleAndZeroCodes) {
  for (int at = 0; at < 16; ++at) {
    for (const float nan : {kNan, -kNan}) {
      float x[16] = {1, -2, 3, kInfinity, -5, 6, -7, 8, 9, 10, 11, 12, 13, 14, 15, -16};
      x[at] = nan;
      uint8_t codes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
      EXPECT_EQ(core::quantize_block(x, 1.0f, codes), 0x7F);
      for (const uint8_t byte : codes) EXPECT_EQ(byte, 0);
    }
  }
}

TEST(QuantizeBlock, InfinitySaturates) {
  float x[16] = {kInfinity, -kInfinity, 448.0f, -0.0f, 0.0f, 6.0f * 448.0f, -1.0f, 224.0f};
  uint8_t codes[8];
  EXPECT_EQ(core::quantize_block(x, 1.0f, codes), 0x7E);
  const uint8_t want[8] = {0xF7, 0x82, 0x70, 0x18, 0, 0, 0, 0};
  EXPECT_TRUE(same_bits(codes, want, 8));
}

TEST(QuantizeBlock, AgreesWithTheSlowVersionOnAnyFloats) {
  Rng rng;
  for (int i = 0; i < 20000; ++i) {
    float x[16];
    const bool wild = i % 2 == 0;
    for (float& value : x) value = wild ? rng.any_finite() : rng.normal();
    const float quantize = wild ? std::ldexp(1.0f, static_cast<int>(rng.integer(-120, 120)))
                                : rng.uniform(0.1f, 400.0f);
    const SlowBlock want = slow_block(x, quantize, 6.0f);
    uint8_t codes[8];
    ASSERT_EQ(core::quantize_block(x, quantize, codes), want.scale);
    for (int j = 0; j < 16; ++j) ASSERT_EQ(codes[j / 2] >> (j % 2 * 4) & 15, want.codes[j]) << j;
  }
}

// Blocks whose scale or codes lie within two floats of a rounding boundary: there the order of the
// roundings shows.
TEST(QuantizeBlock, AgreesWithTheSlowVersionAtRoundingBoundaries) {
  Rng rng;
  const auto step = [](float x, int64_t steps) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(x) + static_cast<uint32_t>(steps));
  };
  for (int i = 0; i < 40000; ++i) {
    const float G = rng.uniform(0.5f, 2000.0f), target = i % 2 == 0 ? 6.0f : 4.0f;
    const auto low = static_cast<size_t>(rng.integer(1, 0x7D));
    const double boundary = (e4m3_magnitudes()[low] + e4m3_magnitudes()[low + 1]) / 2;
    float x[16] = {};
    x[0] = step(static_cast<float>(boundary * target / G), rng.integer(-2, 2));
    const double s = e4m3_magnitudes()[slow_block(x, G, target).scale];
    for (int j = 1; j < 16; ++j) {
      const auto code = static_cast<size_t>(rng.integer(0, 6));
      const double tie = (e2m1_magnitudes()[code] + e2m1_magnitudes()[code + 1]) / 2;
      x[j] = std::min(x[0], step(static_cast<float>(tie * s / G), rng.integer(-2, 2))) *
             (rng.chance(0.5) ? -1.0f : 1.0f);
    }
    const SlowBlock want = slow_block(x, G, target);
    uint32_t codes[16];
    const uint8_t scale = core::detail::block_scale(core::detail::block_amax(x), G, target);
    ASSERT_EQ(scale, want.scale);
    core::detail::block_codes(x, G, scale, codes);
    for (int j = 0; j < 16; ++j) ASSERT_EQ(codes[j], want.codes[j]) << j;
    ASSERT_EQ(core::detail::block_error(x, G, scale, codes), want.error);
  }
}

TEST(GlobalScale, GivenScalesHaveAFiniteReciprocal) {
  const float largest = std::numeric_limits<float>::max();
  for (const float g :
       {std::numeric_limits<float>::denorm_min(), 0x1p-130f, 0x1p-128f,
        std::nextafter(0x1p-128f, 1.0f), 0x1p-127f, 0x1p-126f, 1e-3f, 1.0f, 3e38f, largest}) {
    const core::GlobalScale scale = core::global_scale_given(g);
    EXPECT_EQ(scale.dequantize, g);
    EXPECT_GT(scale.quantize, 0.0f);
    EXPECT_TRUE(std::isfinite(scale.quantize)) << g;
    EXPECT_EQ(scale.quantize, std::min(largest, 1.0f / g));
  }
}

TEST(Dequantize, EveryCodeWithEveryScale) {
  Guarded<uint8_t> codes(256 * 8), scales(256);
  for (int s = 0; s < 256; ++s) {
    scales[s] = static_cast<uint8_t>(s);
    for (int i = 0; i < 8; ++i)
      codes[8 * s + i] = static_cast<uint8_t>(2 * i | (2 * i + 1) << 4);  // element i = code i
  }
  for (const float global : {1.0f, 0.37f, -3.0f, 1e-38f}) {
    Guarded<float> out(256 * 16);
    ASSERT_TRUE(dequantize_nvfp4(codes.data(), 0, scales.data(), ScaleLayout::kLinear, 0, global,
                                 256, 16, out.data(), 0)
                    .ok());
    for (int s = 0; s < 256; ++s) {
      for (int code = 0; code < 16; ++code) {
        const float got = out[16 * s + code];
        if (s % 128 == 127) {
          ASSERT_TRUE(std::isnan(got)) << s << ' ' << code;  // a code 0 too
          continue;
        }
        const double magnitude = e2m1_magnitudes()[static_cast<size_t>(code % 8)] *
                                 e4m3_magnitudes()[static_cast<size_t>(s % 128)];
        const auto want =
            static_cast<float>((code >= 8 ? -magnitude : magnitude) * static_cast<double>(global));
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
            << s << ' ' << code << ' ' << global;
      }
    }
  }
}

TEST(Dequantize, LayoutsStridesAndPadding) {
  Rng rng;
  const int64_t rows = 131, cols = 80, ldc = 45, ld = 83;
  const ScaleMap linear(ScaleLayout::kLinear, rows, cols / 16, 7),
      swizzled(ScaleLayout::kSwizzled128x4, rows, cols / 16);
  Guarded<uint8_t> codes((rows - 1) * ldc + cols / 2), from_linear(linear.required_span_size()),
      from_swizzled(swizzled.required_span_size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < cols / 2; ++i) codes[r * ldc + i] = rng.byte();
    for (int64_t s = 0; s < cols / 16; ++s) {
      from_linear[linear(r, s)] = from_swizzled[swizzled(r, s)] =
          static_cast<uint8_t>(rng.integer(0, 0x7E));
    }
  }
  Guarded<float> a((rows - 1) * ld + cols), b((rows - 1) * ld + cols);
  ASSERT_TRUE(dequantize_nvfp4(codes.data(), ldc, from_linear.data(), ScaleLayout::kLinear, 7, 0.5f,
                               rows, cols, a.data(), ld)
                  .ok());
  ASSERT_TRUE(dequantize_nvfp4(codes.data(), ldc, from_swizzled.data(), ScaleLayout::kSwizzled128x4,
                               0, 0.5f, rows, cols, b.data(), ld)
                  .ok());
  EXPECT_TRUE(same_bits(a.data(), b.data(), a.size()));
  for (int64_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::isnan(a[i]), i % ld >= cols) << i;  // gaps still hold their poison
}

TEST(Dequantize, RefusesBadArgumentsAndWritesNothing) {
  Guarded<uint8_t> codes(64), scales(8);
  Guarded<float> out(128);
  const auto run = [&](const uint8_t* c, int64_t ldc, const uint8_t* s, int64_t scale_ld,
                       int64_t rows, int64_t cols, float* to, int64_t ld) {
    return dequantize_nvfp4(c, ldc, s, ScaleLayout::kLinear, scale_ld, 1.0f, rows, cols, to, ld)
        .argument();
  };
  EXPECT_EQ(run(nullptr, 0, scales.data(), 0, 4, 32, out.data(), 0), "codes");
  EXPECT_EQ(run(codes.data(), 0, nullptr, 0, 4, 32, out.data(), 0), "scales");
  EXPECT_EQ(run(codes.data(), 0, scales.data(), 0, 4, 32, nullptr, 0), "out");
  EXPECT_EQ(run(codes.data(), 15, scales.data(), 0, 4, 32, out.data(), 0), "ldc_bytes");
  EXPECT_EQ(run(codes.data(), 0, scales.data(), 1, 4, 32, out.data(), 0), "scale_ld");
  EXPECT_EQ(run(codes.data(), 0, scales.data(), 0, 4, 32, out.data(), 31), "ld_out");
  EXPECT_EQ(run(codes.data(), 0, scales.data(), 0, -4, 32, out.data(), 0), "rows");
  EXPECT_EQ(run(codes.data(), 0, scales.data(), 0, 4, 31, out.data(), 0), "cols");
  EXPECT_EQ(run(reinterpret_cast<uint8_t*>(out.data()), 0, scales.data(), 0, 4, 32, out.data(), 0),
            "codes");
  EXPECT_TRUE(out.all_bytes(kPoison));
  EXPECT_EQ(run(nullptr, 0, nullptr, 0, 0, 32, nullptr, 0), "");
}

}  // namespace
}  // namespace dualgemm::test
