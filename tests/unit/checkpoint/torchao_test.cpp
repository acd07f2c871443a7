// Weights under torchao's names, in a module and as parameters of experts, wherever a checkpoint is
// read: as a layer, as activations, beside ggml blocks, converted, broken.
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"
#include "tools/checkpoint_jobs/layer_problem.hpp"

namespace dualgemm::checkpoint {
namespace {

class TorchaoTest : public ::testing::Test {
 protected:
  static constexpr int64_t kExperts = 2, kN = 8, kK = 64;
  static constexpr const char* kDescription =
      R"({"_type":"NVFP4Tensor","_data":{"is_swizzled_scales":false}})";

  // `stem`: the tensors' common part, MODULE._weight or PARENT._PARAMETER.
  static void add(TensorFile& file, const std::string& stem, const RawWeight& raw, float global,
                  std::vector<int64_t> batch = {}) {
    const auto shape = [&](int64_t columns) {
      std::vector<int64_t> extents = batch;
      extents.insert(extents.end(), {batch.empty() ? raw.n : raw.n / batch[0], columns});
      return extents;
    };
    ASSERT_TRUE(
        add_bytes(file, stem + "_qdata", ElementType::kU8, shape(raw.k / 2), raw.codes).ok());
    ASSERT_TRUE(
        add_bytes(file, stem + "_scale", ElementType::kF8E4M3, shape(raw.k / 16), raw.scales).ok());
    add_scalar(file, stem + "_per_tensor_scale", global);
  }
  // Gate and Up of all experts as one parameter.
  static void add_experts(TensorFile& file, const RawWeight& all) {
    add(file, "x.experts._gate_up_proj", all, 0.5f, {kExperts});
    file.metadata()["x.experts.gate_up_proj"] = kDescription;
  }
  // The same in ModelOpt's names.
  static void add_plain_experts(TensorFile& file, const RawWeight& all) {
    ASSERT_TRUE(add_bytes(file, "x.experts.gate_up_proj", ElementType::kU8,
                          {kExperts, all.n / kExperts, kK / 2}, all.codes)
                    .ok());
    ASSERT_TRUE(add_bytes(file, "x.experts.gate_up_proj_weight_scale", ElementType::kF8E4M3,
                          {kExperts, all.n / kExperts, kK / 16}, all.scales)
                    .ok());
    add_scalar(file, "x.experts.gate_up_proj_weight_scale_2", 0.5f);
  }

  test::Rng rng_;
  RawWeight gate_{kN, kK, rng_}, up_{kN, kK, rng_}, tokens_{4, kK, rng_};
  RawWeight experts_{2 * kN * kExperts, kK, rng_};
};

TEST_F(TorchaoTest, LayerAndActivations) {
  const test::TempDirectory folder;
  TensorFile layer, modelopt, tokens, same_tokens;
  add(layer, "m.gate_proj._weight", gate_, 0.5f);
  add(layer, "m.up_proj._weight", up_, 2.0f);
  add_modelopt(modelopt, "m.gate_proj", gate_, {0.5f}, 0.0f);
  add_modelopt(modelopt, "m.up_proj", up_, {2.0f}, 0.0f);
  add(tokens, "x._weight", tokens_, 0.25f);
  add_modelopt(same_tokens, "x", tokens_, {0.25f}, 0.0f);
  constexpr const char *kLayer = "layer.safetensors", *kModelOpt = "modelopt.safetensors",
                       *kTokens = "tokens.safetensors", *kSame = "same.safetensors";
  const std::pair<const char*, const TensorFile*> files[] = {
      {kLayer, &layer}, {kModelOpt, &modelopt}, {kTokens, &tokens}, {kSame, &same_tokens}};
  for (const auto& [name, file] : files) ASSERT_TRUE(write_safetensors(folder / name, *file).ok());
  const auto open = [&](const char* weights, const char* activations, const char* tensor) {
    LayerSource source;
    source.weights = folder / weights;
    source.activations = folder / activations;
    source.activations_tensor = tensor;
    Expected<LayerProblem> problem = open_layer_problem(source, Problem());
    EXPECT_TRUE(problem.ok()) << problem.status().message();
    return problem ? *std::move(problem) : LayerProblem();
  };
  const LayerProblem expected = open(kModelOpt, kSame, "");
  for (const char* tensor : {"", "x", "x._weight_qdata"}) {
    const LayerProblem found = open(kLayer, kTokens, tensor);
    EXPECT_EQ(found.problem.m, tokens_.n);
    EXPECT_EQ(found.problem.k, kK);
    EXPECT_EQ(found.buffers.alpha_gate, expected.buffers.alpha_gate);
    EXPECT_EQ(found.buffers.alpha_up, expected.buffers.alpha_up);
    ASSERT_EQ(found.a.size(), expected.a.size());
    EXPECT_EQ(std::memcmp(found.a.data(), expected.a.data(), tokens_.codes.size()), 0);
    EXPECT_EQ(std::memcmp(found.a_scales.data(), expected.a_scales.data(), tokens_.scales.size()),
              0);
  }
}

TEST_F(TorchaoTest, BesideBlocksOfGgml) {
  TensorFile modelopt;
  add_modelopt(modelopt, "m.up_proj", up_, {2.0f}, 0.0f);
  Expected<TensorFile> file = convert_checkpoint(modelopt, {{}, Convention::kGgml, {}, {}});
  ASSERT_TRUE(file.ok()) << file.status().message();
  file->metadata().clear();  // so that only the option tells
  add(*file, "m.gate_proj._weight", gate_, 0.5f);
  add_plain_experts(*file, experts_);
  ConvertOptions options;
  options.input.convention = Convention::kGgml;
  options.convention = Convention::kModelOpt;
  ConvertReport report;
  const Expected<TensorFile> out = convert_checkpoint(*file, options, &report);
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(report.weights_converted, 2 + kExperts);
  const Expected<MlpLayer> layer = load_mlp_layer(*out, "m");
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
  EXPECT_EQ(decode(*layer, layer->up), decode(up_, 2.0));
}

TEST_F(TorchaoTest, ExpertsAsOneParameter) {
  TensorFile file, modelopt;
  add_experts(file, experts_);
  add_plain_experts(modelopt, experts_);
  EXPECT_EQ(list_mlp_layers(file), (std::vector<LayerEntry>{{"x.experts", kExperts}}));
  for (int64_t expert = 0; expert < kExperts; ++expert) {
    LayerOptions options;
    options.expert = expert;
    const Expected<MlpLayer> found = load_mlp_layer(file, "x", options);
    const Expected<MlpLayer> expected = load_mlp_layer(modelopt, "x", options);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    EXPECT_EQ(decode(*found, found->gate), decode(*expected, expected->gate));
    EXPECT_EQ(decode(*found, found->up), decode(*expected, expected->up));
  }
  const Expected<TensorFile> out = convert_checkpoint(file, {});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out->metadata().count("x.experts.gate_up_proj"), 0u) << "describes what is gone";
  EXPECT_EQ(out->tensors().size(), static_cast<size_t>(3 * kExperts));
}

// Where the data lack, the layer is broken, not absent.
TEST_F(TorchaoTest, ExpertsWithoutTheirCodes) {
  for (const char* part : {"_scale", "_per_tensor_scale", "_act_per_tensor_scale"}) {
    TensorFile file;
    add_scalar(file, std::string("x.experts._gate_up_proj") + part, 1.0f);
    EXPECT_EQ(list_mlp_layers(file), (std::vector<LayerEntry>{{"x.experts", 0}})) << part;
  }
}

}  // namespace
}  // namespace dualgemm::checkpoint
