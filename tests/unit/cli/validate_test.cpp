// validate: all that a run would use is judged, in linear time and few lines.
#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using checkpoint::ElementType;
using checkpoint::TensorFile;
using nlohmann::json;

class Validate : public CliTest {
 protected:
  static constexpr const char* kLayer = "model.layers.0.mlp";

  // A whole NVFP4 layer, N 48 and K 64; `experts` 0: one.
  TensorFile quantized(int experts = 0) {
    std::vector<std::string> make = {
        "make-layer", "--out", path("layer.safetensors"), "--n", "48", "--k", "64", "--mlp"};
    if (experts > 0) make.insert(make.end(), {"--experts", std::to_string(experts)});
    EXPECT_EQ(run(make).exit_code, 0);
    quantize();
    Expected<TensorFile> file = TensorFile::open(path("q.safetensors"));
    EXPECT_TRUE(file.ok());
    return file.ok() ? *file : TensorFile();
  }
  void set_scalar(TensorFile& file, const std::string& name, float value) {
    file.erase(name);
    ASSERT_TRUE(file.add_copy(name, ElementType::kF32, {}, &value, 4).ok());
  }
  void set_byte(TensorFile& file, const std::string& name, size_t at, uint8_t value) {
    const checkpoint::TensorView* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr);
    std::vector<std::byte> bytes(tensor->data.begin(), tensor->data.end());
    bytes[at] = std::byte{value};
    const std::vector<int64_t> shape = tensor->shape;
    const ElementType type = tensor->dtype;
    file.erase(name);
    ASSERT_TRUE(file.add(name, type, shape, bytes).ok());
  }
  ProgramResult validate(const TensorFile& file, const std::vector<std::string>& more = {}) {
    EXPECT_TRUE(checkpoint::write_safetensors(path("v.safetensors"), file).ok());
    std::vector<std::string> all = {"validate", path("v.safetensors")};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  void refused(const TensorFile& file, const std::string& part) {
    const ProgramResult result = validate(file);
    EXPECT_EQ(result.exit_code, 1) << part << "\n" << result;
    EXPECT_TRUE(contains(result.err, part));
    EXPECT_TRUE(contains(result.err, "not sound"));
  }
  static int64_t lines(const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  }
};

TEST_F(Validate, JudgesDown) {
  const TensorFile sound = quantized();
  const std::string down = std::string(kLayer) + ".down_proj";
  EXPECT_EQ(validate(sound).exit_code, 0);
  const json report = json::parse(validate(sound, {"--json"}).out)["layers"][0];
  EXPECT_EQ(report["down"], json({{"type", "e2m1"}, {"n", 64}, {"k", 48}}));
  EXPECT_EQ(report["down_scales"]["nan"], 0);
  for (const char* part : {".weight", ".weight_scale", ".weight_scale_2"}) {
    TensorFile file = sound;
    file.erase(down + part);
    refused(file, down + part);
  }
  for (const float value : {std::nanf(""), INFINITY, 0.0f, -1.0f}) {
    TensorFile file = sound;
    set_scalar(file, down + ".weight_scale_2", value);
    refused(file, down + ".weight_scale_2");
    file = sound;
    set_scalar(file, down + ".input_scale", value);
    if (std::isnan(value) || value == 0.0f) {  // never written: as if there were none
      EXPECT_EQ(validate(file).exit_code, 0);
      continue;
    }
    refused(file, down + ".input_scale");
  }
  TensorFile file = sound;
  set_byte(file, down + ".weight_scale", 4, 0x7F);
  refused(file, "NaN at row 1, block 1");
  // Another layer's Down: of another shape, with a bias of another length.
  file = sound;
  const std::vector<float> values(64 * 32, 1.0f);
  for (const char* part : {".weight", ".weight_scale", ".weight_scale_2"}) file.erase(down + part);
  EXPECT_EQ(validate(file).exit_code, 0) << "a layer without Down";
  ASSERT_TRUE(
      file.add_copy(down + ".weight", ElementType::kF32, {64, 32}, values.data(), 64 * 32 * 4)
          .ok());
  refused(file, "must be 64 x 48, as gate and up are 48 x 64");
  file = sound;
  ASSERT_TRUE(file.add_copy(down + ".bias", ElementType::kF32, {48}, values.data(), 48 * 4).ok());
  refused(file, down + ".bias");
}

TEST_F(Validate, JudgesScalesOfGateAndUp) {
  const TensorFile sound = quantized();
  for (const std::string module : {".gate_proj", ".up_proj"}) {
    const std::string at = kLayer + module;
    TensorFile file = sound;
    set_byte(file, at + ".weight_scale", 9, 0xFF);
    refused(file, "NaN at row 2, block 1");
    const ProgramResult allowed = validate(file, {"--allow-nan"});
    EXPECT_EQ(allowed.exit_code, 0) << allowed;
    EXPECT_TRUE(contains(allowed.err, "1 NaN and 1 negative block scales"));
    EXPECT_EQ(validate(file, {"--allow-nan", "--strict"}).exit_code, 1);
    const json report = json::parse(validate(file, {"--json"}).out)["layers"][0];
    EXPECT_EQ(report["readable"], false);
    EXPECT_EQ(report[module == ".up_proj" ? "up_scales" : "gate_scales"]["nan"], 1);
    file = sound;
    set_byte(file, at + ".weight_scale", 9, 0xB8);
    EXPECT_EQ(validate(file).exit_code, 0) << "negative alone";
    EXPECT_EQ(validate(file, {"--strict"}).exit_code, 1);
    file = sound;
    set_scalar(file, at + ".weight_scale_2", INFINITY);
    refused(file, "value inf");
    EXPECT_EQ(validate(file, {"--allow-nan"}).exit_code, 0);
  }
}

// run refuses what validate refuses, and takes it where it is allowed.
TEST_F(Validate, RunDoesTheSame) {
  TensorFile file = quantized();
  set_byte(file, std::string(kLayer) + ".down_proj.weight_scale", 4, 0x7F);
  ASSERT_TRUE(checkpoint::write_safetensors(path("v.safetensors"), file).ok());
  ASSERT_EQ(run({"make-layer", "--out", path("o.safetensors"), "--activations", path("x.npy"),
                 "--m", "3", "--n", "48", "--k", "64"})
                .exit_code,
            0);
  const std::vector<std::string> command = {"run", path("v.safetensors"), "--activations",
                                            path("x.npy"), "--check"};
  EXPECT_EQ(run(command).exit_code, 0) << "Down is not read";
  std::vector<std::string> mlp = command;
  mlp.push_back("--mlp");
  const ProgramResult refused = run(mlp);
  EXPECT_EQ(refused.exit_code, 1) << refused;
  EXPECT_TRUE(contains(refused.err, "--allow-nan"));
  mlp.push_back("--allow-nan");
  const ProgramResult allowed = run(mlp);
  EXPECT_EQ(allowed.exit_code, 0) << allowed;
  set_byte(file, std::string(kLayer) + ".up_proj.weight_scale", 4, 0x7F);
  ASSERT_TRUE(checkpoint::write_safetensors(path("v.safetensors"), file).ok());
  EXPECT_EQ(run(command).exit_code, 1);
  std::vector<std::string> verify = {"verify",        "--weights",   path("v.safetensors"),
                                     "--activations", path("x.npy"), "--strategies",
                                     "fused"};
  EXPECT_EQ(run(verify).exit_code, 1);
  verify.push_back("--allow-nan");
  const ProgramResult verified = run(verify);
  EXPECT_EQ(verified.exit_code, 0) << verified;
}

TEST_F(Validate, JudgesExpertsTogether) {
  const TensorFile sound = quantized(4);
  EXPECT_EQ(validate(sound).exit_code, 0);
  const auto without = [&](const std::string& part) {
    TensorFile file = sound;
    for (const auto& [name, tensor] : sound.tensors()) {
      if (name.find(part) != name.npos) file.erase(name);
    }
    return file;
  };
  refused(without("experts.2."), "there is no expert 2 before it");
  refused(without("experts.2.down_proj"), "no Down beside experts with one");
  refused(without("experts.2.gate_proj.weight_scale_2"), "gate_proj.weight_scale_2");
  TensorFile missing = without("experts.2.gate_proj.weight_scale");
  EXPECT_EQ(validate(missing).exit_code, 1);
  missing = sound;
  missing.erase(std::string(kLayer) + ".experts.2.gate_proj.weight");
  refused(missing, "experts.2");
  ASSERT_EQ(run({"make-layer", "--out", path("layer.safetensors"), "--n", "32", "--k", "64",
                 "--mlp", "--prefix", std::string(kLayer) + ".experts.2"})
                .exit_code,
            0);
  quantize();
  const Expected<TensorFile> other = TensorFile::open(path("q.safetensors"));
  ASSERT_TRUE(other.ok());
  TensorFile mixed = without("experts.2.");
  mixed.share_memory_of(*other);
  for (const auto& [name, tensor] : other->tensors()) ASSERT_TRUE(mixed.add(tensor).ok());
  refused(mixed, "32 x 64, beside 48 x 64; all experts of a layer must have the same shape");
}

// One line for each layer would be as many as a model has experts.
TEST_F(Validate, EqualDefectsTakeFewLines) {
  TensorFile file;
  const uint8_t zeros[8] = {};
  for (int e = 0; e < 500; ++e) {
    for (const char* name : {".gate_proj", ".up_proj"}) {
      const std::string at = "m.mlp.experts." + std::to_string(e) + name;
      ASSERT_TRUE(file.add_copy(at + ".weight", ElementType::kU8, {1, 8}, zeros, 8).ok());
      ASSERT_TRUE(file.add_copy(at + ".weight_scale", ElementType::kF8E4M3, {1, 1}, zeros, 1).ok());
      const float value = e % 2 == 0 ? std::nanf("") : 1.0f;
      if (e % 2 == 1 && name[1] == 'g') continue;
      ASSERT_TRUE(file.add_copy(at + ".weight_scale_2", ElementType::kF32, {}, &value, 4).ok());
    }
  }
  const ProgramResult result = validate(file);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(lines(result.err), 2 * 20 + 1) << result.err;
  EXPECT_TRUE(contains(result.err, "and 230 more layers like it"));
  EXPECT_TRUE(contains(result.err, "nearest names: m.mlp.experts.0.gate_proj.weight_scale_2"));
  EXPECT_TRUE(contains(result.err, "not sound; `run` can use 0 of 500 layers"));
}

}  // namespace
}  // namespace dualgemm::test
