// Quantised checkpoints, their error statistics, and derived figures.
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {
namespace {

checkpoint::TensorFile file_with(const std::string& name, std::vector<int64_t> shape,
                                 const std::vector<float>& values) {
  checkpoint::TensorFile file;
  const Status status = file.add_copy(name, checkpoint::ElementType::kF32, std::move(shape),
                                      values.data(), values.size() * 4);
  EXPECT_TRUE(status.ok()) << status.message();
  return file;
}

std::vector<float> normal(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  EXPECT_TRUE(verify::random_normal(DataType::kF32, count, 1.0, 0, 1.0, 4, values.data()).ok());
  return values;
}

TEST(QuantizationError, CountsByHand) {
  // Scale 1, global 1: codes 6, 6, -0.5, 0 ... for 6, 7 (clipped), -0.6, 0.1 (to zero), 0 ...
  float x[16] = {6.0f, 7.0f, -0.6f, 0.1f};
  const uint8_t codes[8] = {0x77, 0x09};
  const uint8_t scale = 0x38;
  const auto error =
      quantization_error(x, DataType::kF32, 1, 16, 0, codes, &scale, ScaleLayout::kLinear, 1.0f);
  ASSERT_TRUE(error.ok()) << error.status().message();
  EXPECT_EQ(error->values, 16);
  EXPECT_EQ(error->clipped, 1);
  EXPECT_EQ(error->became_zero, 1);
  EXPECT_EQ(error->zero_blocks, 0);
  EXPECT_DOUBLE_EQ(error->max_abs, 1.0);
  EXPECT_DOUBLE_EQ(error->amax, 7.0);
  const double tenth = std::abs(0.5 - double{0.6f}), small = double{0.1f};
  EXPECT_NEAR(error->rel_l2,
              std::sqrt((1 + tenth * tenth + small * small) / (36 + 49 + 0.36 + 0.01)), 1e-7);
  EXPECT_NEAR(error->snr_db, -20 * std::log10(error->rel_l2), 1e-9);
  EXPECT_NEAR(error->mean_abs, (1 + tenth + small) / 16, 1e-9);
}

TEST(QuantizationError, ExactAndZeroTensors) {
  const float zeros[16] = {};
  const uint8_t codes[8] = {}, scale = 0;
  const auto error = quantization_error(zeros, DataType::kF32, 1, 16, 0, codes, &scale,
                                        ScaleLayout::kLinear, 1.0f);
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(error->rel_l2, 0.0);
  EXPECT_TRUE(std::isinf(error->snr_db));
  EXPECT_EQ(error->zero_blocks, 0);
}

TEST(QuantizationError, DoesNotDependOnThreadsOrLayout) {
  const std::vector<float> x = normal(40 * 64);
  std::vector<uint8_t> codes(40 * 32), linear(40 * 4), swizzled(512);
  QuantizeOptions options;
  const auto g =
      quantize_nvfp4(x.data(), DataType::kF32, 40, 64, 0, codes.data(), 0, linear.data(), options);
  ASSERT_TRUE(g.ok());
  ASSERT_TRUE(convert_scale_layout(linear.data(), ScaleLayout::kLinear, 0, swizzled.data(),
                                   ScaleLayout::kSwizzled128x4, 0, 40, 4)
                  .ok());
  const auto one = quantization_error(x.data(), DataType::kF32, 40, 64, 0, codes.data(),
                                      linear.data(), ScaleLayout::kLinear, *g, 1);
  const auto two = quantization_error(x.data(), DataType::kF32, 40, 64, 0, codes.data(),
                                      swizzled.data(), ScaleLayout::kSwizzled128x4, *g, 3);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->rel_l2, two->rel_l2);
  EXPECT_EQ(one->mean_abs, two->mean_abs);
  EXPECT_EQ(one->clipped, two->clipped);
  EXPECT_LT(one->rel_l2, 0.2);
}

TEST(QuantizationError, RefusesBadArguments) {
  const float x[16] = {};
  const uint8_t codes[8] = {}, scale = 0;
  EXPECT_FALSE(
      quantization_error(x, DataType::kE2M1, 1, 16, 0, codes, &scale, ScaleLayout::kLinear, 1.0f)
          .ok());
  EXPECT_FALSE(
      quantization_error(x, DataType::kF32, 1, 15, 0, codes, &scale, ScaleLayout::kLinear, 1.0f)
          .ok());
  EXPECT_FALSE(
      quantization_error(x, DataType::kF32, -1, 16, 0, codes, &scale, ScaleLayout::kLinear, 1.0f)
          .ok());
  EXPECT_FALSE(
      quantization_error(x, DataType::kF32, 1, 16, 8, codes, &scale, ScaleLayout::kLinear, 1.0f)
          .ok());
}

TEST(QuantizeCheckpoint, SelectsQuantisesAndCopies) {
  checkpoint::TensorFile in = file_with("a.gate_proj.weight", {32, 64}, normal(32 * 64));
  const std::vector<float> bias(32, 1.0f), odd = normal(8 * 24);
  ASSERT_TRUE(
      in.add_copy("a.gate_proj.bias", checkpoint::ElementType::kF32, {32}, bias.data(), 128).ok());
  ASSERT_TRUE(
      in.add_copy("odd.weight", checkpoint::ElementType::kF32, {8, 24}, odd.data(), 768).ok());
  in.metadata()["format"] = "pt";
  QuantizeCheckpointOptions options;
  options.measure_error = true;
  QuantizeCheckpointReport report;
  const auto out = quantize_checkpoint(in, options, &report);
  ASSERT_TRUE(out.ok()) << out.status().message();
  ASSERT_EQ(report.quantized.size(), 1u);
  EXPECT_EQ(report.quantized[0].module, "a.gate_proj");
  EXPECT_TRUE(report.quantized[0].error.has_value());
  EXPECT_EQ(report.copied, (std::vector<std::string>{"a.gate_proj.bias", "odd.weight"}));
  EXPECT_EQ(out->metadata().at("format"), "pt");
  const auto weight = checkpoint::load_weight(*out, "a.gate_proj");
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight->n, 32);
  EXPECT_EQ(weight->k, 64);
  EXPECT_TRUE(weight->dequant_input_scales.empty());
}

TEST(QuantizeCheckpoint, MatchesTheQuantiserInEveryConvention) {
  const std::vector<float> x = normal(32 * 64);
  std::vector<uint8_t> codes(32 * 32), scales(32 * 4);
  const auto global =
      quantize_nvfp4(x.data(), DataType::kF32, 32, 64, 0, codes.data(), 0, scales.data());
  ASSERT_TRUE(global.ok());
  const checkpoint::TensorFile in = file_with("w.weight", {32, 64}, x);
  for (const checkpoint::Convention convention :
       {checkpoint::Convention::kModelOpt, checkpoint::Convention::kCompressedTensors,
        checkpoint::Convention::kGgml}) {
    QuantizeCheckpointOptions options;
    options.convention = convention;
    const auto out = quantize_checkpoint(in, options);
    ASSERT_TRUE(out.ok()) << out.status().message();
    const auto weight = checkpoint::load_weight(*out, "w");
    ASSERT_TRUE(weight.ok()) << weight.status().message();
    EXPECT_EQ(weight->convention, convention);
    ASSERT_EQ(weight->dequant_global_scales.size(), 1u);
    EXPECT_NEAR(weight->dequant_global_scales[0], *global, *global * 0x1p-22f);
    if (convention == checkpoint::Convention::kGgml) continue;
    EXPECT_EQ(std::memcmp(weight->data.data(), codes.data(), codes.size()), 0);
    EXPECT_EQ(std::memcmp(weight->scales.data(), scales.data(), scales.size()), 0);
  }
}

TEST(QuantizeCheckpoint, CalibrationGivesTheInputScaleWhereKFits) {
  checkpoint::TensorFile in = file_with("w.weight", {16, 64}, normal(16 * 64));
  const std::vector<float> other = normal(16 * 32);
  ASSERT_TRUE(in.add_copy("v.weight", checkpoint::ElementType::kF32, {16, 32}, other.data(),
                          other.size() * 4)
                  .ok());
  std::vector<float> activations(3 * 64, 0.5f);
  activations[70] = -1344.0f;  // amax: 1344 / 2688 = 0.5
  const checkpoint::TensorFile calibration = file_with("x", {3, 64}, activations);
  QuantizeCheckpointOptions options;
  options.calibrations = {{*calibration.find("x"), "x.npy"}};
  const auto out = quantize_checkpoint(in, options);
  ASSERT_TRUE(out.ok()) << out.status().message();
  const auto fits = checkpoint::load_weight(*out, "w"),
             does_not = checkpoint::load_weight(*out, "v");
  ASSERT_TRUE(fits.ok() && does_not.ok());
  EXPECT_EQ(fits->dequant_input_scales, std::vector<float>{0.5f});
  EXPECT_TRUE(does_not->dequant_input_scales.empty());
}

TEST(QuantizeCheckpoint, Refusals) {
  const checkpoint::TensorFile in = file_with("w.weight", {2, 48}, normal(2 * 48));
  QuantizeCheckpointOptions options;
  options.convention = checkpoint::Convention::kPlain;
  EXPECT_FALSE(quantize_checkpoint(in, options).ok());
  options.convention = checkpoint::Convention::kGgml;  // 48 is no multiple of 64
  EXPECT_FALSE(quantize_checkpoint(in, options).ok());
  options = {};
  options.prefix = "nothing.";
  EXPECT_EQ(quantize_checkpoint(in, options).status().code(), StatusCode::kNotFound);
  options = {};
  options.tensors = {"w.wieght"};
  EXPECT_EQ(quantize_checkpoint(in, options).status().code(), StatusCode::kNotFound);
  std::vector<float> bad = normal(2 * 48);
  bad[50] = INFINITY;
  const auto refused = quantize_checkpoint(file_with("w.weight", {2, 48}, bad), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("w.weight"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace dualgemm::checkpoint
