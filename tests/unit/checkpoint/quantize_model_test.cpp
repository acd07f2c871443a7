// Quantising what a real model holds: what is taken, what shares a scale, what is written beside.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/glob.hpp"
#include "checkpoint/safetensors.hpp"
#include "dualgemm/formats.hpp"
#include "io_test_support.hpp"
#include "tools/checkpoint_jobs/model_folder.hpp"
#include "tools/checkpoint_jobs/quantization_config.hpp"
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"
#include "tools/checkpoint_jobs/quantize_selection.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {
namespace {

using nlohmann::json;
using test::fails_with;
using Names = std::vector<std::string>;

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("*mlp*", "a.mlp.b"));
  EXPECT_TRUE(matches_glob("a.?.c", "a.7.c"));
  EXPECT_TRUE(matches_glob("*a*b*b", "xaxbxbb"));
  EXPECT_TRUE(matches_glob("a**", "a"));
  EXPECT_FALSE(matches_glob("a.?.c", "a.17.c"));
  EXPECT_FALSE(matches_glob("mlp", "a.mlp"));
  EXPECT_FALSE(matches_glob("a*", "ba"));
  EXPECT_FALSE(matches_glob("?", ""));
  const std::string many(2000, 'a');
  EXPECT_FALSE(matches_glob("*a*a*a*a*a*a*a*a*b", many));
}

class QuantizeModel : public ::testing::Test {
 protected:
  // BF16 or F32 normal values times `scale`, so that amax differs from tensor to tensor.
  void add(const std::string& name, std::vector<int64_t> shape, double scale,
           ElementType type = ElementType::kBF16) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<uint8_t> values(static_cast<size_t>(count * bits_of(type) / 8));
    const DataType data_type = type == ElementType::kF32   ? DataType::kF32
                               : type == ElementType::kF16 ? DataType::kF16
                                                           : DataType::kBF16;
    ASSERT_TRUE(
        verify::random_normal(data_type, count, scale, 0, 1.0, ++seed_, values.data()).ok());
    ASSERT_TRUE(in_.add_copy(name, type, std::move(shape), values.data(), values.size()).ok());
  }
  void add_model() {
    add("model.embed_tokens.weight", {64, 32}, 1.0);
    add("model.norm.weight", {32}, 1.0);
    add("lm_head.weight", {64, 32}, 1.0);
    const std::string layer = "model.layers.0.";
    add(layer + "self_attn.q_proj.weight", {32, 32}, 1.0);
    add(layer + "self_attn.k_proj.weight", {16, 32}, 3.0);
    add(layer + "self_attn.v_proj.weight", {16, 32}, 2.0, ElementType::kF16);
    add(layer + "self_attn.o_proj.weight", {32, 32}, 5.0);
    add(layer + "mlp.gate.weight", {2, 32}, 1.0);
    for (const char* expert : {"0", "1"}) {
      const std::string at = layer + "mlp.experts." + expert + ".";
      add(at + "gate_proj.weight", {48, 32}, *expert == '0' ? 1.0 : 4.0, ElementType::kF32);
      add(at + "up_proj.weight", {48, 32}, 2.0);
      add(at + "down_proj.weight", {32, 48}, 1.0);
    }
  }
  QuantizeCheckpointReport quantize(const QuantizeCheckpointOptions& options = {}) {
    QuantizeCheckpointReport report;
    Expected<TensorFile> out = quantize_checkpoint(in_, options, &report);
    EXPECT_TRUE(out.ok()) << out.status().message();
    if (out) out_ = *out;
    return report;
  }
  float global(const std::string& module) {
    const Expected<Weight> weight = load_weight(out_, module);
    EXPECT_TRUE(weight.ok()) << weight.status().message();
    return weight.ok() ? weight->dequant_global_scales.front() : 0.0f;
  }
  static Names modules(const QuantizeCheckpointReport& report) {
    Names names;
    for (const QuantizedTensor& tensor : report.quantized) names.push_back(tensor.module);
    return names;
  }

  TensorFile in_, out_;
  uint64_t seed_ = 0;
};

TEST_F(QuantizeModel, LeavesAloneWhatModelOptLeavesAlone) {
  add_model();
  const QuantizeCheckpointReport report = quantize();
  EXPECT_EQ(report.quantized.size(), 10u);
  EXPECT_EQ(report.left_alone, (Names{"lm_head.weight", "model.embed_tokens.weight",
                                      "model.layers.0.mlp.gate.weight"}));
  for (const std::string& name : report.copied) {
    const TensorView &before = *in_.find(name), &after = *out_.find(name);
    EXPECT_TRUE(
        std::equal(before.data.begin(), before.data.end(), after.data.begin(), after.data.end()))
        << name;
  }
  EXPECT_EQ(unquantized_modules(report),
            (Names{"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate"}));
}

// The same things under the names that other families of checkpoints give them.
TEST_F(QuantizeModel, LeavesAloneEmbeddingsHeadsAndRoutersByAnyName) {
  const Names alone = {
      "token_embd.weight",
      "output.weight",
      "blk.0.ffn_gate_inp.weight",  // GGUF
      "tok_embeddings.weight",
      "layers.0.feed_forward.gate.weight",  // Mistral's own
      "shared.weight",
      "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",  // T5
      "score.weight",
      "model.layers.0.moe.gate.weight",
      "backbone.layers.0.mixer.gate.weight",
      "model.layers.0.mlp.gate.wg.weight",
      "vision_encoder.layers.0.fc.weight"};
  for (const std::string& name : alone) add(name, {16, 32}, 1.0);
  const Names taken = {"blk.0.ffn_gate", "layers.0.feed_forward.w1",
                       "model.layers.0.mlp.shared_expert.gate_proj"};
  for (const std::string& name : taken) add(name + ".weight", {16, 32}, 1.0);
  const QuantizeCheckpointReport report = quantize();
  EXPECT_EQ(modules(report), taken);
  EXPECT_EQ(report.left_alone.size(), alone.size());
}

TEST_F(QuantizeModel, FusedProjectionsOfOtherFamiliesShareTheirScale) {
  const std::vector<Names> groups = {
      {"layers.0.attention.wq", "layers.0.attention.wk", "layers.0.attention.wv"},
      {"blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v"},
      {"h.0.attention.query", "h.0.attention.key", "h.0.attention.value"},
      {"layers.0.linear_attn.in_proj_qkv", "layers.0.linear_attn.in_proj_z"},
      {"layers.0.feed_forward.w1", "layers.0.feed_forward.w3"},
      {"blk.0.ffn_gate", "blk.0.ffn_up"}};
  for (const Names& group : groups) {
    double scale = 1.0;
    for (const std::string& module : group) add(module + ".weight", {16, 32}, scale++);
  }
  add("layers.0.indexer.wk.weight", {16, 32}, 1.0);  // alone: fused with nothing
  const QuantizeCheckpointReport report = quantize();
  for (const Names& group : groups) {
    for (const std::string& module : group) EXPECT_EQ(global(module), global(group[0])) << module;
  }
  for (const QuantizedTensor& tensor : report.quantized)
    EXPECT_EQ(tensor.shares_scale, tensor.module != "layers.0.indexer.wk") << tensor.module;
}

// vLLM takes one global scale for a fused projection: ours must be the same in all its parts.
TEST_F(QuantizeModel, FusedProjectionsShareTheLargestScale) {
  add_model();
  quantize();
  const std::string attention = "model.layers.0.self_attn.";
  const float shared = global(attention + "q_proj");
  EXPECT_EQ(global(attention + "k_proj"), shared);
  EXPECT_EQ(global(attention + "v_proj"), shared);
  for (const char* expert : {"0", "1"}) {
    const std::string at = std::string("model.layers.0.mlp.experts.") + expert + ".";
    EXPECT_EQ(global(at + "gate_proj"), global(at + "up_proj"));
    EXPECT_NE(global(at + "gate_proj"), global(at + "down_proj"));
  }
  EXPECT_NE(global("model.layers.0.mlp.experts.0.gate_proj"),
            global("model.layers.0.mlp.experts.1.gate_proj"));

  QuantizeCheckpointOptions options;
  options.separate_scales = true;
  const QuantizeCheckpointReport report = quantize(options);
  float largest = 0.0f;
  for (const char* part : {"q_proj", "k_proj", "v_proj"})
    largest = std::max(largest, global(attention + part));
  EXPECT_EQ(shared, largest) << "amax of the group / 2688";
  EXPECT_NE(global(attention + "q_proj"), global(attention + "k_proj"));
  for (const QuantizedTensor& tensor : report.quantized) EXPECT_FALSE(tensor.shares_scale);
}

TEST_F(QuantizeModel, IncludeAndExclude) {
  add_model();
  QuantizeCheckpointOptions options;
  options.include = {"*k_proj*", "lm_head.weight", "*.v_proj.weight"};
  options.exclude = {"*v_proj*"};
  EXPECT_EQ(modules(quantize(options)), (Names{"lm_head", "model.layers.0.self_attn.k_proj"}));
  options.include.clear();
  options.exclude = {"*experts*", "*self_attn.?_proj*"};
  EXPECT_TRUE(fails_with(quantize_checkpoint(in_, options).status(), StatusCode::kNotFound,
                         "none to quantise"));
  for (const char* slip : {"*gate_prj*", "mlp", "model.norm.weight"}) {
    options.exclude.clear();
    options.include = {slip};
    EXPECT_TRUE(
        fails_with(quantize_checkpoint(in_, options).status(), StatusCode::kNotFound, slip));
  }
  options.include.clear();
  options.exclude = {"*gate_prj*"};
  EXPECT_TRUE(fails_with(quantize_checkpoint(in_, options).status(), StatusCode::kNotFound,
                         "exclude '*gate_prj*'"));
}

TEST_F(QuantizeModel, NanIsNamedWithFileTensorAndPlace) {
  add_model();
  std::vector<float> values(48 * 32, 1.0f);
  values[33] = std::numeric_limits<float>::quiet_NaN();
  const std::string name = "model.layers.0.mlp.experts.0.gate_proj.weight";
  in_.erase(name);
  ASSERT_TRUE(
      in_.add_copy(name, ElementType::kF32, {48, 32}, values.data(), values.size() * 4).ok());
  in_.set_origin("m.safetensors");
  const Status status = quantize_checkpoint(in_, {}).status();
  EXPECT_TRUE(
      fails_with(status, StatusCode::kInvalidArgument, "m.safetensors, tensor '" + name + "'"));
  EXPECT_TRUE(fails_with(status, StatusCode::kInvalidArgument, "NaN at row 1, column 1"));
}

TEST_F(QuantizeModel, ConfigsNameWhatIsNotQuantised) {
  add_model();
  QuantizeCheckpointReport report = quantize();
  json config = json::parse(hf_quant_config(report));
  EXPECT_EQ(config["quantization"]["quant_algo"], "W4A16_NVFP4");  // no input scales
  EXPECT_EQ(config["quantization"]["group_size"], 16);
  EXPECT_EQ(config["quantization"]["exclude_modules"], unquantized_modules(report));
  for (QuantizedTensor& tensor : report.quantized) tensor.has_input_scale = true;
  EXPECT_EQ(json::parse(hf_quant_config(report))["quantization"]["quant_algo"], "NVFP4");

  const Expected<std::string> modelopt = config_with_quantization(
      R"({"model_type":"qwen3_moe"})", "config.json", Convention::kModelOpt, report);
  ASSERT_TRUE(modelopt.ok()) << modelopt.status().message();
  config = json::parse(*modelopt);
  EXPECT_EQ(config["model_type"], "qwen3_moe");
  EXPECT_EQ(config["quantization_config"]["quant_method"], "modelopt");
  EXPECT_EQ(config["quantization_config"]["group_size"], 16);
  EXPECT_EQ(config["quantization_config"]["ignore"], unquantized_modules(report));

  const Expected<std::string> compressed =
      config_with_quantization("", "config.json", Convention::kCompressedTensors, report);
  ASSERT_TRUE(compressed.ok()) << compressed.status().message();
  const json group = json::parse(*compressed)["quantization_config"]["config_groups"]["group_0"];
  EXPECT_EQ(group["format"], "nvfp4-pack-quantized");
  EXPECT_EQ(group["input_activations"]["dynamic"], "local");
  EXPECT_EQ(group["weights"]["strategy"], "tensor_group");
  for (const char* part : {"weights", "input_activations"})
    EXPECT_EQ(group[part]["scale_dtype"], "torch.float8_e4m3fn");

  EXPECT_TRUE(fails_with(config_with_quantization(R"({"quantization_config":{}})", "c.json",
                                                  Convention::kModelOpt, report)
                             .status(),
                         StatusCode::kInvalidArgument, "quantised already"));
  for (const char* text : {"[]", "{", "null"}) {
    EXPECT_TRUE(
        fails_with(config_with_quantization(text, "c.json", Convention::kModelOpt, report).status(),
                   StatusCode::kCorruptFile, text[0] == '{' ? "valid JSON" : "no JSON object"));
  }
}

TEST_F(QuantizeModel, TheOutputIsRecognisedAsTheInput) {
  const test::TempDirectory directory;
  add("a.weight", {16, 16}, 1.0);
  const std::string path = directory / "m.safetensors";
  ASSERT_TRUE(write_safetensors(path, in_).ok());
  const Expected<TensorFile> file = TensorFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::create_symlink(path, directory / "link.safetensors");
  std::filesystem::create_hard_link(path, directory / "hard.safetensors");
  for (const std::string& same :
       {path, directory / "link.safetensors", directory / "hard.safetensors",
        directory / "./m.safetensors", directory.path(), directory / "."}) {
    EXPECT_TRUE(
        fails_with(check_not_input(same, *file), StatusCode::kInvalidArgument, "name another"))
        << same;
  }
  EXPECT_TRUE(check_not_input(directory / "other.safetensors", *file).ok());
}

}  // namespace
}  // namespace dualgemm::checkpoint
