// What configs of quantised models say of a module: every writer's form, the order of claims, and
// what is wrong.
#include "checkpoint/model_quantization.hpp"

#include <fstream>

#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;
using test::TempDirectory;

ModelQuantization parsed(const std::string& config, const std::string& hf = "") {
  const Expected<ModelQuantization> found = ModelQuantization::parse(config, hf, "model");
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? *found : ModelQuantization();
}

// "FP8 channel, dynamic", what counts of the module; "-": left alone.
std::string said(const ModelQuantization& config, const std::string& module) {
  const auto schemes = config.schemes_of(module);
  if (schemes.empty()) return "-";
  return text_of(*schemes.front()) + ", " + name_of(schemes.front()->activations);
}

Status error_of(const std::string& config, const std::string& hf = "") {
  return ModelQuantization::parse(config, hf, "model").status();
}

std::string with(const std::string& quantization) {
  return R"({"hidden_size": 64, "x": Infinity, "quantization_config": )" + quantization + "}";
}

// As unsloth's releases have it: the pattern of the NVFP4 group matches what the other one claims
// by name.
constexpr const char* kMixed = R"({
  "quant_method": "compressed-tensors", "format": "mixed-precision",
  "kv_cache_scheme": {"num_bits": 8, "type": "float"},
  "ignore": ["lm_head", "re:.*\\.mlp\\.gate$", "model.layers.3.mlp.up_proj"],
  "config_groups": {
    "group_0": {"format": "float-quantized",
      "targets": ["re:.*self_attn\\.(q|k|v|o)_proj$", "model.layers.7.mlp.down_proj"],
      "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "dynamic": false},
      "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}},
    "group_1": {"format": "nvfp4-pack-quantized", "targets": ["re:.*mlp.*"],
      "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
      "input_activations": {"num_bits": 4, "type": "float", "dynamic": "local"}},
    "group_2": {"targets": ["Linear"], "input_activations": null,
      "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}}}})";

TEST(ModelQuantization, GroupsOfCompressedTensors) {
  const ModelQuantization config = parsed(with(kMixed));
  EXPECT_EQ(config.method(), "compressed-tensors");
  EXPECT_EQ(config.algorithm(), "mixed-precision");
  ASSERT_EQ(config.notes().size(), 1u);
  EXPECT_NE(config.notes()[0].find("kv_cache_scheme"), std::string::npos);
  EXPECT_EQ(said(config, "model.layers.0.self_attn.q_proj"), "FP8 channel, dynamic");
  EXPECT_EQ(said(config, "model.layers.0.mlp.down_proj"), "NVFP4, local");
  EXPECT_EQ(said(config, "model.layers.7.mlp.down_proj"), "FP8 channel, dynamic") << "by its name";
  EXPECT_EQ(said(config, "model.layers.3.mlp.up_proj"), "-") << "ignore beats targets";
  EXPECT_EQ(said(config, "model.layers.3.mlp.gate"), "-");
  EXPECT_EQ(said(config, "model.layers.3.mlp.gate_proj"), "NVFP4, local");
  EXPECT_EQ(said(config, "lm_head"), "-");
  EXPECT_EQ(said(config, "other"), "int of 4 bits, group of 128, none") << "by its class";
  EXPECT_EQ(config.schemes_of("model.layers.7.mlp.down_proj").size(), 3u) << "all claims, in order";
  EXPECT_FALSE(config.is_ignored("lm_head2"));
}

TEST(ModelQuantization, ExpressionsMatchFromTheStartAsPythonsDo) {
  const auto config = parsed(with(R"({"quant_method": "compressed-tensors", "config_groups": {
    "NVFP4A16": ["re:model\\.layers\\.\\d+\\.mlp", "re:(?!vision).*special"],
    "FP8_BLOCK": ["re:mlp"]}})"));
  EXPECT_EQ(said(config, "model.layers.12.mlp.up_proj"), "NVFP4, none");
  EXPECT_EQ(said(config, "a.model.layers.12.mlp.up_proj"), "-");
  EXPECT_EQ(said(config, "mlp.up_proj"), "FP8 block 128 x 128, dynamic");
  EXPECT_EQ(said(config, "text.special"), "NVFP4, none");
  EXPECT_EQ(said(config, "vision.special"), "-");
}

TEST(ModelQuantization, FormsOfModelOpt) {
  auto config = parsed(with(R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
    "ignore": ["lm_head", "model.layers.*.self_attn*", "model.visual"], "kv_cache_quant_algo": null})"));
  EXPECT_EQ(said(config, "model.layers.0.mlp.up_proj"), "NVFP4, static");
  EXPECT_EQ(said(config, "model.layers.0.self_attn.q_proj"), "-");
  EXPECT_EQ(said(config, "model.visual.blocks.0.mlp"), "-") << "a module that holds it";
  EXPECT_EQ(said(config, "model.visual2.x"), "NVFP4, static");
  EXPECT_TRUE(config.notes().empty());

  const std::string mixed = R"({"quantization": {"quant_algo": "MIXED_PRECISION",
    "exclude_modules": ["lm_head"], "quantized_layers": {
      "model.layers.0.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16},
      "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
      "model.layers.1.mlp.up_proj": {"quant_algo": "W4A16_AWQ", "group_size": 128},
      "model.layers.2.mlp.up_proj": {"quant_algo": null}}}})";
  for (const auto& both : {parsed("", mixed),  // config.json names the algorithm alone
                           parsed(with(R"({"quant_algo": "MIXED_PRECISION"})"), mixed)}) {
    EXPECT_EQ(both.method(), "modelopt");
    EXPECT_EQ(said(both, "model.layers.0.mlp.experts.5.up_proj"), "NVFP4, static");
    EXPECT_EQ(said(both, "model.layers.0.self_attn.q_proj"), "FP8 tensor, static");
    EXPECT_EQ(said(both, "model.layers.1.mlp.up_proj"), "W4A16_AWQ, group of 128, none");
    EXPECT_EQ(said(both, "model.layers.2.mlp.up_proj"), "-");
    EXPECT_EQ(said(both, "model.layers.3.mlp.up_proj"), "-");
  }
  // Where both speak config.json counts.
  config = parsed(with(R"({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"})"), mixed);
  EXPECT_EQ(said(config, "model.layers.0.self_attn.q_proj"), "NVFP4, none");
  ASSERT_EQ(config.notes().size(), 1u);
  EXPECT_NE(config.notes()[0].find("'MIXED_PRECISION'"), std::string::npos) << config.notes()[0];
  // Groups as this library and ModelOpt's newer exports write them.
  config = parsed(with(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "config_groups": {"group_0": {"targets": ["*mlp*"], "input_activations": {"dynamic": false},
      "weights": {"dynamic": false, "num_bits": 4, "type": "float", "group_size": 16}},
      "group_1": {"targets": ["model.layers.0.self_attn.q_proj"],
      "weights": {"dynamic": false, "num_bits": 8, "type": "float"}}}})"));
  EXPECT_EQ(said(config, "model.layers.0.mlp.up_proj"), "NVFP4, static");
  EXPECT_EQ(said(config, "model.layers.0.self_attn.q_proj"), "FP8 tensor, none");
}

TEST(ModelQuantization, FormsOfTransformers) {
  auto config = parsed(with(R"({"quant_method": "mxfp4", "modules_to_not_convert":
    ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]})"));
  EXPECT_EQ(said(config, "model.layers.0.mlp.experts.gate_up_proj"), "MXFP4, none");
  EXPECT_EQ(said(config, "model.layers.0.mlp.router"), "-");
  EXPECT_EQ(said(config, "model.layers.0.self_attn.q_proj"), "-");
  config = parsed(with(R"({"quant_method": "fp8", "weight_block_size": [128, 128],
    "activation_scheme": "dynamic", "modules_to_not_convert": ["lm_head", "gate"]})"));
  EXPECT_EQ(said(config, "model.layers.0.mlp.up_proj"), "FP8 block 128 x 128, dynamic");
  EXPECT_EQ(said(config, "model.layers.0.mlp.gate"), "-") << "the end of a name";
  EXPECT_EQ(said(config, "language_model.lm_head"), "-");
  config = parsed(with(R"({"quant_method": "fp8", "activation_scheme": "static"})"));
  EXPECT_EQ(said(config, "x"), "FP8 tensor, static");
  config = parsed(R"({"text_config": {"quantization_config": {"quant_method": "fp8"}}})");
  EXPECT_EQ(said(config, "x"), "FP8 tensor, dynamic");
  for (const char* silent : {"{}", R"({"quantization_config": null})",
                             R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})"})
    EXPECT_TRUE(parsed(silent).groups().empty()) << silent;
  EXPECT_EQ(parsed("").method(), "");
}

// A group R4 of compressed-tensors with these fields, applied at `location` of down.
std::string with_transform(const std::string& fields, const std::string& location = "input") {
  return with(R"({"quant_method": "compressed-tensors", "transform_config": {"config_groups": {
      "R4": {"apply": [{"targets": ["re:.*down_proj$"], "location": "weight_input"},
                       {"targets": ["re:.*down_proj$"], "ignore": ["re:.*0.mlp.*"],
                        "location": ")" +
              location + "\"}], " + fields + "}}}}");
}

TEST(ModelQuantization, RotationsOfInputsAreRead) {
  const ModelQuantization said = parsed(with_transform(
      R"("type": "hadamard", "head_dim": 128, "randomize": false, "precision": "torch.float32")"));
  EXPECT_EQ(*said.hadamard_of("model.layers.1.mlp.down_proj"), 128);
  EXPECT_EQ(*said.hadamard_of("model.layers.0.mlp.down_proj"), 0);
  EXPECT_EQ(*said.hadamard_of("model.layers.1.mlp.up_proj"), 0);
  ASSERT_EQ(said.notes().size(), 1u);
  EXPECT_EQ(said.notes()[0],
            "transform_config.config_groups.'R4' rotates inputs while the model runs, by 128 "
            "columns");
  EXPECT_TRUE(said.is_rotation("model.layers.1.mlp.down_proj.R4_input"));
  EXPECT_FALSE(said.is_rotation("model.layers.1.mlp.down_proj"));
}

TEST(ModelQuantization, OtherTransformsAreRefused) {
  EXPECT_TRUE(error_of(with_transform(R"("type": "any")", "weight_output")).ok());
  const auto refused = [](const std::string& config, const std::string& part) {
    EXPECT_TRUE(fails_with(error_of(config), StatusCode::kUnsupported, part)) << config;
  };
  refused(with_transform(R"("type": "hadamard", "head_dim": 64)", "output"),
          "a transform at 'output'");
  refused(with_transform(R"("type": "hadamard", "head_dim": 64)", "q_attn"),
          "a transform at 'q_attn'");
  refused(with_transform(R"("type": "random-hadamard", "head_dim": 64)"),
          "an online transform of type 'random-hadamard'");
  refused(with_transform(R"("type": "hadamard", "head_dim": 64, "randomize": true)"), "randomize");
  refused(with_transform(R"("type": "hadamard")"), "head_dim null");
  for (const char* size : {"8", "48", "512", "-16"})
    refused(with_transform(R"("type": "hadamard", "head_dim": )" + std::string(size)), "head_dim");
  const ModelQuantization twice =
      parsed(with(R"({"quant_method": "compressed-tensors", "transform_config": {"config_groups": {
        "A": {"type": "hadamard", "head_dim": 64, "apply": [{"targets": ["Linear"], "location": "input"}]},
        "B": {"type": "hadamard", "head_dim": 32, "apply": [{"targets": ["Linear"], "location": "input"}]}
        }}})"));
  EXPECT_TRUE(fails_with(twice.hadamard_of("model.up_proj").status(), StatusCode::kUnsupported,
                         "and only one may"));
}

TEST(ModelQuantization, WhatIsWrongIsNamed) {
  const auto refused = [](const std::string& config, const std::string& part) {
    EXPECT_TRUE(fails_with(error_of(config), StatusCode::kCorruptFile, part)) << config;
  };
  refused("[]", "no JSON object");
  refused("{", "not valid JSON");
  refused("{\"a\": \"\xff\"}", "not valid JSON");
  refused(with("5"), "'quantization_config'");
  refused(with(R"({"quant_method": 5})"), "'quant_method'");
  refused(with(R"({"quant_method": "fp8", "weight_block_size": ["a"]})"), "must be an integer");
  refused(with(R"({"quant_method": "fp8", "activation_scheme": "later"})"), "dynamic or static");
  refused(with(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"})"),
          "quantized_layers");
  refused(with(R"({"quant_method": "compressed-tensors", "ignore": "lm_head"})"), "no JSON array");
  refused(with(R"({"quant_method": "compressed-tensors", "config_groups": {"NVFP5": ["Linear"]}})"),
          "'NVFP5'");
  refused(
      with(
          R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["re:("]}}})"),
      "must be a regular expression");
  refused(with(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": [],
    "weights": {"num_bits": 4.5}}}})"),
          "'num_bits'");
  refused(with(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {
    "input_activations": {"dynamic": "global"}}}})"),
          "must be true, false or");
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  refused(with(R"({"quant_method": "compressed-tensors", "ignore": )" + deep + "}"),
          "nested too deeply");
  for (const char* only_python : {"re:\\\\Amodel", "re:(?P<n>x)", "re:(?i)x", "re:(?<=x)y"}) {
    EXPECT_TRUE(fails_with(error_of(with(R"({"quant_method": "compressed-tensors", "ignore": [")" +
                                         std::string(only_python) + "\"]}")),
                           StatusCode::kUnsupported, "only Python"))
        << only_python;
  }
}

// Expressions that cost other engines exponential time, the whole stack or all memory.
TEST(ModelQuantization, HostileExpressionsEnd) {
  const auto ignoring = [](const std::string& regex) {
    return with(R"({"quant_method": "compressed-tensors", "ignore": ["re:)" + regex + "\"]}");
  };
  const std::string name(400, 'a');
  for (const char* slow : {"(a+)+b", "(a|a)*b", "(.*)*(.*)*b", "(a*)*(a*)*(a*)*b"})
    EXPECT_EQ(parsed(ignoring(slow)).is_ignored(name), false) << slow;
  for (const std::string& large :
       {std::string(100, '(') + std::string(100, ')'), std::string(2000, 'a'),
        std::string("(a{1000}){1000}"), std::string("a{99999999}")})
    EXPECT_FALSE(error_of(ignoring(large)).ok()) << large.substr(0, 40);
}

TEST(ModelQuantization, ReadsTheFilesOfAFolder) {
  const TempDirectory folder;
  EXPECT_EQ(ModelQuantization::read(folder.path())->method(), "") << "no files";
  std::ofstream(folder / "config.json") << with(R"({"quant_method": "fp8"})");
  EXPECT_EQ(ModelQuantization::read(folder.path())->method(), "fp8");
  std::ofstream(folder / "hf_quant_config.json") << "{";
  EXPECT_TRUE(fails_with(ModelQuantization::read(folder.path()).status(), StatusCode::kCorruptFile,
                         "hf_quant_config.json"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
