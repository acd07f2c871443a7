// Nibble order and ggml blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "dualgemm/formats.hpp"
#include "support/compare.hpp"
#include "support/guarded.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {
namespace {

TEST(SwapNibbles, EveryByte) {
  Guarded<uint8_t> src(256), dst(256);
  for (int i = 0; i < 256; ++i) src[i] = static_cast<uint8_t>(i);
  ASSERT_TRUE(swap_nibbles(src.data(), dst.data(), 256).ok());
  for (int i = 0; i < 256; ++i) ASSERT_EQ(dst[i], i % 16 * 16 + i / 16);
  ASSERT_TRUE(swap_nibbles(dst.data(), dst.data(), 256).ok());  // in place, and its own inverse
  EXPECT_TRUE(same_bits(dst.data(), src.data(), 256));
}

TEST(SwapNibbles, RefusesBadArguments) {
  Guarded<uint8_t> bytes(64);
  EXPECT_EQ(swap_nibbles(bytes.data(), bytes.data(), -1).argument(), "bytes");
  EXPECT_EQ(swap_nibbles(nullptr, bytes.data(), 1).argument(), "src");
  EXPECT_EQ(swap_nibbles(bytes.data(), nullptr, 1).argument(), "dst");
  EXPECT_EQ(swap_nibbles(bytes.data(), bytes.data() + 1, 16).argument(), "dst");
  EXPECT_TRUE(swap_nibbles(nullptr, nullptr, 0).ok());
  EXPECT_TRUE(bytes.all_bytes(kPoison));
}

// ggml's reading of a ggml block, from its definition: d[4] scales, qs[32]; in sub-block s, byte
// s*8 + j holds element j in the low nibble and j + 8 in the high one. The table is doubled and the
// scale halved, which cancels; 0 and 0x7F are 0, the sign bit does not count.
std::vector<float> ggml_values(const uint8_t* block) {
  const int doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  std::vector<float> values(64);
  for (size_t s = 0; s < 4; ++s) {
    const int exponent = block[s] >> 3 & 15, mantissa = block[s] & 7;
    double scale =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1 + mantissa / 8.0, exponent - 7);
    if (block[s] == 0x7F) scale = 0;
    for (size_t j = 0; j < 8; ++j) {
      const uint8_t pair = block[4 + s * 8 + j];
      values[s * 16 + j] = static_cast<float>(doubled[pair % 16] * (scale * 0.5));
      values[s * 16 + j + 8] = static_cast<float>(doubled[pair / 16] * (scale * 0.5));
    }
  }
  return values;
}

struct GgmlCase {
  int64_t rows, cols;
  Guarded<uint8_t> blocks, codes, scales;
  GgmlCase(int64_t r, int64_t c)
      : rows(r), cols(c), blocks(r * c / 64 * 36), codes(r * c / 2), scales(r * c / 16) {}
};

TEST(Ggml, ConvertedBlocksMeanTheSameValues) {
  Rng rng;
  for (int i = 0; i < 30; ++i) {
    GgmlCase c(rng.integer(1, 9), 64 * rng.integer(1, 5));
    for (uint8_t& byte : c.blocks) byte = rng.byte();
    for (int64_t b = 0; b < c.blocks.size(); b += 36) {
      for (int64_t s = b; s < b + 4; ++s)
        c.blocks[s] = c.blocks[s] == 0xFF ? uint8_t{0x7F} : c.blocks[s];
    }
    const Status status =
        from_ggml_nvfp4(c.blocks.data(), c.rows, c.cols, c.codes.data(), c.scales.data());
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t k = 0; k < c.cols; ++k) {
        const std::vector<float> values = ggml_values(&c.blocks[(row * c.cols + k) / 64 * 36]);
        const uint8_t pair = c.codes[(row * c.cols + k) / 2];
        const float code = decode_e2m1(static_cast<uint8_t>(k % 2 == 0 ? pair : pair >> 4));
        const float value = code * decode_scale(c.scales[(row * c.cols + k) / 16]);
        ASSERT_EQ(value, values[static_cast<size_t>(k % 64)]) << row << ' ' << k;
      }
    }
  }
}

TEST(Ggml, ThereAndBackIsTheSame) {
  Rng rng;
  for (int i = 0; i < 30; ++i) {
    GgmlCase c(rng.integer(1, 9), 64 * rng.integer(1, 5));
    for (uint8_t& byte : c.codes) byte = rng.byte();
    for (uint8_t& byte : c.scales)
      byte = static_cast<uint8_t>(rng.byte() % 0x7F + 0x80 * rng.integer(0, 1));
    ASSERT_TRUE(
        to_ggml_nvfp4(c.codes.data(), c.scales.data(), c.rows, c.cols, c.blocks.data()).ok());
    GgmlCase back(c.rows, c.cols);
    ASSERT_TRUE(
        from_ggml_nvfp4(c.blocks.data(), c.rows, c.cols, back.codes.data(), back.scales.data())
            .ok());
    EXPECT_TRUE(same_bits(back.codes.data(), c.codes.data(), c.codes.size()));
    EXPECT_TRUE(same_bits(back.scales.data(), c.scales.data(), c.scales.size()));
  }
}

TEST(Ggml, NanScales) {
  GgmlCase c(3, 128);
  c.blocks.fill(0x38);
  c.blocks[36 + 2] = 0x7F;  // ggml's zero: row 0, values 64 + 32 ...
  ASSERT_TRUE(
      from_ggml_nvfp4(c.blocks.data(), c.rows, c.cols, c.codes.data(), c.scales.data()).ok());
  EXPECT_EQ(c.scales[6], 0x00);
  EXPECT_EQ(c.scales[5], 0x38);
  GgmlCase untouched(3, 128);
  c.blocks[3 * 36 + 1] = 0xFF;  // block 3 = row 1, second half
  const Status from = from_ggml_nvfp4(c.blocks.data(), c.rows, c.cols, untouched.codes.data(),
                                      untouched.scales.data());
  EXPECT_EQ(
      from.message(),
      "ggml_blocks: scale byte 0xFF at row 1, scale column 5; ggml reads it as 480, which E4M3 "
      "does not have");
  for (const uint8_t nan : {uint8_t{0x7F}, uint8_t{0xFF}}) {
    c.scales.fill(0x38);
    c.scales[2 * 8 + 7] = nan;
    const Status to =
        to_ggml_nvfp4(c.codes.data(), c.scales.data(), c.rows, c.cols, untouched.blocks.data());
    EXPECT_EQ(
        to.message(),
        "scales_linear: NaN at row 2, scale column 7; ggml has no NaN: it would read a number");
  }
  EXPECT_TRUE(untouched.codes.all_bytes(kPoison) && untouched.scales.all_bytes(kPoison) &&
              untouched.blocks.all_bytes(kPoison));
}

TEST(Ggml, RefusesBadArguments) {
  GgmlCase c(2, 64);
  const auto from = [&](const uint8_t* blocks, int64_t rows, int64_t cols, uint8_t* codes,
                        uint8_t* scales) {
    return from_ggml_nvfp4(blocks, rows, cols, codes, scales);
  };
  uint8_t *blocks = c.blocks.data(), *codes = c.codes.data(), *scales = c.scales.data();
  EXPECT_EQ(from(blocks, 2, 48, codes, scales).message(), "cols: 48; must be a multiple of 64");
  EXPECT_EQ(from(blocks, 2, -64, codes, scales).argument(), "cols");
  EXPECT_EQ(from(blocks, -2, 64, codes, scales).argument(), "rows");
  EXPECT_EQ(from(blocks, kLargestInt / 64, 128, codes, scales).code(), StatusCode::kOverflow);
  EXPECT_EQ(from(nullptr, 2, 64, codes, scales).argument(), "ggml_blocks");
  EXPECT_EQ(from(blocks, 2, 64, nullptr, scales).argument(), "codes");
  EXPECT_EQ(from(blocks, 2, 64, codes, nullptr).argument(), "scales_linear");
  EXPECT_EQ(from(blocks, 2, 64, blocks + 4, scales).argument(), "codes");
  EXPECT_EQ(from(blocks, 2, 64, codes, codes + 63).argument(), "scales_linear");
  EXPECT_EQ(to_ggml_nvfp4(codes, scales, 2, 48, blocks).argument(), "cols");
  EXPECT_EQ(to_ggml_nvfp4(codes, scales, 2, 64, nullptr).argument(), "ggml_blocks");
  EXPECT_TRUE(c.blocks.all_bytes(kPoison) && c.codes.all_bytes(kPoison) &&
              c.scales.all_bytes(kPoison));
  EXPECT_TRUE(from(nullptr, 0, 64, nullptr, nullptr).ok());
}

}  // namespace
}  // namespace dualgemm::test
