#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

// The same names with the same contents, metadata aside.
void expect_same_tensors(const TensorFile& a, const TensorFile& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) {
    const TensorView* other = b.find(name);
    ASSERT_NE(other, nullptr) << name;
    EXPECT_EQ(other->dtype, tensor.dtype) << name;
    EXPECT_EQ(other->shape, tensor.shape) << name;
    EXPECT_EQ(test::to_text(other->data), test::to_text(tensor.data)) << name;
  }
}

class ConvertTest : public ::testing::Test {
 protected:
  ConvertTest() {
    add_modelopt(file_, "m.gate_proj", gate_, {0.5f}, 0.25f);
    add_modelopt(file_, "m.up_proj", up_, {2.0f}, 0.25f);
    add_scalar(file_, "m.norm.weight", 3.0f, {1});
    // 4-bit integers of another method: the names are alike, the dtypes are not.
    EXPECT_TRUE(add_bytes(file_, "i4.weight_packed", ElementType::kI32, {1}, std::vector{7}).ok());
    EXPECT_TRUE(
        add_bytes(file_, "i4.weight_scale", ElementType::kF32, {1}, std::vector{7.0f}).ok());
    EXPECT_TRUE(
        add_bytes(file_, "bytes.weight", ElementType::kU8, {1, 36}, std::vector<uint8_t>(36)).ok());
    file_.metadata()["format"] = "pt";
  }
  static TensorFile convert(const TensorFile& in, const ConvertOptions& options) {
    Expected<TensorFile> out = convert_checkpoint(in, options);
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out ? *std::move(out) : TensorFile();
  }
  void expect_values(const TensorFile& file) {
    Expected<MlpLayer> layer = load_mlp_layer(file, "m");
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
    EXPECT_EQ(decode(*layer, layer->up), decode(up_, 2.0));
    EXPECT_EQ(layer->dequant_input_scale, 0.25f);
    ASSERT_TRUE(make_runnable(*layer).ok());
    EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
    EXPECT_EQ(file.metadata().at("format"), "pt");
    for (const char* name :
         {"m.norm.weight", "i4.weight_packed", "i4.weight_scale", "bytes.weight"}) {
      EXPECT_EQ(file.find(name)->data.data(), file_.find(name)->data.data()) << name;  // untouched
    }
  }
  test::Rng rng_;
  RawWeight gate_{130, 64, rng_}, up_{130, 64, rng_};
  TensorFile file_;
};

TEST_F(ConvertTest, EveryPairOfFormsRoundTrips) {
  std::vector<ConvertOptions> forms;
  for (const Convention convention : {Convention::kModelOpt, Convention::kCompressedTensors}) {
    for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
      for (const NibbleOrder order : {NibbleOrder::kLowEven, NibbleOrder::kHighEven}) {
        forms.push_back({{}, convention, layout, order});
      }
    }
  }
  forms.push_back({{}, Convention::kGgml, {}, {}});
  for (const ConvertOptions& first : forms) {
    const TensorFile once = convert(file_, first);
    expect_values(once);
    for (const ConvertOptions& second : forms) {
      const TensorFile twice = convert(once, second);
      expect_values(twice);
      expect_same_tensors(convert(twice, forms[0]), file_);  // powers of two invert exactly
      expect_same_tensors(twice, convert(file_, second));
    }
  }
}

TEST_F(ConvertTest, SwizzledPaddingIsZero) {
  ConvertOptions options;
  options.scale_layout = ScaleLayout::kSwizzled128x4;
  const TensorFile out = convert(file_, options);
  const TensorView scales = *out.get("m.gate_proj.weight_scale");
  EXPECT_EQ(scales.shape, (std::vector<int64_t>{256, 4}));
  std::vector<uint8_t> expected(1024, 0);
  for (int64_t row = 0; row < 130; ++row) {
    for (int64_t col = 0; col < 4; ++col) {
      expected[scale_offset(ScaleLayout::kSwizzled128x4, row, col, 4)] =
          gate_.scales[scale_offset(ScaleLayout::kLinear, row, col, 4)];
    }
  }
  EXPECT_EQ(std::vector<uint8_t>(scales.bytes().begin(), scales.bytes().end()), expected);
  EXPECT_EQ(out.metadata().at(kScaleLayoutKey), "swizzled_128x4");
}

TEST_F(ConvertTest, NothingToChangePassesTensorsThrough) {
  ConvertReport report;
  const Expected<TensorFile> out = convert_checkpoint(file_, {}, &report);
  ASSERT_TRUE(out.ok());
  expect_same_tensors(*out, file_);
  EXPECT_EQ(report.weights_converted, 2);
  EXPECT_EQ(report.tensors_copied, 12);
  EXPECT_EQ(out->find("m.up_proj.weight")->data.data(),
            file_.find("m.up_proj.weight")->data.data());
}

TEST_F(ConvertTest, ModelOptToCompressedTensorsRenamesAndInverts) {
  ConvertOptions options;
  options.convention = Convention::kCompressedTensors;
  const TensorFile out = convert(file_, options);
  EXPECT_FALSE(out.contains("m.gate_proj.weight"));
  EXPECT_FALSE(out.contains("m.gate_proj.weight_scale_2"));
  const auto scalar = [&](const char* name) { return load_element<float>(out.get(name)->data, 0); };
  EXPECT_EQ(scalar("m.gate_proj.weight_global_scale"), 2.0f);
  EXPECT_EQ(scalar("m.up_proj.weight_global_scale"), 0.5f);
  EXPECT_EQ(scalar("m.up_proj.input_global_scale"), 4.0f);
  EXPECT_EQ(out.get("m.up_proj.weight_global_scale")->shape, std::vector<int64_t>{1});
}

TEST_F(ConvertTest, GgmlBlocksHoldThePermutedBytes) {
  const TensorFile out = convert(file_, {{}, Convention::kGgml, {}, {}});
  const TensorView blocks = *out.get("m.gate_proj.weight");
  EXPECT_EQ(blocks.shape, (std::vector<int64_t>{130, 36}));
  EXPECT_FALSE(out.contains("m.gate_proj.weight_scale"));
  EXPECT_EQ(out.metadata().at(kConventionKey), "ggml");
  for (int64_t row = 0; row < 130; ++row) {
    const std::span<const uint8_t> block =
        blocks.bytes().subspan(static_cast<size_t>(row * 36), 36);
    for (int64_t k = 0; k < 64; ++k) {
      EXPECT_EQ(block[static_cast<size_t>(k / 16)],
                gate_.scales[static_cast<size_t>(row * 4 + k / 16)]);
      const uint8_t byte = block[static_cast<size_t>(4 + k / 16 * 8 + k % 8)];
      const uint8_t source = gate_.codes[static_cast<size_t>(row * 32 + k / 2)];
      EXPECT_EQ(k % 16 < 8 ? byte & 15 : byte >> 4, k % 2 == 0 ? source & 15 : source >> 4);
    }
  }
}

TEST_F(ConvertTest, ForeignGgmlNeedsToBeNamed) {
  TensorFile file;
  const TensorFile ggml = convert(file_, {{}, Convention::kGgml, {}, {}});
  ASSERT_TRUE(file.add(*ggml.get("m.gate_proj.weight")).ok());
  ASSERT_TRUE(file.add(*ggml.get("m.up_proj.weight")).ok());
  EXPECT_TRUE(
      fails_with(load_mlp_layer(file, "m").status(), StatusCode::kNotFound, "weight_scale"));
  ConvertReport report;
  ASSERT_TRUE(convert_checkpoint(file, {}, &report).ok());
  EXPECT_EQ(report.weights_converted, 0);
  LayerOptions options;
  options.weight.convention = Convention::kGgml;
  const Expected<MlpLayer> layer = load_mlp_layer(file, "m", options);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 1.0));  // no global scale: 1
  const TensorFile out = convert(file, {options.weight, Convention::kModelOpt, {}, {}});
  EXPECT_EQ(test::to_text(out.get("m.up_proj.weight_scale")->data),
            test::to_text(file_.get("m.up_proj.weight_scale")->data));
}

TEST_F(ConvertTest, StackedKeepsBothGlobalScales) {
  TensorFile file;
  add_compressed(file, "m.gate_up_proj", gate_, {2.0f, 4.0f}, 8.0f);
  const TensorFile out = convert(file, {{}, Convention::kModelOpt, {}, {}});
  const TensorView scales = *out.get("m.gate_up_proj.weight_scale_2");
  EXPECT_EQ(scales.shape, std::vector<int64_t>{2});
  EXPECT_EQ(load_element<float>(scales.data, 0), 0.5f);
  EXPECT_EQ(load_element<float>(scales.data, 1), 0.25f);
}

TEST_F(ConvertTest, ImpossibleConversionsSaySo) {
  EXPECT_TRUE(fails_with(convert_checkpoint(file_, {{}, Convention::kPlain, {}, {}}).status(),
                         StatusCode::kUnsupported, "plain"));
  TensorFile narrow, nan;
  add_modelopt(narrow, "m", RawWeight(1, 48, rng_), {1.0f}, 0.0f);
  EXPECT_TRUE(fails_with(convert_checkpoint(narrow, {{}, Convention::kGgml, {}, {}}).status(),
                         StatusCode::kUnsupported, "k = 48"));
  RawWeight with_nan(1, 64, rng_);
  with_nan.scales[2] = 0x7F;
  add_modelopt(nan, "m", with_nan, {1.0f}, 0.0f);
  EXPECT_FALSE(convert_checkpoint(nan, {{}, Convention::kGgml, {}, {}}).ok());
  TensorFile broken = file_;
  broken.erase("m.up_proj.weight_scale_2");
  EXPECT_TRUE(
      fails_with(convert_checkpoint(broken, {}).status(), StatusCode::kNotFound, "weight_scale_2"));
  TensorFile bad_metadata = file_;
  bad_metadata.metadata()[kConventionKey] = "gguf";
  EXPECT_TRUE(fails_with(convert_checkpoint(bad_metadata, {}).status(), StatusCode::kCorruptFile,
                         "dualgemm.convention"));
}

TEST_F(ConvertTest, ResultOutlivesItsInput) {
  const test::TempDirectory directory;
  ASSERT_TRUE(write_safetensors(directory / "f", file_).ok());
  Expected<TensorFile> out = convert_checkpoint(*open_safetensors(directory / "f"),
                                                {{}, Convention::kCompressedTensors, {}, {}});
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(write_safetensors(directory / "f", *out).ok());
  const Expected<MlpLayer> layer = load_mlp_layer(*open_safetensors(directory / "f"), "m");
  ASSERT_TRUE(layer.ok());
  EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
}

}  // namespace
}  // namespace dualgemm::checkpoint
