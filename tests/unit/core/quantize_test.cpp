#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "dualgemm/formats.hpp"
#include "support/compare.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"
#include "unit/core/slow_quantizer.hpp"

namespace dualgemm::test {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kTiniest = std::numeric_limits<float>::denorm_min();
constexpr DataType kTypes[] = {DataType::kF16, DataType::kBF16, DataType::kF32};

struct Shape {
  int64_t rows, cols, ldx = 0, ldc_bytes = 0;
};

// One call of quantize_nvfp4 with guarded, poisoned memory around everything.
struct Call {
  Shape shape;
  DataType type;
  QuantizeOptions options;
  Guarded<uint8_t> x, codes, scales;
  std::vector<float> values;  // x as fp32, tight: what the slow version gets

  Call(const Shape& s, DataType t, const QuantizeOptions& o, int64_t misalign = 0)
      : shape(s),
        type(t),
        options(o),
        x(((s.rows - 1) * ldx() + s.cols) * element_bytes(), misalign),
        codes((s.rows - 1) * ldc() + s.cols / 2),
        scales(map().required_span_size()),
        values(static_cast<size_t>(s.rows * s.cols)) {}

  int64_t element_bytes() const { return type == DataType::kF32 ? 4 : 2; }
  int64_t ldx() const { return shape.ldx == 0 ? shape.cols : shape.ldx; }
  int64_t ldc() const { return shape.ldc_bytes == 0 ? shape.cols / 2 : shape.ldc_bytes; }
  ScaleMap map() const {
    return ScaleMap(options.scale_layout, shape.rows, shape.cols / 16, options.scale_ld);
  }

  void set(int64_t row, int64_t col, float value) {
    uint8_t* at = x.data() + (row * ldx() + col) * element_bytes();
    if (type == DataType::kF32) {
      std::memcpy(at, &value, 4);
    } else {
      const uint16_t half = type == DataType::kF16 ? encode_f16(value) : encode_bf16(value);
      std::memcpy(at, &half, 2);
      value = type == DataType::kF16 ? decode_f16(half) : decode_bf16(half);
    }
    values[static_cast<size_t>(row * shape.cols + col)] = value;
  }
  template <class Make>
  void set_all(const Make& make) {
    for (int64_t r = 0; r < shape.rows; ++r) {
      for (int64_t c = 0; c < shape.cols; ++c) set(r, c, make(r, c));
    }
  }
  Expected<float> run() {
    return quantize_nvfp4(x.data(), type, shape.rows, shape.cols, shape.ldx, codes.data(),
                          shape.ldc_bytes, scales.data(), options);
  }
  bool untouched() const { return codes.all_bytes(kPoison) && scales.all_bytes(kPoison); }
};

// Every byte of the outputs: codes and scales as the slow version says, swizzled padding 0, gaps
// untouched.
void expect_bytes(const Call& call, const SlowResult& want) {
  const int64_t cols = call.shape.cols;
  for (int64_t i = 0; i < call.codes.size(); ++i) {
    const int64_t row = i / call.ldc(), pair = i % call.ldc();
    const uint8_t* codes =
        &want.codes[static_cast<size_t>(row * cols + (pair < cols / 2 ? 2 * pair : 0))];
    const int byte = pair < cols / 2 ? codes[0] + 16 * codes[1] : int{kPoison};
    ASSERT_EQ(call.codes[i], byte) << "row " << row << ", byte " << pair;
  }
  const uint8_t padding = call.options.scale_layout == ScaleLayout::kLinear ? kPoison : 0;
  for (int64_t i = 0; i < call.scales.size(); ++i) {
    const ScaleMap::Coordinate at = call.map().inverse(i);
    const uint8_t byte =
        at.is_padding ? padding : want.scales[static_cast<size_t>(at.row * (cols / 16) + at.col)];
    ASSERT_EQ(call.scales[i], byte) << "row " << at.row << ", scale column " << at.col;
  }
}

void expect_as_slow(Call& call) {
  const Expected<float> global = call.run();
  ASSERT_TRUE(global.ok()) << global.status().message();
  const SlowResult want =
      slow_quantize(call.values, call.options.global_scale, call.options.four_over_six);
  ASSERT_EQ(*global, want.global_scale);
  expect_bytes(call, want);
}

// Values of very different blocks: gaussian, sparse, one outlier, constant, zero, grid points and
// ties.
float mixed_value(Rng& rng, int64_t row, int64_t col) {
  switch ((row + col / 16) % 7) {
    case 0:
      return rng.normal();
    case 1:
      return rng.chance(0.8) ? 0.0f : rng.normal() * 0.01f;
    case 2:
      return col % 16 == 5 ? 40.0f * rng.normal() : rng.normal() * 0.1f;
    case 3:
      return rng.chance(0.5) ? 0.75f : -0.75f;
    case 4:
      return rng.chance(0.5) ? 0.0f : -0.0f;
    case 5:
      return static_cast<float>(rng.integer(-24, 24)) * 0.25f;
    default:
      return std::ldexp(rng.normal(), static_cast<int>(rng.integer(-20, 4)));
  }
}

QuantizeOptions random_options(Rng& rng, int64_t cols) {
  QuantizeOptions options;
  options.four_over_six = rng.chance(0.5);
  options.scale_layout = rng.chance(0.5) ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
  if (options.scale_layout == ScaleLayout::kLinear && rng.chance(0.5))
    options.scale_ld = cols / 16 + rng.integer(0, 3);
  if (rng.chance(0.4))
    options.global_scale =
        std::ldexp(rng.uniform(1.0f, 2.0f), static_cast<int>(rng.integer(-16, 3)));
  options.threads = static_cast<int>(rng.integer(0, 3));
  return options;
}

TEST(Quantize, RandomMatricesBitForBitAsTheSlowVersion) {
  Rng rng;
  for (int i = 0; i < 150; ++i) {
    const int64_t cols = 16 * rng.integer(1, 12);
    const Shape shape{rng.integer(1, i % 10 == 0 ? 300 : 40), cols,
                      rng.chance(0.5) ? 0 : cols + rng.integer(0, 9),
                      rng.chance(0.5) ? 0 : cols / 2 + rng.integer(0, 9)};
    Call call(shape, rng.pick(kTypes), random_options(rng, cols), rng.integer(0, 3));
    SCOPED_TRACE(std::string(name_of(call.type)) + " " + std::to_string(shape.rows) + " x " +
                 std::to_string(cols));
    call.set_all([&](int64_t r, int64_t c) { return mixed_value(rng, r, c); });
    ASSERT_NO_FATAL_FAILURE(expect_as_slow(call));
  }
}

// All finite fp16 and bf16 values as one matrix each; global scales that put them below, on and
// above the grid.
TEST(Quantize, EveryHalfBitForBitAsTheSlowVersion) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const float global : {0.0f, 1.0f, 0.0037f, 1e-30f}) {
      for (const bool four_over_six : {false, true}) {
        Call call({256, 256}, type, {.global_scale = global, .four_over_six = four_over_six});
        call.set_all([&](int64_t r, int64_t c) {
          const auto bits = static_cast<uint16_t>(256 * r + c);
          const float value = type == DataType::kF16 ? decode_f16(bits) : decode_bf16(bits);
          return std::isfinite(value) ? value : 0.0f;
        });
        ASSERT_NO_FATAL_FAILURE(expect_as_slow(call)) << name_of(type) << ' ' << global;
      }
    }
  }
}

// Random bit patterns: every exponent, subnormals, products that overflow to infinity under a small
// global scale.
TEST(Quantize, ExtremeFloatsBitForBitAsTheSlowVersion) {
  Rng rng;
  for (const float global :
       {0.0f, 1.0f, 0x1p-126f, 0x1p-128f, 0x1p-127f, kTiniest, 1e-20f, 1e20f, kLargest}) {
    for (const bool four_over_six : {false, true}) {
      Call call({20, 160}, DataType::kF32,
                {.global_scale = global, .four_over_six = four_over_six});
      call.set_all([&](int64_t, int64_t) { return rng.any_finite(); });
      ASSERT_NO_FATAL_FAILURE(expect_as_slow(call)) << global;
    }
  }
}

TEST(Quantize, ResultDoesNotDependOnThreads) {
  Rng rng;
  for (const Shape& shape : {Shape{1, 65536}, Shape{4096, 16}, Shape{130, 1040}}) {
    Call one(shape, DataType::kF32, {.scale_layout = ScaleLayout::kSwizzled128x4, .threads = 1});
    one.set_all([&](int64_t r, int64_t c) { return mixed_value(rng, r, c); });
    const Expected<float> want = one.run();
    ASSERT_TRUE(want.ok());
    for (const int threads : {0, 2, 3, 5, 8, 1000000}) {
      Call call(shape, DataType::kF32,
                {.scale_layout = ScaleLayout::kSwizzled128x4, .threads = threads});
      std::memcpy(call.x.data(), one.x.data(), static_cast<size_t>(one.x.size()));
      const Expected<float> global = call.run();
      ASSERT_TRUE(global.ok());
      EXPECT_EQ(*global, *want);
      EXPECT_TRUE(same_bits(call.codes.data(), one.codes.data(), one.codes.size())) << threads;
      EXPECT_TRUE(same_bits(call.scales.data(), one.scales.data(), one.scales.size())) << threads;
    }
  }
}

TEST(Quantize, KnownBlock) {
  Call call({1, 16}, DataType::kF32, {.global_scale = 1.0f});
  // amax 6 -> s = 1: the values are the codes. Ties to even: 0.25 -> 0, 0.75 -> 1, 1.25 -> 1, 1.75
  // -> 2, 2.5 -> 2, 3.5 -> 4, 5 -> 4.
  const float x[16] = {6, -6, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f,
                       5, -5, -0.0f, -0.1f, 0.3f,  0.5f,  1.5f, 3};
  call.set_all([&](int64_t, int64_t c) { return x[c]; });
  const Expected<float> global = call.run();
  ASSERT_TRUE(global.ok());
  EXPECT_EQ(*global, 1.0f);
  const uint8_t want[8] = {0xF7, 0x20, 0x42, 0x64, 0xE6, 0x88, 0x11, 0x53};
  EXPECT_TRUE(same_bits(call.codes.data(), want, 8));
  EXPECT_EQ(call.scales[0], 0x38);
}

TEST(Quantize, GlobalScaleIsAmaxOver2688) {
  Call call({2, 32}, DataType::kF32, {});
  call.set_all([](int64_t r, int64_t c) { return r == 1 && c == 20 ? -5.0f : 0.01f; });
  const Expected<float> global = call.run();
  ASSERT_TRUE(global.ok());
  EXPECT_EQ(*global, 5.0f / 2688.0f);
  EXPECT_EQ(call.scales[3], 0x7E);       // the block with the largest value: 448
  EXPECT_EQ(call.codes[26] & 0xF, 0xF);  // -6
}

TEST(Quantize, AllZero) {
  for (const DataType type : kTypes) {
    for (const float zero : {0.0f, -0.0f}) {
      Call call({130, 80}, type, {.scale_layout = ScaleLayout::kSwizzled128x4});
      call.set_all([&](int64_t, int64_t) { return zero; });
      const Expected<float> global = call.run();
      ASSERT_TRUE(global.ok());
      EXPECT_EQ(*global, 1.0f);
      EXPECT_TRUE(call.codes.all_bytes(0));
      EXPECT_TRUE(call.scales.all_bytes(0));
    }
  }
}

// Below 2688 * 2^-126 the global scale stays at 2^-126 and is exact; nothing becomes NaN, and the
// error stays that of the block scale.
TEST(Quantize, TinyTensors) {
  for (int exponent = -149; exponent <= -110; ++exponent) {
    Call call({1, 32}, DataType::kF32, {});
    const float amax = std::ldexp(1.0f, exponent);
    call.set_all([&](int64_t, int64_t c) {
      return c % 3 == 0 ? amax : c % 3 == 1 ? -amax / 2 : 0.0f;
    });
    const Expected<float> global = call.run();
    ASSERT_TRUE(global.ok());
    EXPECT_GE(*global, 0x1p-126f);
    EXPECT_EQ(*global, std::max(0x1p-126f, amax / 2688.0f));
    std::vector<float> back(32);
    ASSERT_TRUE(dequantize_nvfp4(call.codes.data(), 0, call.scales.data(), ScaleLayout::kLinear, 0,
                                 *global, 1, 32, back.data(), 0)
                    .ok());
    for (size_t c = 0; c < 32; ++c) {
      // Half of the scale's quantum 2^-9 on six units, or the grid: 18 % of amax.
      EXPECT_LE(std::abs(back[c] - call.values[c]), std::max(0.18f * amax, 6 * 0x1p-10f * *global))
          << exponent << ' ' << c;
    }
  }
}

TEST(Quantize, HugeTensors) {
  Call call({1, 32}, DataType::kF32, {});
  call.set_all([](int64_t, int64_t c) { return c % 2 == 0 ? kLargest : -kLargest / 4; });
  const Expected<float> global = call.run();
  ASSERT_TRUE(global.ok());
  EXPECT_EQ(*global, kLargest / 2688.0f);
  EXPECT_EQ(call.scales[0], 0x7E);
  EXPECT_EQ(call.codes[0], 0xB7);  // 6 and -1.5
}

TEST(Quantize, GivenGlobalScaleSaturatesOrVanishes) {
  Call small({1, 16}, DataType::kF32, {.global_scale = 1e-6f});
  small.set_all([](int64_t, int64_t c) { return c == 0 ? -100.0f : 1.0f; });
  ASSERT_TRUE(small.run().ok());
  EXPECT_EQ(small.scales[0], 0x7E);
  EXPECT_EQ(small.codes[0], 0x7F);  // both far above 448 * 6 units
  Call large({1, 16}, DataType::kF32, {.global_scale = 1e6f});
  large.set_all([](int64_t, int64_t c) { return c == 0 ? -100.0f : 1.0f; });
  ASSERT_TRUE(large.run().ok());
  EXPECT_EQ(large.scales[0], 0x00);
  EXPECT_TRUE(large.codes.all_bytes(0));  // no -0 where the scale is 0
}

TEST(Quantize, NanAndInfinityAreNamedAndNothingIsWritten) {
  struct Bad {
    float value;
    const char* name;
  };
  for (const DataType type : kTypes) {
    for (const Bad& bad :
         {Bad{kNan, "NaN"}, Bad{kInfinity, "+infinity"}, Bad{-kInfinity, "-infinity"}}) {
      for (const int threads : {1, 2, 7}) {
        Call call({64, 512}, type,
                  {.global_scale = threads == 2 ? 1.0f : 0.0f,
                   .scale_layout = ScaleLayout::kSwizzled128x4,
                   .threads = threads});
        call.set_all([](int64_t, int64_t) { return 1.0f; });
        call.set(63, 0, kNan);
        call.set(40, 3, kInfinity);
        call.set(17, 333, bad.value);  // the first in row-major order
        call.set(17, 400, kNan);
        const Expected<float> global = call.run();
        ASSERT_FALSE(global.ok());
        EXPECT_EQ(global.status().code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(global.status().message(),
                  std::string("x: ") + bad.name + " at row 17, column 333; must be finite");
        EXPECT_TRUE(call.untouched());
      }
    }
  }
}

TEST(Quantize, OneInfinityOrNanAloneIsEnough) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const float global : {0.0f, 1.0f}) {
      Call call({5, 48}, DataType::kF32, {.global_scale = global});
      call.set_all([](int64_t, int64_t) { return 1.0f; });
      call.set(4, 47, bad);
      const Expected<float> result = call.run();
      ASSERT_FALSE(result.ok());
      EXPECT_NE(result.status().observed().find("at row 4, column 47"), std::string::npos);
      EXPECT_TRUE(call.untouched());
    }
  }
}

TEST(Quantize, GapsBetweenRowsOfXAreNotRead) {
  Rng rng;
  Call call({33, 48, 64}, DataType::kF32, {});  // the gap stays 0xFF...: NaN
  call.set_all([&](int64_t r, int64_t c) { return mixed_value(rng, r, c); });
  expect_as_slow(call);
}

TEST(Quantize, EmptyMatrices) {
  EXPECT_EQ(*quantize_nvfp4(nullptr, DataType::kF32, 0, 64, 0, nullptr, 0, nullptr), 1.0f);
  EXPECT_EQ(*quantize_nvfp4(nullptr, DataType::kF32, 5, 0, 0, nullptr, 0, nullptr,
                            {.global_scale = 0.5f}),
            0.5f);
}

TEST(Quantize, RefusesBadArgumentsAndWritesNothing) {
  Call call({4, 32}, DataType::kF32, {});
  call.set_all([](int64_t, int64_t) { return 1.0f; });
  const void* x = call.x.data();
  uint8_t *codes = call.codes.data(), *scales = call.scales.data();
  const auto quantize = [&](const void* from, int64_t rows, int64_t cols, int64_t ldx, uint8_t* to,
                            int64_t ldc, uint8_t* sf, const QuantizeOptions& options = {},
                            DataType type = DataType::kF32) {
    return quantize_nvfp4(from, type, rows, cols, ldx, to, ldc, sf, options).status();
  };
  EXPECT_EQ(quantize(nullptr, 4, 32, 0, codes, 0, scales).argument(), "x");
  EXPECT_EQ(quantize(x, 4, 32, 0, nullptr, 0, scales).argument(), "codes");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, nullptr).argument(), "scales");
  EXPECT_EQ(quantize(x, -1, 32, 0, codes, 0, scales).argument(), "rows");
  EXPECT_EQ(quantize(x, 4, -32, 0, codes, 0, scales).argument(), "cols");
  EXPECT_EQ(quantize(x, 4, 24, 0, codes, 0, scales).message(),
            "cols: 24; must be a multiple of 16");
  EXPECT_EQ(quantize(x, 4, 32, 31, codes, 0, scales).message(),
            "ldx: 31; must be at least the row's 32");
  EXPECT_EQ(quantize(x, 4, 32, -40, codes, 0, scales).argument(), "ldx");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 15, scales).argument(), "ldc_bytes");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, scales, {.scale_ld = 1}).argument(), "scale_ld");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, scales,
                     {.scale_layout = ScaleLayout::kSwizzled128x4, .scale_ld = 2})
                .argument(),
            "scale_ld");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, scales, {.threads = -1}).argument(), "threads");
  for (const float global : {-1.0f, kInfinity, kNan}) {
    EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, scales, {.global_scale = global}).argument(),
              "global_scale");
  }
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, scales, {}, DataType::kE2M1).message(),
            "x_type: e2m1; must be f16, bf16 or f32");
  EXPECT_EQ(quantize(x, kLargestInt / 16, 32, 0, codes, 0, scales).code(), StatusCode::kOverflow);
  EXPECT_EQ(quantize(x, 3, 32, kLargestInt / 3, codes, 0, scales).code(), StatusCode::kOverflow);
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, kLargestInt / 2, scales).code(), StatusCode::kOverflow);
  EXPECT_EQ(quantize(x, 4, 32, 0, call.x.data() + 511, 0, scales).argument(), "codes");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, call.x.data()).argument(), "scales");
  EXPECT_EQ(quantize(x, 4, 32, 0, codes, 0, codes + 63).argument(), "scales");
  EXPECT_TRUE(call.untouched());
}

}  // namespace
}  // namespace dualgemm::test
