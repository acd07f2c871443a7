// The codecs, the scale layout and the recipe of a block against tables that codecs/write_tables.py
// wrote from the formats' definitions. The oracle and the CPU's kernels share this code, so that no
// comparison between those two can find an error in it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/e2m1.hpp"
#include "core/e4m3.hpp"
#include "core/quantize_block.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::test {
namespace {

// The table's lines that begin with `kind`, without it, each as words.
std::vector<std::vector<std::string>> lines_of(const std::string& kind) {
  std::ifstream file(DUALGEMM_CODEC_TABLES);
  std::vector<std::vector<std::string>> found;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != kind) continue;
    found.emplace_back();
    while (words >> word) found.back().push_back(word);
  }
  return found;
}

uint32_t hex(const std::string& digits) {
  return static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
}
float fp32(uint32_t bits) { return std::bit_cast<float>(bits); }
float fp32(const std::string& digits) { return fp32(hex(digits)); }

// The same bits; any NaN for a NaN.
void expect_value(float actual, float expected, const std::string& what) {
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(actual)) << what << ": " << actual;
  else
    EXPECT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(expected)) << what;
}

TEST(CodecTables, DecodeEveryE2M1Code) {
  const auto lines = lines_of("e2m1");
  ASSERT_EQ(lines.size(), 16u);
  for (const auto& line : lines) {
    const auto code = static_cast<uint8_t>(hex(line[0]));
    const float value = fp32(line[1]);
    expect_value(core::decode_e2m1(code), value, "code " + line[0]);
    expect_value(decode_e2m1(static_cast<uint8_t>(code | 0xA0)), value, "high nibble, " + line[0]);
    EXPECT_EQ(static_cast<float>(core::kE2M1Doubled[code]), 2 * value) << "code " << line[0];
    EXPECT_EQ(core::encode_e2m1(value), code);
  }
}

TEST(CodecTables, DecodeEveryE4M3Byte) {
  const auto lines = lines_of("e4m3");
  ASSERT_EQ(lines.size(), 256u);
  for (const auto& line : lines) {
    const auto byte = static_cast<uint8_t>(hex(line[0]));
    const float value = fp32(line[1]);
    expect_value(core::decode_e4m3(byte), value, "byte " + line[0]);
    expect_value(decode_e4m3(byte), value, "byte " + line[0]);
    expect_value(core::decode_scale(byte), std::fabs(value), "scale " + line[0]);
    expect_value(decode_scale(byte), std::fabs(value), "scale " + line[0]);
    EXPECT_EQ(core::encode_e4m3(value), byte);
  }
}

// Both signs of a number; `code` is that of its magnitude.
void expect_code(uint32_t bits, uint32_t code, bool is_e2m1) {
  for (const bool negative : {false, true}) {
    const float x = fp32(negative ? bits | 0x80000000u : bits);
    const uint32_t expected = negative ? code | (is_e2m1 ? 8u : 0x80u) : code;
    EXPECT_EQ(is_e2m1 ? core::encode_e2m1(x) : core::encode_e4m3(x), expected) << x;
    EXPECT_EQ(is_e2m1 ? encode_e2m1(x) : encode_e4m3(x), expected) << x;
  }
}

TEST(CodecTables, EncodeAroundEveryBoundaryAndAtTheEdges) {
  for (const bool is_e2m1 : {true, false}) {
    const std::string name = is_e2m1 ? "e2m1" : "e4m3";
    const auto boundaries = lines_of("to_" + name), edges = lines_of("edge_" + name);
    ASSERT_EQ(boundaries.size(), is_e2m1 ? 7u : 126u);
    ASSERT_EQ(edges.size(), 10u);
    for (const auto& line : boundaries)
      for (size_t i = 0; i < 6; i += 2) expect_code(hex(line[i]), hex(line[i + 1]), is_e2m1);
    for (const auto& line : edges) expect_code(hex(line[0]), hex(line[1]), is_e2m1);
  }
}

TEST(CodecTables, PlaceEveryScaleOfTheSwizzledLayout) {
  std::ifstream file(DUALGEMM_CODEC_TABLES);
  int layouts = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    int64_t rows = 0, columns = 0, bytes = 0;
    if (!(words >> kind >> rows >> columns >> bytes) || kind != "scales") continue;
    SCOPED_TRACE(line);
    ++layouts;
    const ScaleMap map(ScaleLayout::kSwizzled128x4, rows, columns);
    const PermutedScaleView permuted(rows, columns);
    EXPECT_EQ(map.required_span_size(), bytes);
    EXPECT_EQ(*checked_scale_span(ScaleLayout::kSwizzled128x4, rows, columns), bytes);
    std::set<int64_t> used;
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_TRUE(std::getline(file, line));
      std::istringstream offsets(line);
      for (int64_t column = 0, offset = 0; column < columns; ++column) {
        ASSERT_TRUE(offsets >> offset);
        EXPECT_EQ(map(row, column), offset) << row << ", " << column;
        EXPECT_EQ(permuted(row % 32, row % 128 / 32, row / 128, column % 4, column / 4, 0), offset);
        const auto back = map.inverse(offset);
        EXPECT_TRUE(back.row == row && back.col == column && !back.is_padding) << offset;
        used.insert(offset);
      }
    }
    for (int64_t offset = 0; offset < bytes; ++offset)
      EXPECT_EQ(map.inverse(offset).is_padding, used.count(offset) == 0) << offset;
  }
  EXPECT_EQ(layouts, 5);
}

TEST(CodecTables, GlobalScaleOfATensor) {
  const auto lines = lines_of("global");
  ASSERT_EQ(lines.size(), 20u);
  for (const auto& line : lines) {
    const core::GlobalScale scale = core::global_scale_of_amax(fp32(line[0]));
    expect_value(scale.dequantize, fp32(line[1]), "stored for " + line[0]);
    expect_value(scale.quantize, fp32(line[2]), "factor for " + line[0]);
  }
}

TEST(CodecTables, QuantiseEveryBlock) {
  const auto lines = lines_of("block");
  ASSERT_EQ(lines.size(), 145u);
  int differ = 0;  // blocks for which four over six gives something else
  for (const auto& line : lines) {
    ASSERT_EQ(line.size(), 21u);
    float x[16];
    for (size_t i = 0; i < 16; ++i) x[i] = fp32(line[1 + i]);
    for (const bool four_over_six : {false, true}) {
      const size_t at = four_over_six ? 19 : 17;
      uint8_t packed[8], expected[8];
      for (size_t i = 0; i < 8; ++i)
        expected[i] = static_cast<uint8_t>(hex(line[at + 1].substr(2 * i, 2)));
      const uint8_t scale = four_over_six
                                ? core::quantize_block_four_over_six(x, fp32(line[0]), packed)
                                : core::quantize_block(x, fp32(line[0]), packed);
      EXPECT_EQ(scale, hex(line[at])) << "factor " << line[0] << ", x[0] " << line[1];
      EXPECT_EQ(std::memcmp(packed, expected, 8), 0)
          << "factor " << line[0] << ", x[0] " << line[1];
    }
    differ += line[17] != line[19];
  }
  EXPECT_GT(differ, 20);
}

}  // namespace
}  // namespace dualgemm::test
