// validate of a model's folder: its formats as a table, what config and tensors say of each other,
// what lacks.
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.hpp"
#include "checkpoint/tensor.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using checkpoint::ElementType;
using checkpoint::TensorFile;
using nlohmann::json;

class ValidateModel : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    std::filesystem::create_directory(path("model"));
    EXPECT_EQ(run({"make-layer", "--out", path("layer.safetensors"), "--n", "48", "--k", "64",
                   "--mlp", "--prefix", "model.layers.0.mlp"})
                  .exit_code,
              0);
    quantize();
    const Expected<TensorFile> made = TensorFile::open(path("q.safetensors"));
    ASSERT_TRUE(made.ok());
    file = *made;
    add("model.layers.1.self_attn.q_proj.weight", ElementType::kBF16, {64, 64});
    add("model.embed_tokens.weight", ElementType::kBF16, {32, 64});
  }
  void add(const std::string& name, ElementType type, std::vector<int64_t> shape) {
    int64_t bytes = checkpoint::bits_of(type) / 8;
    for (const int64_t extent : shape) bytes *= extent;
    const std::vector<uint8_t> zeros(static_cast<size_t>(bytes));
    ASSERT_TRUE(file.add_copy(name, type, std::move(shape), zeros.data(), zeros.size()).ok());
  }
  void add_fp8(const std::string& module) {
    add(module + ".weight", ElementType::kF8E4M3, {64, 64});
    add(module + ".weight_scale", ElementType::kF32, {64, 1});
  }
  ProgramResult validate(const std::string& config, const std::vector<std::string>& more = {}) {
    EXPECT_TRUE(checkpoint::write_safetensors(path("model/model.safetensors"), file).ok());
    std::ofstream(path("model/config.json")) << config;
    std::vector<std::string> all = {"validate", path("model")};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  static std::string config(const std::string& quantization, int layers = 2) {
    return "{\"num_hidden_layers\": " + std::to_string(layers) +
           ", \"rope\": Infinity, \"quantization_config\": " + quantization + "}";
  }

  TensorFile file;
};

TEST_F(ValidateModel, CountsFormats) {
  const ProgramResult result = validate(config(R"({"quant_method": "modelopt",
    "quant_algo": "NVFP4", "ignore": ["*self_attn*"], "kv_cache_quant_algo": "FP8"})"));
  EXPECT_EQ(result.exit_code, 0) << result;
  for (const char* part : {"quantisation: modelopt, NVFP4", "attention  float", "mlp        NVFP4",
                           "on this machine", "tokens a second: not measured"})
    EXPECT_TRUE(contains(result.out, part));
  EXPECT_TRUE(contains(result.err, "kv_cache_quant_algo"));
  const json report = json::parse(
      validate(config("{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\"}"), {"--json"})
          .out);
  EXPECT_EQ(report["passed"], true);
  const json& formats = report["model"]["formats"];
  ASSERT_EQ(formats.size(), 2u);
  EXPECT_EQ(formats[0]["layers"], "mlp");
  EXPECT_EQ(formats[0]["format"], "nvfp4");
  EXPECT_EQ(formats[0]["activations"], "static");
  EXPECT_EQ(formats[0]["count"], 3);
  EXPECT_EQ(formats[1]["format"], "float");
  ASSERT_EQ(report["model"]["notes"].size(), 1u) << "left in 16 bits against the config's word";
  EXPECT_TRUE(contains(report["model"]["notes"][0],
                       "1 of 4 layers: quant_algo says NVFP4; the "
                       "tensors, which count, are float: "
                       "model.layers.1.self_attn.q_proj"));
}

TEST_F(ValidateModel, MixedPrecision) {
  add_fp8("model.layers.1.self_attn.k_proj");
  const std::string mixed = config(R"({"quant_method": "compressed-tensors", "config_groups": {
    "FP8_DYNAMIC": ["re:.*k_proj"], "NVFP4A16": ["re:.*mlp.*"]}})");
  const ProgramResult result = validate(mixed);
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.out, "attention  FP8 channel  dynamic"));
  EXPECT_EQ(result.err.find("groups"), std::string::npos) << "nothing to say: " << result;
  add_fp8("model.layers.1.mlp.experts.0.up_proj");
  const ProgramResult experts = validate(mixed);
  EXPECT_EQ(experts.exit_code, 1);
  EXPECT_TRUE(contains(experts.err, "1 experts layers: load() does not read FP8 channel"));
}

TEST_F(ValidateModel, NeverCallsSoundWhatLoadRefuses) {
  add("model.layers.1.mlp.up_proj.weight", ElementType::kI8, {64, 64});
  const ProgramResult result = validate(config("null"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "1 mlp layers: load() does not read I8"));
  EXPECT_TRUE(contains(result.err, "not sound"));
}

TEST_F(ValidateModel, MissingLayersAndBrokenConfigs) {
  EXPECT_EQ(validate(config("null")).exit_code, 0);
  ProgramResult result = validate(config("null", 5));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err,
                       "config.json says 5 layers; model.layers.2 has no tensor, nor "
                       "have 2 more"));
  result = validate("{\"num_hidden_layers\": 2,");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "not valid JSON"));
  result = validate(config(R"({"quant_method": "compressed-tensors", "transform_config":
    {"config_groups": {"R4": {"apply": [{"location": "input"}]}}}})"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "an online transform of type"));
  // One layer alone: the model around it is not judged.
  EXPECT_EQ(validate("{", {"--prefix", "model.layers.0.mlp"}).exit_code, 0);
}

// A thousand equal disagreements are one line.
TEST_F(ValidateModel, EqualDisagreementsAreOneLine) {
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    add("model.layers.1.experts." + number + ".proj.weight", ElementType::kBF16, {16, 16});
  }
  const ProgramResult result =
      validate(config("{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\"}"));
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 3) << result;
  EXPECT_TRUE(contains(result.err, "1001 of 1004 layers"));
  EXPECT_TRUE(contains(result.err, "and 998 more"));
}

}  // namespace
}  // namespace dualgemm::test
