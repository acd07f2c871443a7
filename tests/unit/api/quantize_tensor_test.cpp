// quantize(), dequantize(), convert_scales() on the CPU: what they mean, and what they refuse.
#include <gtest/gtest.h>

#include <cstring>

#include "dualgemm/dualgemm.hpp"
#include "support/quantize_case.hpp"
#include "support/transform_case.hpp"

namespace dualgemm::test {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// One row as the quantiser of formats.hpp has it, which tests/unit/core judges.
struct Row {
  std::vector<uint8_t> codes, scales;
  float global = 0.0f;
};
Row row_of(const QuantizeCase& data, int64_t batch, int64_t row, float given) {
  Row out;
  out.codes.resize(static_cast<size_t>(data.problem.cols / 2));
  out.scales.resize(static_cast<size_t>(data.problem.cols / 16));
  const QuantizeProblem& p = data.problem;
  const auto* const from =
      data.x.data() + core::bytes_of(p.x.type, data.element_index(batch, row, 0));
  std::vector<uint8_t> x(from, from + core::bytes_of(p.x.type, p.cols));
  slow_transform(p.x.type, p.transform, data.column_factors.data(), p.cols, x.data());
  const auto global =
      quantize_nvfp4(x.data(), p.x.type, 1, p.cols, 0, out.codes.data(), 0, out.scales.data(),
                     {.global_scale = given, .four_over_six = p.four_over_six});
  EXPECT_TRUE(global.ok()) << global.status().message();
  out.global = global ? *global : 0.0f;
  return out;
}

// Where row `row` of what `data` holds differs from `want`; `scale_row`: its place in the scales.
void expect_row(const QuantizeCase& data, int64_t batch, int64_t row, int64_t scale_row,
                const Row& want) {
  const core::ResolvedMatrix& q = data.resolved.q;
  const int64_t code = (batch * q.batch_stride + row * q.ld) / 2;
  EXPECT_EQ(std::memcmp(data.codes.data() + code, want.codes.data(), want.codes.size()), 0)
      << "batch " << batch << " row " << row;
  for (int64_t block = 0; block < q.sf_cols; ++block) {
    const int64_t at = batch * q.scale_batch_stride + q.scale_map()(scale_row, block);
    EXPECT_EQ(data.scales[static_cast<size_t>(at)], want.scales[static_cast<size_t>(block)])
        << "batch " << batch << " row " << row << " block " << block;
  }
}

TEST(QuantizeTensor, EveryRowAsTheQuantizerOfAMatrixHasIt) {
  Rng rng;
  for (int i = 0; i < 120; ++i) {
    QuantizeProblem p = random_quantize_problem(rng);
    p.grouping = Grouping::kNone;
    p.l = rng.integer(1, 3);
    if (p.scaling == GlobalScaling::kTensor) p.scaling = GlobalScaling::kRow;
    QuantizeCase data(p);
    data.randomize(rng, Hard::kOrdinary);
    if (p.transform.any()) data.divide(1024.0f);  // sums of 256 stay finite
    SCOPED_TRACE(data.describe());
    const Status status = quantize(p, data.buffers());
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t batch = 0; batch < p.l; ++batch) {
      for (int64_t row = 0; row < p.rows; ++row) {
        const float given = p.scaling == GlobalScaling::kRow ? 0.0f
                            : p.scaling == GlobalScaling::kGiven
                                ? data.global_scale[0]
                                : data.global_scale[static_cast<size_t>(batch)];
        const Row want = row_of(data, batch, row, given);
        expect_row(data, batch, row, row, want);
        if (p.scaling == GlobalScaling::kRow) {
          EXPECT_EQ(data.found_scale[static_cast<size_t>(batch * p.rows + row)], want.global);
        }
      }
    }
  }
}

TEST(QuantizeTensor, OneScaleForTheTensorCountsTheRowsThatThereAre) {
  Rng rng;
  QuantizeProblem p{.rows = 9, .cols = 48, .l = 3, .x = {.type = DataType::kF32}};
  p.grouping = Grouping::kMasked;
  QuantizeCase data(p);
  data.randomize(rng, Hard::kOrdinary);
  for (int64_t batch = 0; batch < 3; ++batch) {
    for (int64_t row = 0; row < 9; ++row) {
      for (int64_t col = 0; col < 48; ++col)
        data.set(batch, row, col, row < 2 + batch ? rng.normal() : 1e30f);  // not wanted
    }
  }
  data.set(1, 2, 5, -26.88f);
  data.expert_rows = {2, 3, 4};
  ASSERT_TRUE(quantize(p, data.buffers()).ok());
  EXPECT_EQ(data.found_scale[0], 26.88f / 2688.0f);
  const Row want = row_of(data, 2, 3, data.found_scale[0]);
  EXPECT_EQ(std::memcmp(data.codes.data() + (2 * 9 + 3) * 24, want.codes.data(), 24), 0);
  EXPECT_EQ(data.codes[(2 * 9 + 4) * 24], kPoison);  // the row after the last
}

TEST(QuantizeTensor, ContiguousExpertsHaveScaleTilesOfTheirOwn) {
  Rng rng;
  QuantizeProblem p{.rows = 200, .cols = 80, .l = 4, .x = {.type = DataType::kBF16}};
  p.grouping = Grouping::kContiguous;
  p.scaling = GlobalScaling::kGivenPerBatch;
  p.q.scale_layout = ScaleLayout::kSwizzled128x4;
  QuantizeCase data(p);
  data.randomize(rng, Hard::kOrdinary);
  data.row_experts.clear();
  data.expert_offsets = {0, 130, 130, 131, 200};
  data.global_scale = {0.5f, 3.0f, 0.01f, 1.0f};
  ASSERT_TRUE(quantize(p, data.buffers()).ok());
  const int64_t scale_begin[] = {0, 0, 256, 384};
  for (const auto& [row, expert] : {std::pair{0, 0}, {129, 0}, {130, 2}, {131, 3}, {199, 3}}) {
    const int64_t first = data.expert_offsets[static_cast<size_t>(expert)];
    expect_row(data, 0, row, scale_begin[expert] + row - first,
               row_of(data, 0, row, data.global_scale[static_cast<size_t>(expert)]));
  }
  // All of the four tiles of rows that there are belongs to a scale or is 0; the rest is untouched.
  const ScaleMap map = data.resolved.q.scale_map();
  for (int64_t row = 0; row < 512; ++row) {
    const bool exists = row < 130 || row == 256 || (row >= 384 && row < 453);
    for (int64_t col = exists ? 5 : 0; col < 8; ++col)
      ASSERT_EQ(data.scales[static_cast<size_t>(map(row, col))], 0) << row << " " << col;
  }
  for (size_t i = 512 * 8; i < data.scales.size(); ++i) ASSERT_EQ(data.scales[i], kPoison);
}

TEST(QuantizeTensor, RowsChooseTheirExperts) {
  Rng rng;
  QuantizeProblem p{.rows = 6, .cols = 32, .l = 2, .x = {.type = DataType::kF16}};
  p.grouping = Grouping::kContiguous;
  p.scaling = GlobalScaling::kGivenPerBatch;
  QuantizeCase data(p);
  data.randomize(rng, Hard::kOrdinary);
  data.expert_offsets.clear();
  data.row_experts = {1, 1, -1, 0, 2, 1};
  data.global_scale = {0.25f, 8.0f};
  ASSERT_TRUE(quantize(p, data.buffers()).ok());
  for (const int64_t row : {0, 1, 3, 5}) {
    expect_row(
        data, 0, row, row,
        row_of(data, 0, row,
               data.global_scale[static_cast<size_t>(data.row_experts[static_cast<size_t>(row)])]));
  }
  for (const size_t row : {2, 4}) {
    EXPECT_EQ(data.codes[row * 16], kPoison);
    EXPECT_EQ(data.scales[row * 2], kPoison);
  }
}

TEST(QuantizeTensor, WhatIsNotFiniteBecomesNaNOrSaturates) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const GlobalScaling scaling :
         {GlobalScaling::kGiven, GlobalScaling::kTensor, GlobalScaling::kRow}) {
      QuantizeProblem p{.rows = 2, .cols = 32, .x = {.type = DataType::kF32}};
      p.scaling = scaling;
      QuantizeCase data(p);
      for (int64_t i = 0; i < 64; ++i) data.set(0, i / 32, i % 32, 3.0f);
      data.set(0, 0, 20, bad);
      if (data.is_given()) data.global_scale = {1.0f};
      ASSERT_TRUE(quantize(p, data.buffers()).ok());
      const bool saturates = scaling == GlobalScaling::kGiven && !std::isnan(bad);
      EXPECT_EQ(data.scales[1], saturates ? 0x7E : 0x7F);
      EXPECT_EQ(data.codes[10] & 15, saturates ? (bad < 0 ? 15 : 7) : 0);
      EXPECT_EQ(data.scales[0] == 0x7F, scaling != GlobalScaling::kGiven);
      EXPECT_EQ(data.scales[2] == 0x7F, scaling == GlobalScaling::kTensor);
      if (!data.is_given()) {
        EXPECT_TRUE(std::isnan(data.found_scale[0]));
      }
    }
  }
}

TEST(QuantizeTensor, ThereAndBackInEveryType) {
  Rng rng;
  for (int i = 0; i < 40; ++i) {
    QuantizeCase data(random_quantize_problem(rng));
    data.randomize(rng, Hard::kSpecial);
    SCOPED_TRACE(data.describe());
    ASSERT_TRUE(quantize(data.problem, data.buffers()).ok());
    QuantizeCase back = data;
    std::fill(back.x.begin(), back.x.end(), kPoison);
    const float* const global =
        data.is_given() ? data.global_scale.data() : data.found_scale.data();
    const Status status = dequantize(data.problem, {.codes = data.codes.data(),
                                                    .scales = data.scales.data(),
                                                    .global_scale = global,
                                                    .x = back.x.data(),
                                                    .groups = data.groups()});
    ASSERT_TRUE(status.ok()) << status.message();
    for (const core::RowRun& run : core::row_runs(data.resolved, data.groups())) {
      const core::ResolvedMatrix& q = data.resolved.q;
      for (int64_t i = 0; i < run.rows * data.problem.cols; ++i) {
        const int64_t row = run.row + i / data.problem.cols, col = i % data.problem.cols;
        const int64_t code = (run.batch * q.batch_stride + row * q.ld + col) / 2;
        const int64_t scale = run.batch * q.scale_batch_stride +
                              q.scale_map()(run.scale_row + row - run.row, col / 16);
        const float g = data.problem.scaling == GlobalScaling::kRow
                            ? global[run.batch * data.problem.rows + row]
                        : data.problem.scaling == GlobalScaling::kGivenPerBatch ? global[run.expert]
                                                                                : global[0];
        const float value = decode_e2m1(static_cast<uint8_t>(
                                data.codes[static_cast<size_t>(code)] >> (col % 2 * 4))) *
                            decode_scale(data.scales[static_cast<size_t>(scale)]) * g;
        uint32_t want[1] = {0}, got[1] = {0};
        store_element(want, data.problem.x.type, 0, std::isnan(value) ? std::nanf("") : value);
        const int64_t bytes = core::bytes_of(data.problem.x.type, 1);
        std::memcpy(got, back.x.data() + data.element_index(run.batch, row, col) * bytes,
                    static_cast<size_t>(bytes));
        ASSERT_EQ(got[0], want[0]) << run.batch << " " << row << " " << col;
      }
    }
  }
}

TEST(QuantizeTensor, ScalesOfBatchesWithStrides) {
  Rng rng;
  std::vector<uint8_t> src(2 * 40), dst(2 * 600, kPoison);
  for (uint8_t& byte : src) byte = rng.byte();
  const ScaleConversion c{.rows = 3,
                          .sf_cols = 5,
                          .l = 2,
                          .from = {.ld = 7, .batch_stride = 40},
                          .to = {.layout = ScaleLayout::kSwizzled128x4, .batch_stride = 0}};
  dst.resize(2 * 1024, kPoison);
  ASSERT_TRUE(convert_scales(c, src.data(), dst.data()).ok());
  const ScaleMap map(ScaleLayout::kSwizzled128x4, 3, 5);
  for (int64_t i = 0; i < 2048; ++i) {
    const ScaleMap::Coordinate at = map.inverse(i % 1024);
    const int64_t from = i / 1024 * 40 + at.row * 7 + at.col;
    ASSERT_EQ(dst[static_cast<size_t>(i)], at.is_padding ? 0 : src[static_cast<size_t>(from)]);
  }
}

TEST(QuantizeTensor, SizesSuffice) {
  QuantizeProblem p{.rows = 200, .cols = 80, .l = 4, .x = {.type = DataType::kF32}};
  auto sizes = quantize_sizes(p);
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(sizes->x, 4 * 200 * 80 * 4);
  EXPECT_EQ(sizes->codes, 4 * 200 * 40);
  EXPECT_EQ(sizes->scales, 4 * 200 * 5);
  EXPECT_EQ(sizes->global_scale, 4);
  EXPECT_EQ(sizes->workspace, 0);
  p.grouping = Grouping::kContiguous;
  p.scaling = GlobalScaling::kRow;
  p.q.scale_layout = ScaleLayout::kSwizzled128x4;
  sizes = quantize_sizes(p);
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(sizes->scales, (4 + 196 / 128) * 128 * 8);
  EXPECT_EQ(sizes->global_scale, 200 * 4);
}

TEST(QuantizeTensor, RefusesWhatBreaksARule) {
  const QuantizeProblem good{.rows = 3, .cols = 48, .l = 2};
  const auto message = [&](auto&& change) {
    QuantizeProblem p = good;
    change(p);
    return validate(p).message();
  };
  EXPECT_EQ(message([](auto&) {}), "ok");
  EXPECT_EQ(message([](auto& p) { p.rows = 0; }), "rows: 0; must be at least 1");
  EXPECT_EQ(message([](auto& p) { p.cols = 40; }), "cols: 40; must be a multiple of 16");
  EXPECT_EQ(message([](auto& p) { p.cols = 0; }), "cols: 0; must be at least 16");
  EXPECT_EQ(message([](auto& p) { p.l = 0; }), "l: 0; must be at least 1");
  EXPECT_EQ(message([](auto& p) { p.x.type = DataType::kE2M1; }),
            "x.type: e2m1; must be f16, bf16 or f32");
  EXPECT_EQ(message([](auto& p) { p.q.type = DataType::kF16; }), "q.type: f16; must be e2m1");
  EXPECT_EQ(message([](auto& p) { p.x.ld = 47; }),
            "x.ld: 47; must be at least 48 (columns), or 0 for tight");
  EXPECT_EQ(message([](auto& p) { p.q.ld = 49; }),
            "q.ld: 49; must be even: two e2m1 codes share a byte");
  EXPECT_EQ(message([](auto& p) { p.scaling = static_cast<GlobalScaling>(4); }),
            "scaling: 4; must be 0 .. 3");
  EXPECT_EQ(message([](auto& p) {
              p.grouping = Grouping::kContiguous;
              p.x.batch_stride = 4096;
            }),
            "x.batch_stride: 4096; must be 0 for contiguous groups");
  EXPECT_EQ(validate({.rows = kLargest / 64, .cols = 64}).code(), StatusCode::kOverflow);
  EXPECT_EQ(validate({.rows = 1, .cols = kLargest / 16 * 16}).code(), StatusCode::kOverflow);
}

TEST(QuantizeTensor, RefusesBuffersThatDoNotFit) {
  Rng rng;
  QuantizeProblem p{.rows = 3, .cols = 48, .l = 2};
  p.scaling = GlobalScaling::kGiven;
  QuantizeCase data(p);
  data.randomize(rng, Hard::kOrdinary);
  const auto message = [&](auto&& change) {
    QuantizeBuffers buffers = data.buffers();
    change(buffers);
    return quantize(p, buffers).message();
  };
  float scale = 1.0f;
  EXPECT_EQ(message([](auto&) {}), "ok");
  EXPECT_EQ(message([](auto& b) { b.x = nullptr; }), "x: null; is required");
  EXPECT_EQ(message([](auto& b) { b.x = static_cast<const char*>(b.x) + 1; }),
            "x: address % 2 = 1; must be aligned to 2 bytes");
  EXPECT_EQ(message([](auto& b) { b.scales = b.codes + 5; }),
            "codes: overlaps scales; must not share bytes with any other operand");
  EXPECT_EQ(message([](auto& b) { b.global_scale = nullptr; }), "global_scale: null; is required");
  EXPECT_EQ(message([&](auto& b) { b.found_scale = &scale; }),
            "found_scale: not null; must be null: the scale is given");
  scale = -1.0f;
  EXPECT_EQ(message([&](auto& b) { b.global_scale = &scale; }),
            "global_scale: -1; must be finite and > 0");
  const int32_t rows[2] = {1, 4};
  EXPECT_EQ(message([&](auto& b) { b.groups.expert_rows = rows; }),
            "expert_rows: not null; must be null unless grouping is masked");
  p.grouping = Grouping::kMasked;
  EXPECT_EQ(message([](auto&) {}), "expert_rows: null; is required");
  EXPECT_EQ(message([&](auto& b) { b.groups.expert_rows = rows; }),
            "expert_rows[1]: 4; must be 0 .. m = 3");
  p.grouping = Grouping::kContiguous;
  EXPECT_EQ(message([](auto&) {}),
            "expert_offsets, row_experts: both null; contiguous groups need one of the two");
  EXPECT_EQ(quantize(p, data.buffers(), {.threads = -1}).argument(), "threads");
  EXPECT_EQ(quantize(p, data.buffers(), {.device = static_cast<DeviceKind>(7)}).argument(),
            "device");
}

// What a GPU cannot look at: the host's copy of the numbers alone.
TEST(QuantizeTensor, ValidateReadsTheNumbersOfGroups) {
  QuantizeProblem p{.rows = 5, .cols = 48, .l = 2};
  const auto message = [&](const RowGroupArrays& groups) { return validate(p, groups).message(); };
  const int32_t falling[] = {0, 6, 5}, good[] = {0, 3, 5}, rows[] = {5, 0, -1, 9, 1};
  EXPECT_EQ(message({}), "ok");
  EXPECT_EQ(message({.expert_offsets = good}),
            "expert_offsets: not null; must be null unless grouping is contiguous");
  p.grouping = Grouping::kContiguous;
  EXPECT_EQ(message({.expert_offsets = good}), "ok");
  EXPECT_EQ(message({.row_experts = rows}), "ok") << "a row that names no expert is skipped";
  EXPECT_EQ(message({.expert_offsets = falling}),
            "expert_offsets[2]: 5; must not be below the offset before it, 6");
  EXPECT_EQ(message({.expert_offsets = good, .row_experts = rows}),
            "expert_offsets, row_experts: both given; contiguous groups need one of the two");
  p.grouping = Grouping::kMasked;
  EXPECT_EQ(message({.expert_rows = rows}), "ok");
  EXPECT_EQ(message({.expert_rows = rows + 2}), "expert_rows[0]: -1; must be 0 .. m = 5");
  EXPECT_EQ(message({.expert_rows = rows + 3}), "expert_rows[0]: 9; must be 0 .. m = 5");
  EXPECT_EQ(message({}), "expert_rows: null; is required");
  p.cols = 40;
  EXPECT_EQ(message({.expert_rows = rows}), "cols: 40; must be a multiple of 16");
}

TEST(QuantizeTensor, ConversionsRefuseWhatBreaksARule) {
  std::vector<uint8_t> src(64), dst(1024);
  const auto message = [&](const ScaleConversion& c, uint8_t* to) {
    return convert_scales(c, src.data(), to).message();
  };
  EXPECT_EQ(message({.rows = -1, .sf_cols = 4}, dst.data()), "rows: -1; must not be negative");
  EXPECT_EQ(message({.rows = 2, .sf_cols = 4, .from = {.ld = 3}}, dst.data()),
            "from.ld: 3; must be at least the row's 4");
  EXPECT_EQ(message({.rows = 2, .sf_cols = 4, .l = 2, .to = {.batch_stride = 7}}, dst.data()),
            "to.batch_stride: 7; must be at least 8 (one batch), or 0 for tight");
  EXPECT_EQ(message({.rows = 2, .sf_cols = 4}, nullptr), "dst: null; needs 8 bytes");
  EXPECT_EQ(message({.rows = 2, .sf_cols = 4}, src.data()),
            "dst: overlaps src; must not overlap what is read or written beside it");
  EXPECT_EQ(message({.rows = kLargest, .sf_cols = 4}, dst.data()).substr(0, 6), "from.l");
}

}  // namespace
}  // namespace dualgemm::test
