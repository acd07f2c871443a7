// checkpoint.hpp and checkpoint.h as users call them.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint_test_support.hpp"
#include "dualgemm/checkpoint.h"
#include "dualgemm/checkpoint.hpp"
#include "dualgemm/dualgemm.hpp"
#include "io_test_support.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm {
namespace {

using checkpoint::RawWeight;
using test::fails_with;

class PublicCheckpoint : public ::testing::Test {
 protected:
  static constexpr int64_t kN = 8, kK = 32;

  PublicCheckpoint() : gate_(kN, kK, rng_), up_(kN, kK, rng_), path_(directory_ / "m.safetensors") {
    checkpoint::add_modelopt(file_, "a.mlp.gate_proj", gate_, {0.5f}, 0.25f);
    checkpoint::add_modelopt(file_, "a.mlp.up_proj", up_, {2.0f}, 0.25f);
    checkpoint::add_modelopt(file_, "b.mlp.gate_proj", gate_, {0.5f}, 0.25f);
    checkpoint::add_modelopt(file_, "b.mlp.up_proj", up_, {2.0f}, 0.125f);
    const std::vector<float> bias(kN, 1.0f);
    EXPECT_TRUE(checkpoint::add_bytes(file_, "c.mlp.gate_proj.bias", checkpoint::ElementType::kF32,
                                      {kN}, bias)
                    .ok());
    checkpoint::add_modelopt(file_, "c.mlp.gate_proj", gate_, {0.5f}, 0.0f);
    checkpoint::add_modelopt(file_, "c.mlp.up_proj", up_, {2.0f}, 0.0f);
    EXPECT_TRUE(checkpoint::write_safetensors(path_, file_).ok());
  }
  // Row 0 of D for activations of ones: sums of rows of the weights, identity activation.
  std::vector<double> expected() const {
    const std::vector<double> gate = decode(gate_, 0.5), up = decode(up_, 2.0);
    std::vector<double> d;
    for (int64_t row = 0; row < kN; ++row) {
      double g = 0, u = 0;
      for (int64_t col = 0; col < kK; ++col) {
        g += gate[static_cast<size_t>(row * kK + col)];
        u += up[static_cast<size_t>(row * kK + col)];
      }
      d.push_back(g * u);
    }
    return d;
  }
  void expect_near(const std::vector<float>& d) const {
    const std::vector<double> wanted = expected();
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(d[i], wanted[i], 1e-5 * std::abs(wanted[i]) + 1e-3) << i;
  }

  test::Rng rng_;
  RawWeight gate_, up_;
  test::TempDirectory directory_;
  std::string path_;
  checkpoint::TensorFile file_;
  const std::vector<uint8_t> ones_ = std::vector<uint8_t>(kK / 2, 0x22), scales_{0x38, 0x38};
};

TEST_F(PublicCheckpoint, FromAFileToAResult) {
  std::optional<CheckpointLayer> layer;
  {
    const Expected<Checkpoint> opened = Checkpoint::open(path_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    ASSERT_EQ(opened->layers().size(), 3u);
    EXPECT_EQ(opened->layers()[0].prefix, "a.mlp");
    EXPECT_EQ(opened->layers()[0].experts, 0);
    const Expected<CheckpointLayer> loaded = opened->load("a.mlp");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    layer = *loaded;
  }  // the layer keeps the file mapped
  EXPECT_EQ(layer->input_scale(), 0.25f);
  EXPECT_STREQ(layer->convention(), "modelopt");
  Problem problem{.m = 1};
  problem.d.type = DataType::kF32;
  problem.act.kind = ActivationKind::kIdentity;
  std::vector<float> d(kN);
  Buffers buffers{.a = ones_.data(), .a_scales = scales_.data()};
  buffers.d = d.data();
  layer->describe(problem);
  layer->attach_to(buffers, 1.0f);
  const Status status = run(problem, buffers);
  ASSERT_TRUE(status.ok()) << status.message();
  expect_near(d);
}

// c.mlp is a.mlp with 1 added to each sum of Gate.
TEST_F(PublicCheckpoint, ABiasIsAttached) {
  const Expected<Checkpoint> opened = Checkpoint::open(path_);
  ASSERT_TRUE(opened.ok());
  const Expected<CheckpointLayer> layer = opened->load("c.mlp"), plain = opened->load("a.mlp");
  ASSERT_TRUE(layer.ok() && plain.ok()) << layer.status().message();
  Problem problem{.m = 1};
  problem.d.type = DataType::kF32;
  problem.act.kind = ActivationKind::kIdentity;
  std::vector<float> d(kN);
  Buffers buffers{.a = ones_.data(), .a_scales = scales_.data()};
  buffers.d = d.data();
  layer->describe(problem);
  EXPECT_EQ(problem.bias, BiasType::kF32);
  layer->attach_to(buffers, 1.0f);
  ASSERT_EQ(run(problem, buffers).message(), "ok");
  const std::vector<double> gate = decode(gate_, 0.5), up = decode(up_, 2.0);
  for (size_t row = 0; row < kN; ++row) {
    double g = 1.0, u = 0.0;
    for (size_t col = row * kK; col < (row + 1) * kK; ++col) g += gate[col], u += up[col];
    EXPECT_NEAR(d[row], g * u, 1e-5 * std::abs(g * u) + 1e-3) << row;
  }
  plain->describe(problem);  // nothing of the other layer stays
  plain->attach_to(buffers, 1.0f);
  ASSERT_EQ(run(problem, buffers).message(), "ok");
  expect_near(d);
}

TEST_F(PublicCheckpoint, RefusalsAreStatuses) {
  EXPECT_TRUE(fails_with(Checkpoint::open(directory_ / "none.safetensors").status(),
                         StatusCode::kNotFound, "none.safetensors"));
  const Expected<Checkpoint> opened = Checkpoint::open(path_);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(fails_with(opened->load("b.mlp").status(), StatusCode::kCorruptFile,
                         "LayerOptions::max_input_scale"));
  CheckpointOptions options;
  options.max_input_scale = true;
  EXPECT_EQ(opened->load("b.mlp", options)->input_scale(), 0.25f);
  EXPECT_TRUE(fails_with(opened->load("d.mlp").status(), StatusCode::kNotFound, "nearest"));
}

TEST_F(PublicCheckpoint, FromC) {
  dualgemm_checkpoint* opened = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_open(path_.c_str(), &opened), DUALGEMM_OK);
  EXPECT_EQ(dualgemm_checkpoint_layer_count(opened), 3);
  EXPECT_STREQ(dualgemm_checkpoint_layer_name(opened, 1), "b.mlp");
  EXPECT_EQ(dualgemm_checkpoint_layer_name(opened, 3), nullptr);
  EXPECT_EQ(dualgemm_checkpoint_layer_name(opened, -1), nullptr);
  dualgemm_checkpoint_layer* layer = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_load(opened, "c.mlp", -1, 0, &layer), DUALGEMM_OK);
  dualgemm_problem with_bias;
  dualgemm_buffers biases;
  dualgemm_problem_init(&with_bias, offsetof(dualgemm_problem, bias));  // of an older header
  dualgemm_buffers_init(&biases, sizeof biases);
  EXPECT_EQ(dualgemm_checkpoint_layer_apply(layer, 1.0f, &with_bias, &biases),
            DUALGEMM_INVALID_ARGUMENT);
  dualgemm_problem_init(&with_bias, sizeof with_bias);
  ASSERT_EQ(dualgemm_checkpoint_layer_apply(layer, 1.0f, &with_bias, &biases), DUALGEMM_OK);
  EXPECT_EQ(with_bias.bias, DUALGEMM_BIAS_F32);
  EXPECT_EQ(*static_cast<const float*>(biases.bias_gate), 1.0f);
  EXPECT_EQ(*static_cast<const float*>(biases.bias_up), 0.0f);
  dualgemm_checkpoint_layer_free(layer);
  layer = nullptr;
  EXPECT_EQ(dualgemm_checkpoint_load(opened, "a.mlp", -2, 0, &layer), DUALGEMM_INVALID_ARGUMENT);
  EXPECT_EQ(dualgemm_checkpoint_load(opened, "a.mlp", -1, 4, &layer), DUALGEMM_INVALID_ARGUMENT);
  EXPECT_EQ(dualgemm_checkpoint_load(nullptr, "a.mlp", -1, 0, &layer), DUALGEMM_INVALID_ARGUMENT);
  EXPECT_EQ(layer, nullptr);
  ASSERT_EQ(dualgemm_checkpoint_load(opened, "a.mlp", -1, 0, &layer), DUALGEMM_OK)
      << dualgemm_last_error_message();
  dualgemm_checkpoint_close(opened);  // the layer stays
  dualgemm_checkpoint_layer_info info{};
  EXPECT_EQ(dualgemm_checkpoint_layer_get_info(layer, &info), DUALGEMM_INVALID_ARGUMENT);
  info.struct_size = sizeof info;
  ASSERT_EQ(dualgemm_checkpoint_layer_get_info(layer, &info), DUALGEMM_OK);
  EXPECT_EQ(info.n, kN);
  EXPECT_EQ(info.k, kK);
  EXPECT_EQ(info.up_global_scale, 2.0f);
  EXPECT_EQ(info.input_scale, 0.25f);

  dualgemm_problem problem;
  dualgemm_buffers buffers;
  ASSERT_EQ(dualgemm_problem_init(&problem, sizeof problem), DUALGEMM_OK);
  ASSERT_EQ(dualgemm_buffers_init(&buffers, sizeof buffers), DUALGEMM_OK);
  problem.m = 1;
  problem.d.type = DUALGEMM_F32;
  problem.act.kind = DUALGEMM_IDENTITY;
  std::vector<float> d(kN);
  buffers.a = ones_.data();
  buffers.a_scales = scales_.data();
  buffers.d = d.data();
  ASSERT_EQ(dualgemm_checkpoint_layer_apply(layer, 1.0f, &problem, &buffers), DUALGEMM_OK);
  ASSERT_EQ(dualgemm_run_once(&problem, &buffers, nullptr, nullptr), DUALGEMM_OK)
      << dualgemm_last_error_message();
  expect_near(d);
  dualgemm_checkpoint_layer_free(layer);
  dualgemm_checkpoint_layer_free(nullptr);
  dualgemm_checkpoint_close(nullptr);
}

}  // namespace
}  // namespace dualgemm
