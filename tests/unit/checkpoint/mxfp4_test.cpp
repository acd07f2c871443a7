// MXFP4: exactly the values of its codes and powers of two, as NVFP4; gpt-oss's experts, whose rows
// of Gate and Up alternate; what is no MXFP4.
#include "checkpoint/mxfp4.hpp"

#include <gtest/gtest.h>

#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

// Codes and E8M0 exponents of an n x k matrix.
struct MxMatrix {
  int64_t n, k;
  std::vector<uint8_t> codes, exponents;

  MxMatrix(int64_t n_, int64_t k_, int least, int span, test::Rng& rng)
      : n(n_),
        k(k_),
        codes(static_cast<size_t>(n * k / 2)),
        exponents(static_cast<size_t>(n * k / 32)) {
    for (uint8_t& code : codes) code = rng.byte();
    for (uint8_t& exponent : exponents)
      exponent = static_cast<uint8_t>(least + rng.integer(0, span));
    exponents.front() = static_cast<uint8_t>(least);
    exponents.back() = static_cast<uint8_t>(least + span);
    codes.front() = codes.back() = 0x11;  // blocks that count
  }
  double value(int64_t row, int64_t col) const {
    const uint8_t byte = codes[static_cast<size_t>(row * (k / 2) + col / 2)];
    return e2m1_value(col % 2 == 1 ? byte >> 4 : byte & 15) *
           std::ldexp(1.0, exponents[static_cast<size_t>(row * (k / 32) + col / 32)] - 127);
  }
};

TEST(Mxfp4, EverySpanIsExactAndWhatLiesFurtherApartIsRefused) {
  test::Rng rng(11);
  for (const int least : {0, 1, 5, 60, 118, 127, 200, 237}) {
    for (int span = 0; span <= 18 && least + span <= 254; ++span) {
      const MxMatrix matrix(6, 96, least, span, rng);
      const Expected<MxScales> found =
          scales_of_mxfp4(matrix.codes, matrix.exponents, 6, 96, false, "t");
      if (span > kMostMxSpan) {
        EXPECT_TRUE(fails_with(found.status(), StatusCode::kUnsupported, "to be exact as NVFP4"));
        continue;
      }
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_TRUE(std::isnormal(found->global_scale));
      const std::vector<double> values =
          decode(matrix.codes.data(), found->scales.data(), ScaleLayout::kLinear,
                 NibbleOrder::kLowEven, 6, 96, found->global_scale);
      for (int64_t row = 0; row < 6; ++row) {
        for (int64_t col = 0; col < 96; ++col)
          ASSERT_EQ(values[static_cast<size_t>(row * 96 + col)], matrix.value(row, col))
              << least << " + " << span << " at " << row << ", " << col;
      }
    }
  }
}

TEST(Mxfp4, BlocksOfZerosDoNotCount) {
  test::Rng rng(12);
  MxMatrix matrix(2, 64, 120, 3, rng);
  std::fill_n(matrix.codes.begin() + 16, 16, uint8_t{0x80});  // +0 and -0
  for (const int far : {0, 254}) {
    matrix.exponents[1] = static_cast<uint8_t>(far);
    EXPECT_TRUE(scales_of_mxfp4(matrix.codes, matrix.exponents, 2, 64, false, "t").ok()) << far;
  }
  matrix.codes[20] = 0x10;
  EXPECT_FALSE(scales_of_mxfp4(matrix.codes, matrix.exponents, 2, 64, false, "t").ok());
  const std::vector<uint8_t> zeros(32), exponents{7, 250};
  EXPECT_EQ(scales_of_mxfp4(zeros, exponents, 1, 64, false, "t")->global_scale, 1.0f);
}

TEST(Mxfp4, NanIsNamed) {
  test::Rng rng(13);
  MxMatrix matrix(3, 64, 120, 3, rng);
  matrix.exponents[3] = 255;
  EXPECT_TRUE(
      fails_with(scales_of_mxfp4(matrix.codes, matrix.exponents, 3, 64, false, "t").status(),
                 StatusCode::kCorruptFile, "NaN at row 1, block 1"));
  const auto allowed = scales_of_mxfp4(matrix.codes, matrix.exponents, 3, 64, true, "t");
  ASSERT_TRUE(allowed.ok());
  EXPECT_EQ(allowed->scales[6], 0x7F);
  EXPECT_EQ(allowed->scales[7], 0x7F);
}

class GptOss : public ::testing::Test {
 protected:
  static constexpr int64_t kExperts = 3, kN = 40, kK = 64;

  GptOss() {
    for (int64_t e = 0; e < kExperts; ++e) {
      gate_up_.emplace_back(2 * kN, kK, 110 + static_cast<int>(e), 9, rng_);
      down_.emplace_back(kK, 96, 115, 4, rng_);
    }
    add("m.experts.gate_up_proj", gate_up_, 2 * kN, kK);
    add("m.experts.down_proj", down_, kK, 96);
    for (int64_t i = 0; i < kExperts * 2 * kN; ++i) bias_.push_back(static_cast<float>(i + 1));
    EXPECT_TRUE(add_bytes(file_, "m.experts.gate_up_proj_bias", ElementType::kF32,
                          {kExperts, 2 * kN}, bias_)
                    .ok());
  }
  void add(const std::string& name, const std::vector<MxMatrix>& experts, int64_t n, int64_t k) {
    std::vector<uint8_t> codes, exponents;
    for (const MxMatrix& one : experts) {
      codes.insert(codes.end(), one.codes.begin(), one.codes.end());
      exponents.insert(exponents.end(), one.exponents.begin(), one.exponents.end());
    }
    EXPECT_TRUE(
        add_bytes(file_, name + "_blocks", ElementType::kU8, {kExperts, n, k / 32, 16}, codes)
            .ok());
    EXPECT_TRUE(
        add_bytes(file_, name + "_scales", ElementType::kU8, {kExperts, n, k / 32}, exponents)
            .ok());
  }
  // The file with another tensor in the place of `name`.
  TensorFile with(const std::string& name, ElementType type, std::vector<int64_t> shape) const {
    TensorFile changed = file_;
    changed.erase(name);
    int64_t bytes = 1;
    for (const int64_t extent : shape) bytes *= extent;
    EXPECT_TRUE(add_bytes(changed, name, type, std::move(shape),
                          std::vector<uint8_t>(static_cast<size_t>(bytes)))
                    .ok());
    return changed;
  }
  static LayerOptions expert(int64_t number) {
    LayerOptions options;
    options.expert = number;
    return options;
  }

  test::Rng rng_{14};
  std::vector<MxMatrix> gate_up_, down_;
  std::vector<float> bias_;
  TensorFile file_;
};

TEST_F(GptOss, RowsOfGateAndUpAlternate) {
  EXPECT_EQ(list_mlp_layers(file_), (std::vector<LayerEntry>{{"m.experts", kExperts}}));
  for (int64_t e = 0; e < kExperts; ++e) {
    const Expected<MlpLayer> layer = load_mlp_layer(file_, "m", expert(e));
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_TRUE(check_runnable(*layer).ok());
    EXPECT_TRUE(layer->from_mxfp4);
    ASSERT_EQ(layer->n, kN);
    ASSERT_EQ(layer->k, kK);
    const std::vector<double> gate = decode(*layer, layer->gate), up = decode(*layer, layer->up);
    const MxMatrix& stored = gate_up_[static_cast<size_t>(e)];
    for (int64_t row = 0; row < kN; ++row) {
      for (int64_t col = 0; col < kK; ++col) {
        const auto at = static_cast<size_t>(row * kK + col);
        ASSERT_EQ(gate[at], stored.value(2 * row, col));
        ASSERT_EQ(up[at], stored.value(2 * row + 1, col));
      }
      const auto first = static_cast<size_t>(e * 2 * kN + 2 * row);
      EXPECT_EQ(layer->gate_bias[static_cast<size_t>(row)], bias_[first]);
      EXPECT_EQ(layer->up_bias[static_cast<size_t>(row)], bias_[first + 1]);
    }
    const Expected<DownProjection> down = load_down_projection(file_, "m", expert(e));
    ASSERT_TRUE(down.ok()) << down.status().message();
    const std::vector<double> values =
        decode(down->down.codes(), down->down.scales.data(), down->scale_layout, down->nibble_order,
               kK, 96, down->down.dequant_global_scale);
    ASSERT_EQ(values[5 * 96 + 7], down_[static_cast<size_t>(e)].value(5, 7));
  }
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, "m", expert(3)).status(),
                         StatusCode::kInvalidArgument, "numbered from 0"));
}

TEST_F(GptOss, WhatIsWrongIsNamed) {
  const auto refused = [&](const TensorFile& file, StatusCode code, const char* part) {
    EXPECT_TRUE(fails_with(load_mlp_layer(file, "m", expert(1)).status(), code, part));
  };
  const StatusCode corrupt = StatusCode::kCorruptFile;
  const std::string scales = "m.experts.gate_up_proj_scales",
                    blocks = "m.experts.gate_up_proj_blocks";
  TensorFile missing = file_;
  missing.erase(scales);
  refused(missing, StatusCode::kNotFound, "gate_up_proj_scales");
  refused(with(scales, ElementType::kU8, {kExperts, 2 * kN, 3}), corrupt,
          "U8 or F8_E8M0 [3, 80, 2]");
  refused(with(scales, ElementType::kI8, {kExperts, 2 * kN, 2}), corrupt, "U8 or F8_E8M0");
  refused(with(scales, ElementType::kU8, {2, 2 * kN, 2}), corrupt, "[3, 80, 2]");
  refused(with(blocks, ElementType::kU8, {kExperts, 2 * kN, 4, 8}), corrupt, "blocks of 16 bytes");
  refused(with(blocks, ElementType::kI8, {kExperts, 2 * kN, 2, 16}), corrupt, "U8 blocks");
  refused(with("m.experts.gate_up_proj_bias", ElementType::kU8, {kExperts, kN}), corrupt,
          "[3, 80]");
  TensorFile nan = file_;
  nan.erase(scales);
  std::vector<uint8_t> exponents(kExperts * 2 * kN * 2, 120);
  exponents[2 * kN * 2 + 5] = 255;  // of expert 1, row 2, block 1
  ASSERT_TRUE(add_bytes(nan, scales, ElementType::kF8E8M0, {kExperts, 2 * kN, 2}, exponents).ok());
  refused(nan, corrupt, "expert 1, gate: NaN at row 1, block 1");
  EXPECT_TRUE(load_mlp_layer(nan, "m", expert(0)).ok());
  exponents[2 * kN * 2 + 5] = 200;
  nan.erase(scales);
  ASSERT_TRUE(add_bytes(nan, scales, ElementType::kU8, {kExperts, 2 * kN, 2}, exponents).ok());
  refused(nan, StatusCode::kUnsupported, "exponents from -7 to 73, 80 apart");
  TensorFile without = file_;
  without.erase(blocks);
  EXPECT_EQ(list_mlp_layers(without), (std::vector<LayerEntry>{{"m.experts", 0}}));
  EXPECT_EQ(load_mlp_layer(without, "m.experts", {}).status().code(), StatusCode::kNotFound);
}

// Gate's exponents and Up's lie far apart, each within a span of its own.
TEST_F(GptOss, GateAndUpHaveASpanEach) {
  std::vector<uint8_t> exponents;
  for (int64_t row = 0; row < kExperts * 2 * kN; ++row) {
    for (int64_t block = 0; block < kK / 32; ++block)
      exponents.push_back(static_cast<uint8_t>(row % 2 == 0 ? 100 + block : 140 - block));
  }
  const std::string scales = "m.experts.gate_up_proj_scales";
  file_.erase(scales);
  ASSERT_TRUE(add_bytes(file_, scales, ElementType::kU8, {kExperts, 2 * kN, 2}, exponents).ok());
  const Expected<MlpLayer> layer = load_mlp_layer(file_, "m", expert(2));
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  const std::vector<double> gate = decode(*layer, layer->gate), up = decode(*layer, layer->up);
  MxMatrix stored = gate_up_[2];
  std::copy_n(exponents.end() - 2 * kN * 2, 2 * kN * 2, stored.exponents.begin());
  for (int64_t i = 0; i < kN * kK; ++i) {
    ASSERT_EQ(gate[static_cast<size_t>(i)], stored.value(2 * (i / kK), i % kK)) << i;
    ASSERT_EQ(up[static_cast<size_t>(i)], stored.value(2 * (i / kK) + 1, i % kK)) << i;
  }
}

// compressed-tensors' names and ModelOpt's, as a layer of its own.
TEST(Mxfp4, LinearLayersUnderOtherNames) {
  test::Rng rng(15);
  const MxMatrix matrix(48, 64, 100, 12, rng);
  for (const char* data : {".weight_packed", ".weight"}) {
    TensorFile file;
    ASSERT_TRUE(
        add_bytes(file, std::string("q") + data, ElementType::kU8, {48, 32}, matrix.codes).ok());
    ASSERT_TRUE(
        add_bytes(file, "q.weight_scale", ElementType::kU8, {48, 2}, matrix.exponents).ok());
    const Expected<DownProjection> linear = load_linear(file, "q");
    ASSERT_TRUE(linear.ok()) << linear.status().message();
    const std::vector<double> values =
        decode(linear->down.codes(), linear->down.scales.data(), linear->scale_layout,
               linear->nibble_order, 48, 64, linear->down.dequant_global_scale);
    for (int64_t i = 0; i < 48 * 64; ++i)
      ASSERT_EQ(values[static_cast<size_t>(i)], matrix.value(i / 64, i % 64)) << data;
  }
}

// As Linear layers in other files, beside tensors that NVFP4 has.
TEST(Mxfp4, WhatStandsBesideIsNotOverlooked) {
  test::Rng rng(16);
  const MxMatrix matrix(48, 64, 100, 12, rng);
  TensorFile packed;
  ASSERT_TRUE(add_bytes(packed, "q.weight_packed", ElementType::kU8, {48, 32}, matrix.codes).ok());
  ASSERT_TRUE(
      add_bytes(packed, "q.weight_scale", ElementType::kU8, {48, 2}, matrix.exponents).ok());
  const auto with = [&](const char* name, float value) {
    TensorFile file = packed;
    EXPECT_TRUE(add_bytes(file, name, ElementType::kF32, {1}, std::vector<float>{value}).ok());
    return file;
  };
  const StatusCode corrupt = StatusCode::kCorruptFile;
  EXPECT_TRUE(fails_with(load_linear(with("q.weight_global_scale", 2.0f), "q").status(), corrupt,
                         "MXFP4 has no global scale"));
  EXPECT_TRUE(fails_with(load_linear(with("q.weight", 2.0f), "q").status(), corrupt,
                         "only one of them must exist"));
  EXPECT_TRUE(fails_with(load_linear(with("q.input_global_scale", -1.0f), "q").status(), corrupt,
                         "must be finite and > 0"));
  EXPECT_TRUE(load_linear(with("q.input_global_scale", 0.0f), "q")->unwritten_input_scale);
  EXPECT_TRUE(load_linear(with("q.input_global_scale", 0.0f), "q")->unwritten_input_scale);
  const Expected<DownProjection> linear = load_linear(with("q.input_global_scale", 4.0f), "q");
  ASSERT_TRUE(linear.ok()) << linear.status().message();
  EXPECT_EQ(linear->dequant_input_scale, 0.25f);
}

}  // namespace
}  // namespace dualgemm::checkpoint
