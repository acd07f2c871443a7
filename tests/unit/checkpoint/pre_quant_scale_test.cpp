// AWQ's factors of a layer's input: found beside every kind of weight, never passed over, equal for
// what shares an input.
#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "dualgemm/checkpoint.h"
#include "dualgemm/checkpoint.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

constexpr int64_t kN = 32, kK = 64;

class PreQuantScale : public ::testing::Test {
 protected:
  PreQuantScale() {
    for (int64_t i = 0; i < kK; ++i) factors_.push_back(0.5f + static_cast<float>(i) / 8);
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      const bool down = std::string_view(name) == "down_proj";
      add_modelopt(file_, std::string("m.") + name, RawWeight(down ? kK : kN, down ? kN : kK, rng_),
                   {0.25f}, 0.5f);
    }
  }
  void add(const std::string& module, const std::vector<float>& factors,
           std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<int64_t>(factors.size())};
    file_.erase(module + ".pre_quant_scale");
    ASSERT_TRUE(
        add_bytes(file_, module + ".pre_quant_scale", ElementType::kF32, shape, factors).ok());
  }
  static LayerOptions asked() {
    LayerOptions options;
    options.pre_quant_scale = true;
    return options;
  }

  test::Rng rng_{31};
  TensorFile file_;
  std::vector<float> factors_;
};

TEST_F(PreQuantScale, IsGivenWhereItIsAskedForAndElseRefused) {
  EXPECT_TRUE(load_mlp_layer(file_, "m", asked())->pre_quant_scale.empty());
  add("m.gate_proj", factors_);
  add("m.up_proj", factors_);
  add("m.down_proj", std::vector<float>(kN, 3.0f));
  const Expected<MlpLayer> layer = load_mlp_layer(file_, "m", asked());
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->pre_quant_scale, factors_);
  const Expected<DownProjection> down = load_down_projection(file_, "m", asked());
  ASSERT_TRUE(down.ok()) << down.status().message();
  EXPECT_EQ(down->pre_quant_scale, std::vector<float>(kN, 3.0f));
  EXPECT_EQ(load_linear(file_, "m.gate_proj", asked())->pre_quant_scale, factors_);
  const StatusCode unsupported = StatusCode::kUnsupported;
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, "m", {}).status(), unsupported,
                         "m.gate_proj.pre_quant_scale"));
  EXPECT_TRUE(
      fails_with(load_down_projection(file_, "m", {}).status(), unsupported, "must ask for them"));
  EXPECT_TRUE(
      fails_with(load_linear(file_, "m.up_proj", {}).status(), unsupported, "must ask for them"));
}

TEST_F(PreQuantScale, OfOnesIsNone) {
  add("m.gate_proj", std::vector<float>(kK, 1.0f));
  EXPECT_TRUE(load_mlp_layer(file_, "m", {}).ok());
}

TEST_F(PreQuantScale, WhatIsWrongIsNamed) {
  const StatusCode corrupt = StatusCode::kCorruptFile;
  const auto refused = [&](const char* part) {
    EXPECT_TRUE(fails_with(load_mlp_layer(file_, "m", asked()).status(), corrupt, part));
  };
  add("m.gate_proj", factors_);
  refused("gate and of up differ");
  std::vector<float> other = factors_;
  other.back() += 1.0f;
  add("m.up_proj", other);
  refused("its factors must agree");
  add("m.up_proj", std::vector<float>(kN, 2.0f));
  refused("must be [64]");
  other.back() = std::numeric_limits<float>::quiet_NaN();
  add("m.gate_proj", other);
  add("m.up_proj", other);
  refused("nan at 63");
  other.back() = std::numeric_limits<float>::infinity();
  add("m.gate_proj", other);
  add("m.up_proj", other);
  refused("inf at 63");
  LayerOptions lenient = asked();
  lenient.weight.allow_nan = true;
  EXPECT_EQ(load_mlp_layer(file_, "m", lenient)->pre_quant_scale, other);
}

// Experts that one tensor stacks have factors of their own, or common ones.
TEST_F(PreQuantScale, OfExperts) {
  constexpr int64_t kExperts = 3;
  const RawWeight raw(kExperts * 2 * kN, kK, rng_);
  ASSERT_TRUE(
      add_bytes(file_, "e.gate_up_proj", ElementType::kU8, {kExperts, 2 * kN, kK / 2}, raw.codes)
          .ok());
  ASSERT_TRUE(add_bytes(file_, "e.gate_up_proj_weight_scale", ElementType::kF8E4M3,
                        {kExperts, 2 * kN, kK / 16}, raw.scales)
                  .ok());
  add_scalar(file_, "e.gate_up_proj_weight_scale_2", 0.5f);
  std::vector<float> all;
  for (int64_t i = 0; i < kExperts * kK; ++i) all.push_back(static_cast<float>(i));
  LayerOptions options = asked();
  for (options.expert = 0; *options.expert < kExperts; ++*options.expert) {
    add("e.gate_up_proj", all, {kExperts, kK});
    const Expected<MlpLayer> own = load_mlp_layer(file_, "e", options);
    ASSERT_TRUE(own.ok()) << own.status().message();
    const auto first = all.begin() + *options.expert * kK;
    EXPECT_EQ(own->pre_quant_scale, std::vector<float>(first, first + kK));
    add("e.gate_up_proj", factors_);
    EXPECT_EQ(load_mlp_layer(file_, "e", options)->pre_quant_scale, factors_);
  }
}

// Through the interface in C, with callers from before there were such factors.
TEST_F(PreQuantScale, InC) {
  add("m.gate_proj", factors_);
  add("m.up_proj", factors_);
  add("m.down_proj", std::vector<float>(kN, 3.0f));
  const test::TempDirectory folder;
  const std::string path = folder / "m.safetensors";
  ASSERT_TRUE(write_safetensors(path, file_).ok());
  dualgemm_checkpoint* checkpoint = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_open(path.c_str(), &checkpoint), DUALGEMM_OK);
  dualgemm_checkpoint_layer* layer = nullptr;
  EXPECT_EQ(dualgemm_checkpoint_load(checkpoint, "m", -1, 0, &layer), DUALGEMM_UNSUPPORTED);
  ASSERT_EQ(
      dualgemm_checkpoint_load(checkpoint, "m", -1, DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE, &layer),
      DUALGEMM_OK);
  dualgemm_checkpoint_layer_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dualgemm_checkpoint_layer_get_info(layer, &info), DUALGEMM_OK);
  EXPECT_EQ(std::vector<float>(info.pre_quant_scale, info.pre_quant_scale + kK), factors_);
  info.struct_size = 40;
  info.pre_quant_scale = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_layer_get_info(layer, &info), DUALGEMM_OK);
  EXPECT_EQ(info.pre_quant_scale, nullptr);
  dualgemm_checkpoint_layer_free(layer);
  dualgemm_checkpoint_matrix* down = nullptr;
  EXPECT_EQ(dualgemm_checkpoint_load_down(checkpoint, "m", -1, &down), DUALGEMM_UNSUPPORTED);
  ASSERT_EQ(dualgemm_checkpoint_load_down_flags(checkpoint, "m", -1,
                                                DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE, &down),
            DUALGEMM_OK);
  dualgemm_checkpoint_matrix_info matrix{};
  matrix.struct_size = sizeof matrix;
  ASSERT_EQ(dualgemm_checkpoint_matrix_get_info(down, &matrix), DUALGEMM_OK);
  EXPECT_EQ(matrix.pre_quant_scale[kN - 1], 3.0f);
  dualgemm_checkpoint_matrix_free(down);
  dualgemm_checkpoint_close(checkpoint);
}

}  // namespace
}  // namespace dualgemm::checkpoint
