// run --mlp: whole layers of checkpoints, against a computation that shares no code with the
// library, and against its own definition in double precision.
#include <nlohmann/json.hpp>

#include <cmath>

#include "checkpoint/npy.hpp"
#include "checkpoint/safetensors.hpp"
#include "run_program.hpp"
#include "support/rng.hpp"
#include "unit/checkpoint/checkpoint_test_support.hpp"

namespace dualgemm::test {
namespace {

using checkpoint::RawWeight;
using checkpoint::TensorFile;
using nlohmann::json;

constexpr int64_t kHidden = 64, kIntermediate = 96;

struct Expert {
  RawWeight gate, up, down;
  float gate_scale = 2e-4f, up_scale = 3e-4f, down_scale = 1.5e-4f;
  std::vector<float> down_bias;

  explicit Expert(Rng& rng)
      : gate(kIntermediate, kHidden, rng),
        up(kIntermediate, kHidden, rng),
        down(kHidden, kIntermediate, rng) {}

  // Y in double, and what rounding H to bf16 and X's products may move.
  void expect_row(const double* x, const double* y) const {
    const std::vector<double> g = decode(gate, gate_scale), u = decode(up, up_scale),
                              d = decode(down, down_scale);
    std::vector<double> h;
    for (int64_t j = 0; j < kIntermediate; ++j) {
      double gate_sum = 0.0, up_sum = 0.0;
      for (int64_t k = 0; k < kHidden; ++k) {
        gate_sum += x[k] * g[static_cast<size_t>(j * kHidden + k)];
        up_sum += x[k] * u[static_cast<size_t>(j * kHidden + k)];
      }
      h.push_back(gate_sum / (1.0 + std::exp(-gate_sum)) * up_sum);
    }
    for (int64_t i = 0; i < kHidden; ++i) {
      double sum = down_bias.empty() ? 0.0 : down_bias[static_cast<size_t>(i)], size = 0.0;
      for (int64_t j = 0; j < kIntermediate; ++j) {
        const double term =
            h[static_cast<size_t>(j)] * d[static_cast<size_t>(i * kIntermediate + j)];
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(y[i], sum, 0x1p-8 * size + 1e-6) << "column " << i;
    }
  }
};

class RunMlp : public CliTest {
 protected:
  static constexpr int64_t kRows = 7;

  Rng rng_;
  std::vector<Expert> experts_;
  std::vector<double> x_;

  void write_x(std::vector<int64_t> shape = {kRows, kHidden}) {
    checkpoint::TensorView sizes;
    sizes.shape = shape;
    std::vector<float> values;
    x_.clear();
    for (int64_t i = 0; i < sizes.elements(); ++i) {
      values.push_back(static_cast<float>(rng_.integer(-32, 32)) / 16.0f);  // exact in bf16
      x_.push_back(values.back());
    }
    TensorFile file;
    ASSERT_TRUE(add_bytes(file, "x", checkpoint::ElementType::kF32, std::move(shape), values).ok());
    ASSERT_TRUE(checkpoint::write_npy(path("x.npy"), file.tensors().begin()->second).ok());
  }

  // Llama's names.
  void write_layer(float x_scale = 0.0f, float h_scale = 0.0f) {
    experts_.emplace_back(rng_);
    const Expert& one = experts_.front();
    TensorFile file;
    add_modelopt(file, "model.layers.3.mlp.gate_proj", one.gate, {one.gate_scale}, x_scale);
    add_modelopt(file, "model.layers.3.mlp.up_proj", one.up, {one.up_scale}, x_scale);
    add_modelopt(file, "model.layers.3.mlp.down_proj", one.down, {one.down_scale}, h_scale);
    write(file);
    write_x();
  }
  // Mixtral's, in compressed-tensors' names: divisors.
  void write_experts(float x_scale = 0.0f, float h_scale = 0.0f) {
    TensorFile file;
    for (int64_t e = 0; e < 3; ++e) {
      experts_.emplace_back(rng_);
      Expert& one = experts_.back();
      const float powers[] = {0x1p-12f, 0x1p-11f, 0x1p-13f};  // their reciprocals are exact
      one.gate_scale = one.up_scale = powers[e];
      one.down_scale = 0x1p-12f;
      const std::string at = "model.layers.0.block_sparse_moe.experts." + std::to_string(e) + ".";
      const auto divisor = [&](float scale) { return scale > 0 ? 1.0f / scale : 0.0f; };
      add_compressed(file, at + "w1", one.gate, {1.0f / one.gate_scale}, divisor(x_scale));
      add_compressed(file, at + "w3", one.up, {1.0f / one.up_scale}, divisor(x_scale));
      add_compressed(file, at + "w2", one.down, {1.0f / one.down_scale},
                     divisor(h_scale * static_cast<float>(1 + e)));
    }
    write(file);
    write_x();
  }
  void write(const TensorFile& file) {
    ASSERT_TRUE(checkpoint::write_safetensors(path("w.safetensors"), file).ok());
  }

  ProgramResult run_mlp(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run",         path("w.safetensors"),
                                          "--mlp",       "--activations",
                                          path("x.npy"), "--check",
                                          "--out",       path("y.npy"),
                                          "--d-type",    "f32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  std::vector<double> y() const {
    const Expected<TensorFile> file = checkpoint::open_npy(path("y.npy"));
    if (!file) return {};
    const auto values = checkpoint::decode_to_f32(file->tensors().begin()->second);
    return values ? std::vector<double>(values->begin(), values->end()) : std::vector<double>();
  }
};

// AWQ: columns of X are multiplied first, as if X had been multiplied before it was written.
TEST_F(RunMlp, PreQuantScaleOfGateAndUp) {
  write_layer();
  const Expected<TensorFile> plain = TensorFile::open(path("w.safetensors"));
  ASSERT_TRUE(plain.ok());
  std::vector<float> factors;
  for (int64_t i = 0; i < kHidden; ++i) factors.push_back(i % 3 == 0 ? 0.5f : 2.0f);
  const auto with_factors = [&](const std::vector<const char*>& modules) {
    TensorFile file = *plain;
    for (const char* module : modules) {
      const std::string name = std::string("model.layers.3.mlp.") + module + ".pre_quant_scale";
      const auto size =
          static_cast<int64_t>(module == std::string("down_proj") ? kIntermediate : kHidden);
      std::vector<float> values = factors;
      values.resize(static_cast<size_t>(size), 4.0f);
      ASSERT_TRUE(add_bytes(file, name, checkpoint::ElementType::kF32, {size}, values).ok());
    }
    write(file);
  };
  with_factors({"gate_proj", "up_proj"});
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--prepared"}}) {
    const ProgramResult result = run_mlp(more);
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.err, "multiplied by the layer's pre_quant_scale")) << result;
    std::vector<double> x = x_;
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factors[i % kHidden];
    const std::vector<double> found = y();
    ASSERT_EQ(found.size(), static_cast<size_t>(kRows * kHidden));
    for (int64_t row = 0; row < kRows; ++row)
      experts_.front().expect_row(&x[static_cast<size_t>(row * kHidden)],
                                  &found[static_cast<size_t>(row * kHidden)]);
  }
  // Gate and Up alone, A in its own type and quantised.
  for (const char* type : {"bf16", "e2m1"}) {
    const ProgramResult result = run({"run", path("w.safetensors"), "--activations", path("x.npy"),
                                      "--a-type", type, "--check", "--out", path("d.npy")});
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.err, "multiplied by the layer's pre_quant_scale")) << result;
  }
  const ProgramResult report = run({"validate", path("w.safetensors")});
  EXPECT_TRUE(contains(report.out, "pre_quant_scale")) << report;
}

// Factors of H are powers of two, so that they are exact, and Y is what Down times them gives.
TEST_F(RunMlp, FactorsAndRotationsInFrontOfDown) {
  write_layer();
  ASSERT_EQ(run_mlp({}).exit_code, 0);
  const std::vector<double> before = y();
  const Expected<TensorFile> plain = TensorFile::open(path("w.safetensors"));
  ASSERT_TRUE(plain.ok());
  TensorFile file = *plain;
  const std::vector<float> factors(kIntermediate, 4.0f);
  ASSERT_TRUE(add_bytes(file, "model.layers.3.mlp.down_proj.pre_quant_scale",
                        checkpoint::ElementType::kF32, {kIntermediate}, factors)
                  .ok());
  write(file);
  ProgramResult result = run_mlp({});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "H multiplied by down's pre_quant_scale")) << result;
  std::vector<double> found = y();
  for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(found[i], 4.0 * before[i]) << i;
  result = run_mlp({"--quantize-h"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "H quantised with each row's amax, behind its transform"));

  write(*plain);
  write_text("config.json", R"({"quantization_config": {"quant_method": "compressed-tensors",
    "transform_config": {"config_groups": {"R": {"type": "hadamard", "head_dim": 32, "apply": [
      {"targets": ["re:.*_proj$"], "location": "input"}]}}}}})");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--prepared"}, {"--quantize-h"}}) {
    result = run_mlp(more);
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.err, "activations rotated by 32 columns")) << result;
    EXPECT_TRUE(contains(result.err, "H rotated by 32 columns")) << result;
    EXPECT_NE(y(), before);
  }
  result = run({"run", path("w.safetensors"), "--activations", path("x.npy"), "--check", "--out",
                path("d.npy")});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "activations rotated by 32 columns")) << result;
  write_text("config.json", R"({"quantization_config": {"quant_method": "compressed-tensors",
    "transform_config": {"config_groups": {"R": {"type": "hadamard", "head_dim": 32, "apply": [
      {"targets": ["re:.*_proj$"], "location": "output"}]}}}}})");
  result = run_mlp({});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "a transform at 'output'")) << result;
}

TEST_F(RunMlp, PreQuantScaleOfExperts) {
  write_experts();
  Expected<TensorFile> file = TensorFile::open(path("w.safetensors"));
  ASSERT_TRUE(file.ok());
  const auto factor = [](int64_t expert) { return std::ldexp(1.0f, static_cast<int>(expert) - 1); };
  for (int64_t e = 0; e < 3; ++e) {
    for (const char* module : {".w1", ".w3"}) {
      const std::string name = "model.layers.0.block_sparse_moe.experts." + std::to_string(e) +
                               module + ".pre_quant_scale";
      const std::vector<float> values(kHidden, factor(e));
      ASSERT_TRUE(add_bytes(*file, name, checkpoint::ElementType::kF32, {kHidden}, values).ok());
    }
  }
  write(*file);
  write_text("rows.txt", "2 1 4");
  const ProgramResult result = run_mlp({"--experts", "--expert-tokens", path("rows.txt")});
  ASSERT_EQ(result.exit_code, 0) << result;
  const std::vector<double> found = y();
  ASSERT_EQ(found.size(), static_cast<size_t>(kRows * kHidden));
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t expert = row < 2 ? 0 : row < 3 ? 1 : 2;
    std::vector<double> x(x_.begin() + row * kHidden, x_.begin() + (row + 1) * kHidden);
    for (double& value : x) value *= factor(expert);
    experts_[static_cast<size_t>(expert)].expect_row(x.data(),
                                                     &found[static_cast<size_t>(row * kHidden)]);
  }
  EXPECT_EQ(
      run({"run", path("w.safetensors"), "--experts", "--expert-tokens", path("rows.txt"),
           "--activations", path("x.npy"), "--a-type", "bf16", "--check", "--out", path("d.npy")})
          .exit_code,
      0);
}

TEST_F(RunMlp, ALayerOfLlama) {
  write_layer();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--prepared"}, {"--isa", "scalar"}, {"--threads", "2"}}) {
    const ProgramResult result = run_mlp(more);
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.out, "model.layers.3.mlp"));
    EXPECT_TRUE(contains(result.out, "hidden 64, intermediate 96, X bf16 -> H bf16 -> Y f32"));
    EXPECT_TRUE(contains(result.out, "ok, 448 elements within the bound"));
    EXPECT_TRUE(contains(result.err, "activations rounded from F32 to bf16"));
    const std::vector<double> found = y();
    ASSERT_EQ(found.size(), static_cast<size_t>(kRows * kHidden));
    for (int64_t row = 0; row < kRows; ++row)
      experts_[0].expect_row(&x_[static_cast<size_t>(row * kHidden)],
                             &found[static_cast<size_t>(row * kHidden)]);
  }
}

TEST_F(RunMlp, FourBitActivationsWithTheCheckpointsScales) {
  write_layer(2.0f / 2688.0f, 0.01f);
  for (const char* d_type : {"f16", "bf16", "f32"}) {
    const ProgramResult result =
        run({"run", path("w.safetensors"), "--mlp", "--activations", path("x.npy"), "--quantize-x",
             "--quantize-h", "--check", "--d-type", d_type, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.err, "X quantised with the checkpoint's input scale"));
    EXPECT_TRUE(contains(result.err, "H quantised with the checkpoint's input scale"));
    const json report = json::parse(result.out);
    EXPECT_EQ(report["check"]["passed"], true);
    EXPECT_EQ(report["check"]["compared"], kRows * kHidden);
    EXPECT_EQ(report["quantize_x"], true);
    EXPECT_EQ(report["gate_up"]["device"], "cpu");
    EXPECT_GT(report["workspace_bytes"], 0);
  }
}

TEST_F(RunMlp, ScalesThatTheCheckpointLacks) {
  write_layer();
  const ProgramResult without = run_mlp({"--quantize-h"});
  EXPECT_EQ(without.exit_code, 1) << without;
  EXPECT_TRUE(contains(without.err, "--h-global-scale: not given"));
  for (const char* quantized : {"--quantize-x", "--quantize-h"}) {
    const ProgramResult result =
        run_mlp({"--quantize-h", "--h-global-scale", "0.02",
                 std::string(quantized) == "--quantize-h" ? "--batch-invariant" : quantized});
    EXPECT_EQ(result.exit_code, 0) << result;
  }
  EXPECT_TRUE(contains(run_mlp({"--quantize-x"}).err, "X quantised with each row's amax"));
}

TEST_F(RunMlp, ExpertsOfMixtral) {
  write_experts();
  write_text("counts.txt", "2 0 5");
  const ProgramResult result = run_mlp({"--experts", "--expert-tokens", path("counts.txt")});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.out, "3 experts, contiguous"));
  EXPECT_TRUE(contains(result.out, "ok, 448 elements"));
  const std::vector<double> grouped = y();
  for (int64_t row = 0; row < kRows; ++row)
    experts_[row < 2 ? 0 : 2].expect_row(&x_[static_cast<size_t>(row * kHidden)],
                                         &grouped[static_cast<size_t>(row * kHidden)]);
  // One expert is a layer of its own.
  ASSERT_EQ(run_mlp({"--prefix", "model.layers.0", "--expert", "2"}).exit_code, 0);
  const std::vector<double> alone = y();
  for (size_t i = 2 * kHidden; i < kRows * kHidden; ++i) ASSERT_EQ(alone[i], grouped[i]) << i;
}

TEST_F(RunMlp, ExpertsInFourBits) {
  write_experts(0x1p-10f, 0x1p-9f);
  write_text("offsets.txt", "0 0 7 7");
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--quantize-x"},
                                               {"--quantize-h"},
                                               {"--quantize-x", "--quantize-h", "--prepared"}}) {
    std::vector<std::string> all = {"--experts", "--expert-tokens", path("offsets.txt")};
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult result = run_mlp(all);
    EXPECT_EQ(result.exit_code, 0) << result;
  }
}

TEST_F(RunMlp, MaskedExperts) {
  write_experts();
  write_x({3, 4, kHidden});
  write_text("counts.txt", "4 0 1");
  const ProgramResult result =
      run_mlp({"--experts", "--masked", "--expert-tokens", path("counts.txt")});
  ASSERT_EQ(result.exit_code, 0) << result;
  const std::vector<double> found = y();
  ASSERT_EQ(found.size(), static_cast<size_t>(3 * 4 * kHidden));
  for (const int64_t row : {0, 1, 2, 3, 8}) {
    experts_[static_cast<size_t>(row / 4)].expect_row(&x_[static_cast<size_t>(row * kHidden)],
                                                      &found[static_cast<size_t>(row * kHidden)]);
  }
  for (size_t i = 4 * kHidden; i < 8 * kHidden; ++i) ASSERT_EQ(found[i], 0.0) << i;
}

TEST_F(RunMlp, ExpertsWithoutAnyRows) {
  write_experts();
  write_x({3, 4, kHidden});
  write_text("counts.txt", "0 0 0");
  const ProgramResult result =
      run_mlp({"--experts", "--masked", "--expert-tokens", path("counts.txt")});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.out, "ok, no rows to compare"));
  for (const double value : y()) ASSERT_EQ(value, 0.0);
}

TEST_F(RunMlp, BiasOfDown) {
  Expert one(rng_);
  for (int64_t i = 0; i < kHidden; ++i) one.down_bias.push_back(rng_.normal());
  TensorFile file;
  add_modelopt(file, "mlp.gate_proj", one.gate, {one.gate_scale}, 0.0f);
  add_modelopt(file, "mlp.up_proj", one.up, {one.up_scale}, 0.0f);
  add_modelopt(file, "mlp.down_proj", one.down, {one.down_scale}, 0.0f);
  ASSERT_TRUE(
      add_bytes(file, "mlp.down_proj.bias", checkpoint::ElementType::kF32, {kHidden}, one.down_bias)
          .ok());
  write(file);
  write_x();
  const ProgramResult result = run_mlp({});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "the layer has biases"));
  one.expect_row(x_.data(), y().data());
}

TEST_F(RunMlp, WhatIsMissingOrDoesNotFitIsNamed) {
  Expert one(rng_);
  TensorFile file;
  add_modelopt(file, "mlp.gate_proj", one.gate, {one.gate_scale}, 0.0f);
  add_modelopt(file, "mlp.up_proj", one.up, {one.up_scale}, 0.0f);
  write(file);
  write_x();
  ProgramResult result = run_mlp({});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "mlp.down_proj"));
  add_modelopt(file, "mlp.down_proj", one.gate, {one.down_scale}, 0.0f);  // the wrong way round
  write(file);
  result = run_mlp({});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "mlp.down_proj.weight: 96 x 64; must be 64 x 96"));
  EXPECT_EQ(files(), (std::vector<std::string>{"w.safetensors", "x.npy"}));
}

TEST_F(RunMlp, ActivationsThatDoNotFit) {
  write_layer();
  write_x({kRows, kHidden + 16});
  const ProgramResult result = run_mlp({});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "must be [..., K], K = 64"));
}

// Up and Down alone, by every name: H = act(up(x)). The same bits whichever names.
TEST_F(RunMlp, WithoutAGate) {
  experts_.emplace_back(rng_);
  const Expert& one = experts_.front();
  write_x();
  std::vector<double> first;
  for (const auto& [up, down] : {std::pair{"up_proj", "down_proj"}, {"fc1", "fc2"}, {"wi", "wo"}}) {
    TensorFile file;
    const std::string at = "model.layers.3.mixer.";
    add_modelopt(file, at + up, one.up, {one.up_scale}, 0.0f);
    add_modelopt(file, at + down, one.down, {one.down_scale}, 0.0f);
    write(file);
    const ProgramResult result =
        run_mlp({"--prefix", "model.layers.3.mixer", "--act", "gelu_tanh"});
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.out, "\nup            ")) << result;
    if (first.empty()) first = y();
    EXPECT_EQ(y(), first);
  }
  // In double, from the codes; bf16 H has 2^-9 of itself.
  const std::vector<double> up = decode(one.up, one.up_scale),
                            down = decode(one.down, one.down_scale);
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> h(kIntermediate);
    for (int64_t i = 0; i < kIntermediate; ++i) {
      double sum = 0.0;
      for (int64_t k = 0; k < kHidden; ++k)
        sum +=
            x_[static_cast<size_t>(row * kHidden + k)] * up[static_cast<size_t>(i * kHidden + k)];
      h[static_cast<size_t>(i)] =
          0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
    }
    for (int64_t col = 0; col < kHidden; ++col) {
      double want = 0.0, magnitude = 0.0;
      for (int64_t i = 0; i < kIntermediate; ++i) {
        const double term =
            h[static_cast<size_t>(i)] * down[static_cast<size_t>(col * kIntermediate + i)];
        want += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(first[static_cast<size_t>(row * kHidden + col)], want, 0x1p-7 * magnitude + 1e-9);
    }
  }
  const ProgramResult clamped =
      run_mlp({"--prefix", "model.layers.3.mixer", "--act", "swiglu_oai"});
  EXPECT_EQ(clamped.exit_code, 2) << clamped;  // is of two products
}

TEST_F(RunMlp, ExpertsWithoutAGate) {
  TensorFile file;
  for (int64_t e = 0; e < 3; ++e) {
    experts_.emplace_back(rng_);
    const std::string at = "backbone.layers.1.mixer.experts." + std::to_string(e) + ".";
    add_modelopt(file, at + "up_proj", experts_.back().up, {experts_.back().up_scale}, 0.0f);
    add_modelopt(file, at + "down_proj", experts_.back().down, {experts_.back().down_scale}, 0.0f);
  }
  write(file);
  write_x();
  write_text("rows.txt", "2 1 4");
  ASSERT_EQ(run_mlp({"--prefix", "backbone.layers.1.mixer", "--experts", "--expert-tokens",
                     path("rows.txt"), "--act", "sigmoid"})
                .exit_code,
            0);
  const std::vector<double> all = y();
  for (const auto& [expert, begin, rows] : {std::tuple{0, 0, 2}, {1, 2, 1}, {2, 3, 4}}) {
    const ProgramResult alone = run_mlp({"--prefix", "backbone.layers.1.mixer", "--expert",
                                         std::to_string(expert), "--act", "sigmoid"});
    ASSERT_EQ(alone.exit_code, 0) << alone;
    const std::vector<double> found = y();
    for (int64_t i = begin * kHidden; i < (begin + rows) * kHidden; ++i) {
      ASSERT_NEAR(all[static_cast<size_t>(i)], found[static_cast<size_t>(i)],
                  1e-5 * std::abs(found[static_cast<size_t>(i)]) + 1e-7);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
