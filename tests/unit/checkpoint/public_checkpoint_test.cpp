// checkpoint.hpp and checkpoint.h as users call them.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "dualgemm/checkpoint.h"
#include "dualgemm/checkpoint.hpp"
#include "dualgemm/dualgemm.hpp"
#include "io_test_support.hpp"

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
  EXPECT_EQ(dualgemm_checkpoint_load(opened, "a.mlp", -1, 32, &layer), DUALGEMM_INVALID_ARGUMENT);
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

// Down in NVFP4, beside a layer's own Gate and Up, and matrices that no layer has.
class PublicMatrix : public PublicCheckpoint {
 protected:
  PublicMatrix() {
    checkpoint::add_modelopt(file_, "a.mlp.down_proj", down_, {0.5f}, 0.125f);
    EXPECT_TRUE(checkpoint::add_bytes(file_, "a.mlp.down_proj.bias", checkpoint::ElementType::kF32,
                                      {kK}, bias_)
                    .ok());
    EXPECT_TRUE(checkpoint::add_bytes(file_, "b.mlp.down_proj.weight",
                                      checkpoint::ElementType::kF32, {kK, kColumns}, plain_)
                    .ok());
    for (const char* expert : {"m.experts.0.", "m.experts.1."}) {
      for (const char* name : {"gate_proj", "up_proj"})
        checkpoint::add_modelopt(file_, std::string(expert) + name, gate_, {0.5f}, 0.0f);
      checkpoint::add_modelopt(file_, std::string(expert) + "down_proj", down_, {1.0f}, 0.0f);
    }
    EXPECT_TRUE(checkpoint::write_safetensors(path_, file_).ok());
  }

  // Down's columns are the rows of Gate: 8 would be no block of 16.
  static constexpr int64_t kColumns = 16;
  RawWeight down_{kK, kColumns, rng_};
  const std::vector<float> bias_ = std::vector<float>(kK, 1.5f);
  const std::vector<float> plain_ = std::vector<float>(kK * kColumns, 0.75f);
};

TEST_F(PublicMatrix, DownAndAnyLinearLayer) {
  const Expected<Checkpoint> opened = Checkpoint::open(path_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  for (const bool by_name : {false, true}) {
    const Expected<CheckpointMatrix> down =
        by_name ? opened->load_matrix("a.mlp.down_proj") : opened->load_down("a.mlp");
    ASSERT_TRUE(down.ok()) << down.status().message();
    EXPECT_EQ(down->n(), kK);
    EXPECT_EQ(down->k(), kColumns);
    EXPECT_EQ(down->type(), DataType::kE2M1);
    EXPECT_EQ(down->input_scale(), 0.125f);
    EXPECT_STREQ(down->convention(), "modelopt");
    ASSERT_NE(down->bias(), nullptr);
    EXPECT_EQ(down->bias()[kK - 1], 1.5f);
    EXPECT_EQ(checkpoint::decode(static_cast<const uint8_t*>(down->data()), down->scales(),
                                 down->scale_layout(), checkpoint::NibbleOrder::kLowEven, kK,
                                 kColumns, down->global_scale()),
              decode(down_, 0.5));
  }
  const Expected<CheckpointMatrix> plain = opened->load_down("b.mlp");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->type(), DataType::kF32);
  EXPECT_EQ(plain->scales(), nullptr);
  EXPECT_EQ(plain->bias(), nullptr);
  EXPECT_EQ(plain->input_scale(), std::nullopt);
  EXPECT_EQ(static_cast<const float*>(plain->data())[kK * kColumns - 1], 0.75f);
}

TEST_F(PublicMatrix, ExpertsAreCounted) {
  const Expected<Checkpoint> opened = Checkpoint::open(path_);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(*opened->count_experts("m"), 2);
  EXPECT_EQ(*opened->count_experts("m.experts"), 2);
  EXPECT_TRUE(fails_with(opened->count_experts("a.mlp").status(), StatusCode::kNotFound, "m"));
  CheckpointOptions options;
  options.expert = 1;
  EXPECT_EQ(opened->load_down("m", options)->global_scale(), 1.0f);
  options.expert = 2;
  EXPECT_TRUE(fails_with(opened->load_down("m", options).status(), StatusCode::kInvalidArgument,
                         "2 experts"));
  options.expert = 0;
  EXPECT_TRUE(fails_with(opened->load_matrix("a.mlp.down_proj", options).status(),
                         StatusCode::kInvalidArgument, "is one matrix"));
  EXPECT_TRUE(
      fails_with(opened->load_matrix("a.mlp.none").status(), StatusCode::kNotFound, "none"));
}

TEST_F(PublicMatrix, FromC) {
  dualgemm_checkpoint* opened = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_open(path_.c_str(), &opened), DUALGEMM_OK);
  int64_t experts = 0;
  EXPECT_EQ(dualgemm_checkpoint_count_experts(opened, "m", &experts), DUALGEMM_OK);
  EXPECT_EQ(experts, 2);
  EXPECT_EQ(dualgemm_checkpoint_count_experts(opened, "m", nullptr), DUALGEMM_INVALID_ARGUMENT);
  dualgemm_checkpoint_matrix* matrix = nullptr;
  EXPECT_EQ(dualgemm_checkpoint_load_down(opened, "a.mlp", -2, &matrix), DUALGEMM_INVALID_ARGUMENT);
  EXPECT_EQ(dualgemm_checkpoint_load_down(opened, nullptr, -1, &matrix), DUALGEMM_INVALID_ARGUMENT);
  EXPECT_EQ(dualgemm_checkpoint_load_matrix(opened, "d", -1, &matrix), DUALGEMM_NOT_FOUND);
  EXPECT_EQ(matrix, nullptr);
  ASSERT_EQ(dualgemm_checkpoint_load_down(opened, "a.mlp", -1, &matrix), DUALGEMM_OK);
  dualgemm_checkpoint_close(opened);  // the matrix stays
  dualgemm_checkpoint_matrix_info info{};
  EXPECT_EQ(dualgemm_checkpoint_matrix_get_info(matrix, &info), DUALGEMM_INVALID_ARGUMENT);
  info.struct_size = sizeof info;
  ASSERT_EQ(dualgemm_checkpoint_matrix_get_info(matrix, &info), DUALGEMM_OK);
  EXPECT_EQ(info.n, kK);
  EXPECT_EQ(info.k, kColumns);
  EXPECT_EQ(info.type, DUALGEMM_E2M1);
  EXPECT_EQ(info.scale_layout, DUALGEMM_SCALES_LINEAR);
  EXPECT_EQ(info.global_scale, 0.5f);
  EXPECT_EQ(info.input_scale, 0.125f);
  EXPECT_EQ(info.bias[0], 1.5f);
  EXPECT_EQ(std::vector<uint8_t>(static_cast<const uint8_t*>(info.data),
                                 static_cast<const uint8_t*>(info.data) + down_.codes.size()),
            down_.codes);
  EXPECT_EQ(std::vector<uint8_t>(info.scales, info.scales + down_.scales.size()), down_.scales);
  dualgemm_checkpoint_matrix_free(matrix);
  dualgemm_checkpoint_matrix_free(nullptr);
}

}  // namespace
}  // namespace dualgemm
