#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dualgemm/formats.hpp"
#include "support/compare.hpp"
#include "support/guarded.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {
namespace {

constexpr ScaleLayout kLayouts[] = {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4};

struct Extent {
  int64_t rows, cols;
};
// Whole tiles, one less, one more, single rows and columns; K = 16, 32, 48 are cols 1, 2, 3.
constexpr Extent kExtents[] = {{1, 1},   {1, 3},    {2, 4},   {31, 5},   {32, 1},
                               {33, 2},  {127, 4},  {128, 4}, {129, 4},  {128, 3},
                               {128, 5}, {160, 7},  {255, 9}, {256, 8},  {300, 6},
                               {384, 1}, {129, 13}, {1, 448}, {640, 12}, {5, 64}};

// The layout in words (users' documents, cuBLASLt): tiles of 128 x 4, k fastest; inside, 32 groups
// of 16 bytes, a group holding rows r, r+32, r+64, r+96 with 4 columns each. Walks the bytes in
// order instead of computing an offset.
std::vector<int64_t> swizzled_offsets_by_walking(int64_t rows, int64_t cols) {
  std::vector<int64_t> offsets(static_cast<size_t>(rows * cols), -1);
  int64_t offset = 0;
  for (int64_t tile_row = 0; tile_row < rows; tile_row += 128) {
    for (int64_t tile_col = 0; tile_col < cols; tile_col += 4) {
      for (int64_t row = 0; row < 32; ++row) {
        for (int64_t quarter = 0; quarter < 4; ++quarter) {
          for (int64_t col = 0; col < 4; ++col, ++offset) {
            const int64_t r = tile_row + row + 32 * quarter, c = tile_col + col;
            if (r < rows && c < cols) offsets[static_cast<size_t>(r * cols + c)] = offset;
          }
        }
      }
    }
  }
  return offsets;
}

TEST(ScaleMap, SwizzledOffsetsFollowTheDescriptionInWords) {
  for (const auto [rows, cols] : kExtents) {
    const ScaleMap map(ScaleLayout::kSwizzled128x4, rows, cols);
    const std::vector<int64_t> want = swizzled_offsets_by_walking(rows, cols);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        ASSERT_EQ(map(r, c), want[static_cast<size_t>(r * cols + c)]) << r << ' ' << c;
    }
  }
}

// Every coordinate has an offset of its own below the span; the inverse leads back; every other
// offset is padding.
void expect_bijection(const ScaleMap& map) {
  const int64_t span = map.required_span_size();
  std::vector<bool> used(static_cast<size_t>(span), false);
  for (int64_t r = 0; r < map.rows(); ++r) {
    for (int64_t c = 0; c < map.cols(); ++c) {
      const int64_t offset = map(r, c);
      ASSERT_GE(offset, 0);
      ASSERT_LT(offset, span);
      ASSERT_FALSE(used[static_cast<size_t>(offset)]) << r << ' ' << c;
      used[static_cast<size_t>(offset)] = true;
      const ScaleMap::Coordinate back = map.inverse(offset);
      ASSERT_EQ(back.row, r);
      ASSERT_EQ(back.col, c);
      ASSERT_FALSE(back.is_padding);
    }
  }
  int64_t padding = 0;
  for (int64_t offset = 0; offset < span; ++offset) {
    const ScaleMap::Coordinate at = map.inverse(offset);
    ASSERT_EQ(at.is_padding, !used[static_cast<size_t>(offset)]) << offset;
    ASSERT_EQ(at.is_padding, at.row >= map.rows() || at.col >= map.cols()) << offset;
    padding += at.is_padding;
  }
  EXPECT_EQ(padding, span - map.rows() * map.cols());
  EXPECT_EQ(map.is_exhaustive(), padding == 0);
  EXPECT_TRUE(map.is_unique());
}

TEST(ScaleMap, IsABijectionOnBoundaryExtents) {
  for (const auto [rows, cols] : kExtents) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    expect_bijection(ScaleMap(ScaleLayout::kSwizzled128x4, rows, cols));
    expect_bijection(ScaleMap(ScaleLayout::kLinear, rows, cols));
    expect_bijection(ScaleMap(ScaleLayout::kLinear, rows, cols, cols + 3));
  }
}

TEST(ScaleMap, IsABijectionOnRandomExtents) {
  Rng rng;
  for (int i = 0; i < 60; ++i) {
    const int64_t rows = rng.integer(1, 400), cols = rng.integer(1, 40);
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    expect_bijection(ScaleMap(ScaleLayout::kSwizzled128x4, rows, cols));
    expect_bijection(ScaleMap(ScaleLayout::kLinear, rows, cols, cols + rng.integer(0, 5)));
  }
}

TEST(ScaleMap, Spans) {
  EXPECT_EQ(ScaleMap(ScaleLayout::kSwizzled128x4, 1, 1).required_span_size(), 512);
  EXPECT_EQ(ScaleMap(ScaleLayout::kSwizzled128x4, 129, 5).required_span_size(), 4 * 512);
  EXPECT_EQ(ScaleMap(ScaleLayout::kSwizzled128x4, 0, 5).required_span_size(), 0);
  EXPECT_EQ(ScaleMap(ScaleLayout::kLinear, 3, 5).required_span_size(), 15);
  EXPECT_EQ(ScaleMap(ScaleLayout::kLinear, 3, 5, 8).required_span_size(),
            21);  // not the last row's gap
  EXPECT_EQ(ScaleMap(ScaleLayout::kLinear, 3, 0).required_span_size(), 0);
  EXPECT_FALSE(ScaleMap(ScaleLayout::kLinear, 3, 5, 4).is_unique());
}

TEST(CheckedScaleSpan, AgreesWithTheMap) {
  for (const auto [rows, cols] : kExtents) {
    for (const ScaleLayout layout : kLayouts) {
      const Expected<int64_t> span = checked_scale_span(layout, rows, cols);
      ASSERT_TRUE(span.ok());
      EXPECT_EQ(*span, ScaleMap(layout, rows, cols).required_span_size());
    }
    EXPECT_EQ(*checked_scale_span(ScaleLayout::kLinear, rows, cols, cols + 7),
              (rows - 1) * (cols + 7) + cols);
  }
}

TEST(CheckedScaleSpan, RefusesWhatDoesNotFitOrMakesNoSense) {
  const auto code = [](ScaleLayout layout, int64_t rows, int64_t cols, int64_t ld) {
    return checked_scale_span(layout, rows, cols, ld).status().code();
  };
  const auto linear = ScaleLayout::kLinear, swizzled = ScaleLayout::kSwizzled128x4;
  EXPECT_EQ(code(linear, -1, 4, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(linear, 4, -1, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(linear, 4, 4, -4), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(linear, 4, 4, 3), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(swizzled, 4, 4, 4), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(static_cast<ScaleLayout>(7), 4, 4, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(linear, kLargestInt, 2, 0), StatusCode::kOverflow);
  EXPECT_EQ(code(linear, 3, 1, kLargestInt / 2 + 1), StatusCode::kOverflow);
  EXPECT_EQ(code(linear, 2, 2, kLargestInt - 1), StatusCode::kOverflow);
  EXPECT_EQ(code(swizzled, kLargestInt, 1, 0), StatusCode::kOverflow);
  EXPECT_EQ(code(swizzled, 1, kLargestInt, 0), StatusCode::kOverflow);
  EXPECT_EQ(code(swizzled, kLargestInt / 256, 5, 0), StatusCode::kOk);
  EXPECT_EQ(code(swizzled, kLargestInt / 4, 5, 0), StatusCode::kOverflow);
  EXPECT_EQ(*checked_scale_span(linear, 2, 1, kLargestInt - 1),
            kLargestInt);  // the largest span there is
  EXPECT_EQ(checked_scale_span(linear, 4, 4, 3).status().message(),
            "ld: 3; must be at least the row's 4");
}

// In the GPU MODE challenge element (i, j) of batch l sits in the permuted tensor at
// [i%32, (i%128)/32, i/128, j%4, j/4, l], whose memory order is [L, rows/128, K/64, 32, 4, 4].
TEST(PermutedScaleView, IsTheChallengesTensorOverTheSameBytes) {
  for (const auto [rows, cols] : kExtents) {
    const int64_t batches = 3,
                  span = ScaleMap(ScaleLayout::kSwizzled128x4, rows, cols).required_span_size();
    const PermutedScaleView view(rows, cols, batches);
    const ScaleMap map(ScaleLayout::kSwizzled128x4, rows, cols);
    const int64_t tiles_row = (rows + 127) / 128, tiles_col = (cols + 3) / 4;
    const int64_t extents[6] = {32, 4, tiles_row, 4, tiles_col, batches};
    for (int d = 0; d < 6; ++d) ASSERT_EQ(view.extent(d), extents[d]);
    // A C-contiguous array [L][rows/128][K/64][32][4][4], index by index.
    int64_t offset = 0;
    for (int64_t l = 0; l < batches; ++l) {
      for (int64_t i2 = 0; i2 < tiles_row; ++i2) {
        for (int64_t i4 = 0; i4 < tiles_col; ++i4) {
          for (int64_t i0 = 0; i0 < 32; ++i0) {
            for (int64_t i1 = 0; i1 < 4; ++i1) {
              for (int64_t i3 = 0; i3 < 4; ++i3) ASSERT_EQ(view(i0, i1, i2, i3, i4, l), offset++);
            }
          }
        }
      }
    }
    ASSERT_EQ(offset, batches * span);
    for (int64_t l = 0; l < batches; ++l) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          ASSERT_EQ(view(i % 32, (i % 128) / 32, i / 128, j % 4, j / 4, l), l * span + map(i, j));
        }
      }
    }
  }
}

// Scales whose bytes are all possible values, padding poisoned.
Guarded<uint8_t> random_scales(const ScaleMap& map, int64_t batches, Rng& rng) {
  Guarded<uint8_t> scales(batches * map.required_span_size());
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t r = 0; r < map.rows(); ++r) {
      for (int64_t c = 0; c < map.cols(); ++c)
        scales[b * map.required_span_size() + map(r, c)] = rng.byte();
    }
  }
  return scales;
}

TEST(ConvertScaleLayout, EveryPairOfLayoutsElementByElement) {
  Rng rng;
  for (const auto [rows, cols] : kExtents) {
    for (const int64_t batches : {int64_t{1}, int64_t{3}}) {
      for (const ScaleLayout from_layout : kLayouts) {
        for (const ScaleLayout to_layout : kLayouts) {
          const int64_t from_ld =
              from_layout == ScaleLayout::kLinear ? cols + rng.integer(0, 2) : 0;
          const int64_t to_ld = to_layout == ScaleLayout::kLinear ? cols + rng.integer(0, 2) : 0;
          const ScaleMap from(from_layout, rows, cols, from_ld), to(to_layout, rows, cols, to_ld);
          const Guarded<uint8_t> src = random_scales(from, batches, rng);
          Guarded<uint8_t> dst(batches * to.required_span_size());
          const Status status = convert_scale_layout(src.data(), from_layout, from_ld, dst.data(),
                                                     to_layout, to_ld, rows, cols, batches);
          ASSERT_TRUE(status.ok()) << status.message();
          const uint8_t padding = to_layout == ScaleLayout::kSwizzled128x4 ? 0 : kPoison;
          for (int64_t i = 0; i < dst.size(); ++i) {
            const int64_t batch = i / to.required_span_size();
            const ScaleMap::Coordinate at = to.inverse(i % to.required_span_size());
            const uint8_t want =
                at.is_padding ? padding
                              : src[batch * from.required_span_size() + from(at.row, at.col)];
            ASSERT_EQ(dst[i], want) << rows << " x " << cols << ", byte " << i;
          }
        }
      }
    }
  }
}

TEST(ConvertScaleLayout, SourcePaddingDoesNotCount) {
  Rng rng;
  const int64_t rows = 131, cols = 5, batches = 2;
  const ScaleMap swizzled(ScaleLayout::kSwizzled128x4, rows, cols);
  const Guarded<uint8_t> poisoned = random_scales(swizzled, batches, rng);
  Guarded<uint8_t> clean(poisoned.size());
  for (int64_t i = 0; i < clean.size(); ++i) {
    clean[i] = swizzled.inverse(i % swizzled.required_span_size()).is_padding ? 0 : poisoned[i];
  }
  for (const ScaleLayout layout : kLayouts) {
    const int64_t bytes = batches * ScaleMap(layout, rows, cols).required_span_size();
    Guarded<uint8_t> a(bytes), b(bytes);
    ASSERT_TRUE(convert_scale_layout(poisoned.data(), ScaleLayout::kSwizzled128x4, 0, a.data(),
                                     layout, 0, rows, cols, batches)
                    .ok());
    ASSERT_TRUE(convert_scale_layout(clean.data(), ScaleLayout::kSwizzled128x4, 0, b.data(), layout,
                                     0, rows, cols, batches)
                    .ok());
    EXPECT_TRUE(same_bits(a.data(), b.data(), bytes));
  }
}

TEST(ConvertScaleLayout, ThereAndBackIsTheSame) {
  Rng rng;
  for (int i = 0; i < 40; ++i) {
    const int64_t rows = rng.integer(1, 300), cols = rng.integer(1, 20),
                  batches = rng.integer(1, 3);
    const ScaleMap linear(ScaleLayout::kLinear, rows, cols),
        swizzled(ScaleLayout::kSwizzled128x4, rows, cols);
    const Guarded<uint8_t> src = random_scales(linear, batches, rng);
    Guarded<uint8_t> middle(batches * swizzled.required_span_size()), back(src.size());
    ASSERT_TRUE(convert_scale_layout(src.data(), ScaleLayout::kLinear, 0, middle.data(),
                                     ScaleLayout::kSwizzled128x4, 0, rows, cols, batches)
                    .ok());
    ASSERT_TRUE(convert_scale_layout(middle.data(), ScaleLayout::kSwizzled128x4, 0, back.data(),
                                     ScaleLayout::kLinear, 0, rows, cols, batches)
                    .ok());
    EXPECT_TRUE(same_bits(back.data(), src.data(), src.size()));
  }
}

TEST(ConvertScaleLayout, RefusesBadArgumentsAndWritesNothing) {
  Guarded<uint8_t> src(1024), dst(1024);
  src.fill(0x38);
  const auto convert = [&](const uint8_t* from, int64_t src_ld, uint8_t* to, int64_t dst_ld,
                           int64_t rows, int64_t cols, int64_t batches) {
    return convert_scale_layout(from, ScaleLayout::kLinear, src_ld, to, ScaleLayout::kSwizzled128x4,
                                dst_ld, rows, cols, batches);
  };
  EXPECT_EQ(convert(nullptr, 0, dst.data(), 0, 4, 4, 1).argument(), "src");
  EXPECT_EQ(convert(src.data(), 0, nullptr, 0, 4, 4, 1).argument(), "dst");
  EXPECT_EQ(convert(src.data(), 3, dst.data(), 0, 4, 4, 1).argument(), "src_ld");
  EXPECT_EQ(convert(src.data(), 0, dst.data(), 4, 4, 4, 1).argument(), "dst_ld");
  EXPECT_EQ(convert(src.data(), 0, dst.data(), 0, -4, 4, 1).argument(), "rows");
  EXPECT_EQ(convert(src.data(), 0, dst.data(), 0, 4, -4, 1).argument(), "sf_cols");
  EXPECT_EQ(convert(src.data(), 0, dst.data(), 0, 4, 4, -1).argument(), "batches");
  EXPECT_EQ(convert(src.data(), 0, dst.data(), 0, 4, 4, kLargestInt / 8).code(),
            StatusCode::kOverflow);
  EXPECT_EQ(convert(src.data(), 0, dst.data(), 0, kLargestInt / 2, 3, 1).code(),
            StatusCode::kOverflow);
  EXPECT_EQ(convert(dst.data() + 511, 0, dst.data(), 0, 4, 4, 1).argument(), "dst");
  EXPECT_TRUE(dst.all_bytes(kPoison));
  EXPECT_TRUE(convert(nullptr, 0, nullptr, 0, 0, 4, 1).ok());
  EXPECT_TRUE(convert(nullptr, 0, nullptr, 0, 4, 4, 0).ok());
  EXPECT_TRUE(convert(dst.data() + 512, 0, dst.data(), 0, 4, 4, 1).ok())
      << "neighbours do not overlap";
}

TEST(InspectScales, CountsWhatIsThereAndNotThePadding) {
  for (const ScaleLayout layout : kLayouts) {
    const int64_t rows = 130, cols = 6, ld = layout == ScaleLayout::kLinear ? 9 : 0;
    const ScaleMap map(layout, rows, cols, ld);
    Guarded<uint8_t> scales(map.required_span_size());  // padding: 0xFF, negative and NaN
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) scales[map(r, c)] = 0x38;
    }
    Expected<ScaleReport> report = inspect_scales(scales.data(), layout, rows, cols, ld);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->negative + report->nan + report->zero + report->subnormal, 0);
    EXPECT_EQ(report->first_bad_row, -1);
    EXPECT_EQ(report->first_bad_col, -1);
    const uint8_t bytes[] = {0x00, 0x80, 0x01, 0x07, 0x87, 0x08, 0x7E, 0xFE, 0x7F, 0xFF};
    for (int i = 0; i < 10; ++i) scales[map(10 * i, i % cols)] = bytes[i];
    report = inspect_scales(scales.data(), layout, rows, cols, ld);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->zero, 2);
    EXPECT_EQ(report->subnormal, 3);
    EXPECT_EQ(report->negative, 4);
    EXPECT_EQ(report->nan, 2);
    EXPECT_EQ(report->first_bad_row, 10);  // 0x80: the sign bit counts on a zero too
    EXPECT_EQ(report->first_bad_col, 1);
  }
  EXPECT_EQ(inspect_scales(nullptr, ScaleLayout::kLinear, 1, 1).status().argument(), "scales");
  EXPECT_EQ(inspect_scales(nullptr, ScaleLayout::kLinear, -1, 1).status().argument(), "rows");
  EXPECT_TRUE(inspect_scales(nullptr, ScaleLayout::kLinear, 0, 1).ok());
}

}  // namespace
}  // namespace dualgemm::test
