// The linear layers of a model: formats found from tensors, what the config adds, where they
// disagree.
#include "checkpoint/linear_layers.hpp"

#include <gtest/gtest.h>

#include "checkpoint_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

class LinearLayers : public ::testing::Test {
 protected:
  void add(const std::string& name, ElementType type, std::vector<int64_t> shape) {
    int64_t bits = bits_of(type);
    for (const int64_t extent : shape) bits *= extent;
    ASSERT_TRUE(add_bytes(file, name, type, std::move(shape),
                          std::vector<uint8_t>(static_cast<size_t>(bits / 8)))
                    .ok());
  }
  std::vector<LinearLayer> list(const std::string& quantization = "") {
    const std::string config =
        quantization.empty() ? "" : "{\"quantization_config\": " + quantization + "}";
    const Expected<ModelQuantization> said = ModelQuantization::parse(config, "", "model");
    EXPECT_TRUE(said.ok()) << said.status().message();
    const Expected<std::vector<LinearLayer>> layers = list_linear_layers(file, *said);
    EXPECT_TRUE(layers.ok()) << layers.status().message();
    return layers ? *layers : std::vector<LinearLayer>();
  }
  // "module KIND n x k xE: FORMAT, ACTIVATIONS; CONTRADICTION"
  static std::string text(const LinearLayer& layer) {
    std::string out = layer.module + " " + name_of(layer.kind) + " " + std::to_string(layer.n) +
                      " x " + std::to_string(layer.k);
    if (layer.experts > 0) out += " x" + std::to_string(layer.experts);
    out += ": " + text_of(layer.scheme) + ", " + name_of(layer.scheme.activations);
    if (!layer.contradiction.empty()) out += "; " + layer.contradiction;
    return out;
  }
  static std::vector<std::string> texts(const std::vector<LinearLayer>& layers) {
    std::vector<std::string> out;
    for (const LinearLayer& layer : layers) out.push_back(text(layer));
    return out;
  }
  using Texts = std::vector<std::string>;

  TensorFile file;
};

TEST_F(LinearLayers, EveryFormatByItsTensors) {
  test::Rng rng(7);
  add_modelopt(file, "a.mlp.up_proj", RawWeight(48, 64, rng), {1.0f}, 0.5f);
  add_compressed(file, "b.mlp.up_proj", RawWeight(48, 64, rng), {1.0f}, 0);
  add("c.self_attn.q_proj.weight", ElementType::kF8E4M3, {256, 128});
  add("c.self_attn.q_proj.weight_scale", ElementType::kBF16, {256, 1});
  add("d.self_attn.q_proj.weight", ElementType::kF8E4M3, {256, 128});
  add("d.self_attn.q_proj.weight_scale", ElementType::kF32, {});
  add("d.self_attn.q_proj.input_scale", ElementType::kF32, {});
  add("e.self_attn.q_proj.weight", ElementType::kF8E4M3, {200, 300});
  add("e.self_attn.q_proj.weight_scale_inv", ElementType::kF32, {2, 3});
  add("f.self_attn.q_proj.weight", ElementType::kF8E4M3, {64, 128});
  add("f.self_attn.q_proj.weight_scale", ElementType::kU8, {64, 4});
  add("g.mlp.experts.gate_up_proj_blocks", ElementType::kU8, {4, 96, 2, 16});
  add("g.mlp.experts.gate_up_proj_scales", ElementType::kU8, {4, 96, 2});
  add("h.weight_packed", ElementType::kU8, {64, 64});
  add("h.weight_scale", ElementType::kU8, {64, 4});
  add("i.mlp.down_proj.weight", ElementType::kBF16, {64, 48});
  add("j.proj.weight", ElementType::kI8, {64, 48});
  add("k.proj.weight", ElementType::kF8E4M3, {64, 48});
  add("l.mlp.experts.gate_up_proj", ElementType::kU8, {4, 32, 96});
  add("l.mlp.experts.gate_up_proj_weight_scale", ElementType::kF8E4M3, {4, 4, 96});
  add("l.mlp.experts.gate_up_proj_weight_scale_2", ElementType::kF32, {1});
  // No linear layers.
  add("embed_tokens.weight", ElementType::kBF16, {64, 48});
  add("norm.weight", ElementType::kBF16, {48});
  add("conv1d.weight", ElementType::kBF16, {48, 1, 4});
  add("empty.weight", ElementType::kBF16, {0, 4});
  const std::vector<LinearLayer> layers = list();
  EXPECT_EQ(texts(layers), (Texts{
                               "a.mlp.up_proj mlp 48 x 64: NVFP4, static",
                               "b.mlp.up_proj mlp 48 x 64: NVFP4, none",
                               "c.self_attn.q_proj attention 256 x 128: FP8 channel, none",
                               "d.self_attn.q_proj attention 256 x 128: FP8 tensor, static",
                               "e.self_attn.q_proj attention 200 x 300: FP8 block 128 x 128, none",
                               "f.self_attn.q_proj attention 64 x 128: MXFP8, none",
                               "g.mlp.experts.gate_up_proj experts 96 x 64 x4: MXFP4, none",
                               "h other 64 x 128: MXFP4, none",
                               "i.mlp.down_proj mlp 64 x 48: float, none",
                               "j.proj other 64 x 48: I8, none",
                               "k.proj other 64 x 48: FP8 without scales, none",
                               "l.mlp.experts.gate_up_proj experts 96 x 64 x4: NVFP4, none",
                           }));
  EXPECT_EQ(layers[0].bytes, 48 * 32 + 48 * 4);
  EXPECT_EQ(layers[2].bytes, 256 * 128 + 256 * 2);
}

// The tensors count, and among the groups that claim a layer the one that agrees with them.
TEST_F(LinearLayers, TheConfigBesideTheTensors) {
  test::Rng rng(7);
  for (const char* module : {"layers.0.mlp.up_proj", "layers.1.mlp.up_proj", "lm_head"})
    add_compressed(file, module, RawWeight(48, 64, rng), {1.0f}, 2.0f);
  add("layers.2.mlp.up_proj.weight", ElementType::kF8E4M3, {48, 64});
  add("layers.2.mlp.up_proj.weight_scale", ElementType::kF32, {48, 1});
  add("layers.3.mlp.up_proj.weight", ElementType::kBF16, {48, 64});
  add("layers.4.attn.q_proj.weight", ElementType::kBF16, {48, 64});
  add("layers.5.attn.q_proj.weight", ElementType::kF8E4M3, {48, 64});
  add("layers.5.attn.q_proj.weight_scale", ElementType::kF32, {1});
  EXPECT_EQ(texts(list(R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"],
    "config_groups": {"FP8_DYNAMIC": ["re:.*up_proj"], "NVFP4": ["re:.*mlp.*"]}})")),
            (Texts{
                "layers.0.mlp.up_proj mlp 48 x 64: NVFP4, local",
                "layers.1.mlp.up_proj mlp 48 x 64: NVFP4, local",
                "layers.2.mlp.up_proj mlp 48 x 64: FP8 channel, dynamic",
                "layers.3.mlp.up_proj mlp 48 x 64: float, none; "
                "config_groups.FP8_DYNAMIC says FP8 channel",
                "layers.4.attn.q_proj attention 48 x 64: float, none",
                "layers.5.attn.q_proj attention 48 x 64: FP8 tensor, none; "
                "no group of the config claims it",
                "lm_head other 48 x 64: NVFP4, static; the config leaves it alone (ignore)",
            }));
}

TEST_F(LinearLayers, NamesTheFolder) {
  EXPECT_EQ(folder_of_model(file), "");
  file.add_path("a.safetensors");
  EXPECT_EQ(folder_of_model(file), ".");
  TensorFile other;
  other.add_path("/m/x/a.safetensors");
  EXPECT_EQ(folder_of_model(other), "/m/x");
}

TEST_F(LinearLayers, RotationsOfInputs) {
  add("a.mlp.down_proj.weight", ElementType::kBF16, {64, 256});
  add("a.mlp.down_proj.R4_input.weight", ElementType::kF32, {128, 128});
  add("a.mlp.up_proj.weight", ElementType::kBF16, {256, 64});
  const auto rotated_by = [](int64_t size) {
    return R"({"quant_method": "compressed-tensors", "transform_config": {"config_groups": {
      "R4": {"type": "hadamard", "head_dim": )" +
           std::to_string(size) + R"(, "apply": [
        {"targets": ["re:.*down_proj$"], "location": "input"}]}}}})";
  };
  const std::vector<LinearLayer> layers = list(rotated_by(128));
  ASSERT_EQ(texts(layers).size(), 2u);  // the matrix is no layer
  EXPECT_EQ(layers[0].hadamard, 128);
  EXPECT_EQ(layers[1].hadamard, 0);
  file = TensorFile();
  add("a.mlp.down_proj.weight", ElementType::kBF16, {64, 96});
  const auto said =
      ModelQuantization::parse("{\"quantization_config\": " + rotated_by(64) + "}", "", "model");
  ASSERT_TRUE(said.ok()) << said.status().message();
  EXPECT_TRUE(fails_with(list_linear_layers(file, *said).status(), StatusCode::kUnsupported,
                         "96 columns; are rotated by 64"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
