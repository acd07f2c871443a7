// Experts: modules of their own and slices of tensors of three extents; torchao's names; scales in
// other shapes and types; what is refused, and in which words.
#include <gtest/gtest.h>

#include <numeric>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;
using Bytes = std::vector<uint8_t>;

// dst[c][r] = src[r][c]
Bytes transposed(const Bytes& src, int64_t rows, int64_t cols) {
  Bytes dst(src.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c)
      dst[static_cast<size_t>(c * rows + r)] = src[static_cast<size_t>(r * cols + c)];
  }
  return dst;
}

Bytes swizzled(const RawWeight& raw) {
  const int64_t cols = raw.k / 16;
  Bytes bytes(static_cast<size_t>((raw.n + 127) / 128 * ((cols + 3) / 4) * 512), 0xFF);
  for (int64_t row = 0; row < raw.n; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      bytes[scale_offset(ScaleLayout::kSwizzled128x4, row, col, cols)] =
          raw.scales[scale_offset(ScaleLayout::kLinear, row, col, cols)];
    }
  }
  return bytes;
}

void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

class ExpertTest : public ::testing::Test {
 protected:
  static constexpr int64_t kExperts = 3, kN = 6, kK = 96;

  ExpertTest() {
    for (int64_t i = 0; i < kExperts; ++i) {
      both_.emplace_back(2 * kN, kK, rng_);
      globals_.push_back(0.5f + static_cast<float>(i));
    }
  }
  // gate_up_proj as ModelOpt writes Llama-4's: [E, K/2, 2N]; or with K last.
  void add_fused(const std::string& module, bool k_outer, ElementType scale_type) {
    Bytes codes, scales;
    for (const RawWeight& raw : both_) {
      append(codes, k_outer ? transposed(raw.codes, raw.n, kK / 2) : raw.codes);
      append(scales, k_outer ? transposed(raw.scales, raw.n, kK / 16) : raw.scales);
    }
    const auto shape = [&](int64_t k) {
      return k_outer ? std::vector<int64_t>{kExperts, k, 2 * kN}
                     : std::vector<int64_t>{kExperts, 2 * kN, k};
    };
    ASSERT_TRUE(add_bytes(file_, module, ElementType::kU8, shape(kK / 2), codes).ok());
    ASSERT_TRUE(
        add_bytes(file_, module + "_weight_scale", scale_type, shape(kK / 16), scales).ok());
    ASSERT_TRUE(
        add_bytes(file_, module + "_weight_scale_2", ElementType::kF32, {kExperts, 1}, globals_)
            .ok());
    add_scalar(file_, module + "_input_scale", 0.25f);
  }
  // Gate is the upper half of expert `e`, Up the lower.
  void expect_expert(const std::string& prefix, int64_t e) {
    LayerOptions options;
    options.expert = e;
    const Expected<MlpLayer> layer = load_mlp_layer(file_, prefix, options);
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    const auto index = static_cast<size_t>(e);
    std::vector<double> values = decode(*layer, layer->gate);
    const std::vector<double> up = decode(*layer, layer->up);
    values.insert(values.end(), up.begin(), up.end());
    EXPECT_EQ(values, decode(both_[index], double{globals_[index]}));
    EXPECT_EQ(layer->dequant_input_scale, 0.25f);
    EXPECT_TRUE(check_runnable(*layer).ok());
  }

  test::Rng rng_;
  std::vector<RawWeight> both_;
  std::vector<float> globals_;
  TensorFile file_;
};

TEST_F(ExpertTest, SlicesOfFusedTensors) {
  for (const bool k_outer : {true, false}) {
    for (const ElementType type : {ElementType::kF8E4M3, ElementType::kU8}) {
      SCOPED_TRACE(testing::Message() << k_outer << " " << name_of(type));
      file_ = {};
      add_fused("model.layers.0.mlp.experts.gate_up_proj", k_outer, type);
      for (int64_t e = 0; e < kExperts; ++e) {
        expect_expert("model.layers.0.mlp.experts", e);
        expect_expert("model.layers.0.mlp", e);
        expect_expert("model.layers.0", e);
      }
      EXPECT_EQ(list_mlp_layers(file_),
                (std::vector<LayerEntry>{{"model.layers.0.mlp.experts", kExperts}}));
      EXPECT_EQ(*count_experts(file_, "model.layers.0.mlp"), kExperts);
    }
  }
}

TEST_F(ExpertTest, OneOfThemMustBeNamed) {
  add_fused("x.experts.gate_up_proj", true, ElementType::kF8E4M3);
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, "x.experts").status(), StatusCode::kInvalidArgument,
                         "--expert 0"));
  EXPECT_TRUE(
      fails_with(load_mlp_layer(file_, "x").status(), StatusCode::kNotFound, "3 experts in"));
  LayerOptions options;
  for (const int64_t e : {int64_t{-1}, kExperts, int64_t{1} << 62}) {
    options.expert = e;
    EXPECT_TRUE(fails_with(load_mlp_layer(file_, "x", options).status(),
                           StatusCode::kInvalidArgument, "has 3 experts, numbered from 0"));
  }
  options.expert = 0;
  EXPECT_TRUE(
      fails_with(load_mlp_layer(file_, "y", options).status(), StatusCode::kNotFound, "x.experts"));
  EXPECT_TRUE(fails_with(count_experts({}, "y").status(), StatusCode::kNotFound,
                         "no layer of this file has experts"));
}

TEST_F(ExpertTest, MixtralModules) {
  const std::string experts = "model.layers.0.block_sparse_moe.experts";
  for (int64_t e = 0; e < 2; ++e) {
    const std::string at = experts + "." + std::to_string(e);
    add_modelopt(file_, at + ".w1", both_[0], {1.0f + static_cast<float>(e)}, 0.5f);
    add_modelopt(file_, at + ".w3", both_[1], {2.0f}, 0.5f);
    add_modelopt(file_, at + ".w2", both_[2], {3.0f}, 0.5f);
  }
  EXPECT_EQ(list_mlp_layers(file_),
            (std::vector<LayerEntry>{{experts + ".0", 0}, {experts + ".1", 0}}));
  EXPECT_EQ(list_expert_layers(file_), (std::vector<std::string>{experts}));
  LayerOptions options;
  options.expert = 1;
  for (const char* prefix : {"model.layers.0", "model.layers.0.block_sparse_moe",
                             "model.layers.0.block_sparse_moe.experts"}) {
    const Expected<MlpLayer> layer = load_mlp_layer(file_, prefix, options);
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(decode(*layer, layer->gate), decode(both_[0], 2.0));
    EXPECT_EQ(decode(*layer, layer->up), decode(both_[1], 2.0));
  }
  EXPECT_EQ(*count_experts(file_, "model.layers.0"), 2);
}

TEST_F(ExpertTest, Biases) {
  using Floats = std::vector<float>;
  add_modelopt(file_, "m.gate_proj", both_[0], {1.0f}, 0.0f);
  add_modelopt(file_, "m.up_proj", both_[1], {1.0f}, 0.0f);
  const auto add = [this](const char* name, std::vector<int64_t> shape, const Floats& values) {
    file_.erase(name);
    ASSERT_TRUE(add_bytes(file_, name, ElementType::kF32, std::move(shape), values).ok());
  };
  Floats bias(2 * kN, -0.0f);
  add("m.up_proj.bias", {2 * kN}, bias);
  EXPECT_TRUE(load_mlp_layer(file_, "m")->gate_bias.empty()) << "zeros";
  bias.back() = 0.125f;
  add("m.gate_proj.bias", {2 * kN}, bias);
  const Expected<MlpLayer> layer = load_mlp_layer(file_, "m");
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_TRUE(check_runnable(*layer).ok());
  EXPECT_EQ(layer->gate_bias, bias);
  EXPECT_EQ(layer->up_bias, Floats(2 * kN));
  add("m.gate_proj.bias", {kN, 2}, bias);
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, "m").status(), StatusCode::kCorruptFile,
                         "m.gate_proj.bias"));
}

TEST_F(ExpertTest, BiasesOfStackedAndFusedTensors) {
  add_fused("x.experts.gate_up_proj", false, ElementType::kF8E4M3);
  std::vector<float> bias;
  for (int i = 0; i < kExperts * 2 * kN; ++i) bias.push_back(static_cast<float>(i + 1));
  ASSERT_TRUE(
      add_bytes(file_, "x.experts.gate_up_proj.bias", ElementType::kF32, {kExperts, 2 * kN}, bias)
          .ok());
  LayerOptions options;
  options.expert = 1;
  for (const StackedOrder order : {StackedOrder::kGateFirst, StackedOrder::kUpFirst}) {
    options.stacked_order = order;
    const Expected<MlpLayer> layer = load_mlp_layer(file_, "x", options);
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    const bool gate_first = order == StackedOrder::kGateFirst;
    EXPECT_EQ((gate_first ? layer->gate_bias : layer->up_bias).front(), 2 * kN + 1);
    EXPECT_EQ((gate_first ? layer->up_bias : layer->gate_bias).back(), 4 * kN);
    EXPECT_EQ(layer->gate_bias.size(), static_cast<size_t>(kN));
  }
  // This name marks gpt-oss, whose Gate and Up alternate: zeros do not help.
  const std::vector<float> zeros(kExperts * 2 * kN);
  ASSERT_TRUE(
      add_bytes(file_, "x.experts.gate_up_proj_bias", ElementType::kF32, {kExperts, 2 * kN}, zeros)
          .ok());
  EXPECT_TRUE(load_mlp_layer(file_, "x", options)->gate_bias.empty());
}

TEST_F(ExpertTest, WhatIsNotReadSaysWhy) {
  LayerOptions options;
  options.expert = 0;
  TensorFile plain;
  ASSERT_TRUE(add_bytes(plain, "m.experts.gate_up_proj", ElementType::kBF16, {4, 32, 16},
                        Bytes(4 * 32 * 16 * 2))
                  .ok());
  EXPECT_TRUE(fails_with(load_mlp_layer(plain, "m", options).status(), StatusCode::kUnsupported,
                         "ModelOpt"));
}

TEST_F(ExpertTest, WrongShapesOfFusedTensors) {
  add_fused("x.experts.gate_up_proj", true, ElementType::kF8E4M3);
  const auto refuse = [&](const char* name, ElementType type, std::vector<int64_t> shape,
                          size_t bytes, const char* part) {
    TensorFile file = file_;
    file.erase(name);
    ASSERT_TRUE(add_bytes(file, name, type, std::move(shape), Bytes(bytes)).ok());
    LayerOptions options;
    options.expert = 0;
    EXPECT_TRUE(
        fails_with(load_mlp_layer(file, "x", options).status(), StatusCode::kCorruptFile, part));
  };
  refuse("x.experts.gate_up_proj_weight_scale", ElementType::kF8E4M3, {kExperts, 7, 2 * kN},
         3 * 7 * 12, "(k = 24)");
  refuse("x.experts.gate_up_proj_weight_scale", ElementType::kF8E4M3, {2, 6, 2 * kN}, 2 * 6 * 12,
         "[2, 6, 12]");
  refuse("x.experts.gate_up_proj_weight_scale_2", ElementType::kF32, {2}, 8, "F32 [2]");
  refuse("x.experts.gate_up_proj_weight_scale_2", ElementType::kF32, {kExperts}, 12, "value 0");
}

TEST_F(ExpertTest, ConvertMakesModulesOfThem) {
  add_fused("x.experts.gate_up_proj", true, ElementType::kU8);
  ConvertOptions options;
  ConvertReport report;
  const Expected<TensorFile> out = convert_checkpoint(file_, options, &report);
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(report.weights_converted, kExperts);
  EXPECT_EQ(out->tensors().size(), static_cast<size_t>(4 * kExperts));
  file_ = *out;
  for (int64_t e = 0; e < kExperts; ++e) expect_expert("x", e);
}

TEST_F(ExpertTest, TorchaoNames) {
  const RawWeight &gate = both_[0], &up = both_[1];
  const auto add = [&](const std::string& module, const RawWeight& raw, bool swizzle, float scale) {
    ASSERT_TRUE(
        add_bytes(file_, module + "._weight_qdata", ElementType::kU8, {raw.n, kK / 2}, raw.codes)
            .ok());
    const int64_t tiles_n = (raw.n + 127) / 128, tiles_k = (kK / 16 + 3) / 4;
    ASSERT_TRUE(add_bytes(file_, module + "._weight_scale", ElementType::kF8E4M3,
                          swizzle ? std::vector<int64_t>{tiles_n * 32, tiles_k * 16}
                                  : std::vector<int64_t>{raw.n, kK / 16},
                          swizzle ? swizzled(raw) : raw.scales)
                    .ok());
    if (scale > 0) add_scalar(file_, module + "._weight_per_tensor_scale", scale);
    file_.metadata()[module + ".weight"] =
        std::string(R"({"_type":"NVFP4Tensor","_data":{"block_size":16,"is_swizzled_scales":)") +
        (swizzle ? "true" : "false") + "}}";
  };
  for (const bool swizzle : {false, true}) {
    file_ = {};
    add("m.gate_proj", gate, swizzle, 0.5f);
    add("m.up_proj", up, swizzle, 0.0f);
    file_.metadata()["tensor_names"] = "[]";
    const Expected<MlpLayer> layer = load_mlp_layer(file_, "m");
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(layer->convention, Convention::kTorchao);
    EXPECT_EQ(decode(*layer, layer->gate), decode(gate, 0.5));
    EXPECT_EQ(decode(*layer, layer->up), decode(up, 1.0));
    EXPECT_EQ(list_mlp_layers(file_), (std::vector<LayerEntry>{{"m", 0}}));
    // Without `--to` the result is ModelOpt's, and nothing of torchao's description stays.
    ConvertOptions options;
    options.scale_layout = ScaleLayout::kLinear;
    const Expected<TensorFile> out = convert_checkpoint(file_, options);
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(load_weight(*out, "m.gate_proj")->convention, Convention::kModelOpt);
    EXPECT_EQ(out->metadata().count("m.gate_proj.weight"), 0u);
  }
  EXPECT_FALSE(convert_checkpoint(file_, {{}, Convention::kTorchao, {}, {}}).ok());
  file_.metadata()["m.gate_proj.weight"] = R"({"_data":{"other":1}})";
  file_.metadata()["m.up_proj.weight"] = std::string(1000, '[');
  EXPECT_TRUE(load_mlp_layer(file_, "m").ok()) << "then the shape decides";
  file_.metadata()["m.gate_proj.weight"] = R"({"_data":{"is_swizzled_scales":"yes"}})";
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, "m").status(), StatusCode::kCorruptFile,
                         "is_swizzled_scales: '\"yes\"'; must be true or false"));
}

TEST_F(ExpertTest, ScalesInOtherShapes) {
  const RawWeight raw(128, 64, rng_);  // no padding: the shape of a matrix does not tell
  const Bytes tiles = swizzled(raw);
  const auto layout = [&](std::vector<int64_t> shape, const Bytes& scales,
                          const char* metadata = nullptr) {
    TensorFile file;
    EXPECT_TRUE(add_bytes(file, "m.weight", ElementType::kU8, {128, 32}, raw.codes).ok());
    EXPECT_TRUE(add_bytes(file, "m.weight_scale", ElementType::kU8, std::move(shape), scales).ok());
    add_scalar(file, "m.weight_scale_2", 1.0f);
    if (metadata != nullptr) file.metadata()[kScaleLayoutKey] = metadata;
    const Expected<Weight> weight = load_weight(file, "m");
    EXPECT_TRUE(weight.ok()) << weight.status().message();
    if (!weight.ok()) return ScaleLayout::kLinear;
    EXPECT_EQ(decode(reinterpret_cast<const uint8_t*>(weight->data.data()), weight->scales.data(),
                     weight->scale_layout, weight->nibble_order, 128, 64, 1.0),
              decode(raw, 1.0));
    return weight->scale_layout;
  };
  EXPECT_EQ(layout({128, 4}, raw.scales), ScaleLayout::kLinear);
  EXPECT_EQ(layout({128, 4}, tiles, "swizzled_128x4"), ScaleLayout::kSwizzled128x4);
  EXPECT_EQ(layout({512}, tiles), ScaleLayout::kSwizzled128x4);
  EXPECT_EQ(layout({512}, raw.scales, "linear"), ScaleLayout::kLinear);
  EXPECT_EQ(layout({32, 16}, tiles), ScaleLayout::kSwizzled128x4);
  EXPECT_EQ(layout({1, 1, 32, 4, 4}, tiles), ScaleLayout::kSwizzled128x4);
}

// All powers of two survive 1/(1/x); these do not.
TEST_F(ExpertTest, ConvertThereAndBackIsTheIdentity) {
  int lost = 0;
  TensorFile modelopt, compressed;
  for (int i = 0; i < 200; ++i) {
    const float scale = 1.0f + static_cast<float>(rng_.integer(1, 0x7FFFFE)) * 0x1p-23f;
    lost += 1.0f / (1.0f / scale) != scale ? 1 : 0;
    const std::string module = "m" + std::to_string(i);
    add_modelopt(modelopt, module, both_[0], {scale}, scale * 0.5f);
    add_compressed(compressed, module, both_[0], {scale}, scale * 0.25f);
  }
  ASSERT_GT(lost, 10) << "else the test shows nothing";
  const auto there_and_back = [](const TensorFile& in, Convention there, Convention back) {
    ConvertOptions options;
    options.convention = there;
    const Expected<TensorFile> middle = convert_checkpoint(in, options);
    ASSERT_TRUE(middle.ok()) << middle.status().message();
    options.convention = back;
    const Expected<TensorFile> out = convert_checkpoint(*middle, options);
    ASSERT_TRUE(out.ok()) << out.status().message();
    ASSERT_EQ(out->tensors().size(), in.tensors().size());
    for (const auto& [name, tensor] : in.tensors()) {
      const TensorView* other = out->find(name);
      ASSERT_NE(other, nullptr) << name;
      EXPECT_EQ(other->shape, tensor.shape) << name;
      EXPECT_TRUE(std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin(),
                             other->data.end()))
          << name;
    }
    for (const auto& [key, value] : out->metadata()) {
      EXPECT_FALSE(key.starts_with(kMultiplierKey) || key.starts_with(kDivisorKey)) << key;
    }
    // On the way the weights mean the same bits.
    const Expected<Weight> before = load_weight(in, "m7"), between = load_weight(*middle, "m7");
    EXPECT_EQ(before->dequant_global_scales, between->dequant_global_scales);
  };
  there_and_back(modelopt, Convention::kCompressedTensors, Convention::kModelOpt);
  there_and_back(compressed, Convention::kModelOpt, Convention::kCompressedTensors);
}

TEST_F(ExpertTest, KeptReciprocalsThatDoNotFitDoNotCount) {
  add_compressed(file_, "m", both_[0], {3.0f}, 0.0f);
  for (const char* bits :
       {"zz", "3eaaaaab,3eaaaaab", "00000000", "3f000000", "", ",", "3eaaaaab,"}) {
    file_.metadata()[std::string(kMultiplierKey) + "m.weight_global_scale"] = bits;
    EXPECT_EQ(load_weight(file_, "m")->dequant_global_scales, (std::vector<float>{1.0f / 3.0f}))
        << bits;
  }
}

}  // namespace
}  // namespace dualgemm::checkpoint
