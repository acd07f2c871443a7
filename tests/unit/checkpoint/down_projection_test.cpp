// Down of a layer: beside Gate and Up wherever those are, in every convention and layout.
#include <gtest/gtest.h>

#include "io_test_support.hpp"
#include "unit/checkpoint/checkpoint_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr int64_t kHidden = 32, kIntermediate = 96;

class DownTest : public ::testing::Test {
 protected:
  test::Rng rng_;
  RawWeight gate_{kIntermediate, kHidden, rng_}, down_{kHidden, kIntermediate, rng_};
  TensorFile file_;

  void add_gate_and_up(const std::string& gate, const std::string& up) {
    add_modelopt(file_, gate, gate_, {1.0f}, 0.0f);
    add_modelopt(file_, up, gate_, {1.0f}, 0.0f);
  }
  // Loaded and made runnable: these values, and this input scale.
  void expect_down(const std::string& prefix, const LayerOptions& options, const RawWeight& raw,
                   double global, std::optional<float> input) {
    Expected<DownProjection> down = load_down_projection(file_, prefix, options);
    ASSERT_TRUE(down.ok()) << down.status().message();
    EXPECT_EQ(down->n, kHidden);
    EXPECT_EQ(down->k, kIntermediate);
    EXPECT_EQ(down->dequant_input_scale, input);
    const Status status = make_runnable(*down);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(decode(down->down.codes(), down->down.scales.data(), down->scale_layout,
                     down->nibble_order, down->n, down->k, down->down.dequant_global_scale),
              decode(raw, global));
  }
};

TEST_F(DownTest, NamesOfEveryFamily) {
  const std::vector<std::array<const char*, 3>> families = {
      {"gate_proj", "up_proj", "down_proj"},
      {"w1", "w3", "w2"},
      {"ffn_gate", "ffn_up", "ffn_down"},
      {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}};
  for (const auto& [gate, up, down] : families) {
    SCOPED_TRACE(down);
    file_ = {};
    add_gate_and_up(std::string("m.") + gate, std::string("m.") + up);
    add_modelopt(file_, std::string("m.") + down, down_, {0.5f}, 0.25f);
    expect_down("m", {}, down_, 0.5, 0.25f);
  }
  // GGUF's shared experts, beside a stacked Gate and Up.
  file_ = {};
  const RawWeight both(2 * kIntermediate, kHidden, rng_);
  add_modelopt(file_, "blk.0.ffn_gate_up_shexp", both, {1.0f}, 0.0f);
  add_modelopt(file_, "blk.0.ffn_down_shexp", down_, {0.5f}, 0.0f);
  expect_down("blk.0.shexp", {}, down_, 0.5, std::nullopt);
}

TEST_F(DownTest, DivisorsAndHighNibbles) {
  add_gate_and_up("gate_proj", "up_proj");
  RawWeight swapped = down_;
  for (uint8_t& byte : swapped.codes) byte = static_cast<uint8_t>(byte << 4 | byte >> 4);
  add_compressed(file_, "down_proj", swapped, {8.0f}, 4.0f);
  LayerOptions options;
  options.weight.nibble_order = NibbleOrder::kHighEven;
  expect_down("", options, down_, 0.125, 0.25f);
}

TEST_F(DownTest, SlicesOfFusedExperts) {
  constexpr int64_t kExperts = 3;
  std::vector<RawWeight> all;
  std::vector<uint8_t> codes, scales;
  const RawWeight both(2 * kIntermediate, kHidden, rng_);
  std::vector<uint8_t> both_codes, both_scales;
  for (int64_t e = 0; e < kExperts; ++e) {
    all.emplace_back(kHidden, kIntermediate, rng_);
    codes.insert(codes.end(), all.back().codes.begin(), all.back().codes.end());
    scales.insert(scales.end(), all.back().scales.begin(), all.back().scales.end());
    both_codes.insert(both_codes.end(), both.codes.begin(), both.codes.end());
    both_scales.insert(both_scales.end(), both.scales.begin(), both.scales.end());
  }
  const auto add = [&](const std::string& module, int64_t n, int64_t k, const auto& c,
                       const auto& s) {
    ASSERT_TRUE(add_bytes(file_, module, ElementType::kU8, {kExperts, n, k / 2}, c).ok());
    ASSERT_TRUE(
        add_bytes(file_, module + "_weight_scale", ElementType::kF8E4M3, {kExperts, n, k / 16}, s)
            .ok());
  };
  add("x.experts.gate_up_proj", 2 * kIntermediate, kHidden, both_codes, both_scales);
  add_scalar(file_, "x.experts.gate_up_proj_weight_scale_2", 1.0f);
  add("x.experts.down_proj", kHidden, kIntermediate, codes, scales);
  ASSERT_TRUE(add_bytes(file_, "x.experts.down_proj_weight_scale_2", ElementType::kF32, {kExperts},
                        std::vector<float>{0.5f, 1.0f, 2.0f})
                  .ok());
  std::vector<float> biases;
  for (int64_t i = 0; i < kExperts * kHidden; ++i) biases.push_back(static_cast<float>(i));
  ASSERT_TRUE(
      add_bytes(file_, "x.experts.down_proj_bias", ElementType::kF32, {kExperts, kHidden}, biases)
          .ok());
  LayerOptions options;
  for (int64_t e = 0; e < kExperts; ++e) {
    options.expert = e;
    expect_down("x", options, all[static_cast<size_t>(e)], 0.5 * static_cast<double>(1 << e),
                std::nullopt);
    const Expected<DownProjection> down = load_down_projection(file_, "x", options);
    ASSERT_EQ(down->bias.size(), static_cast<size_t>(kHidden));
    EXPECT_EQ(down->bias.front(), static_cast<float>(e * kHidden));
  }
}

TEST_F(DownTest, WhatIsRefused) {
  add_gate_and_up("m.gate_proj", "m.up_proj");
  EXPECT_TRUE(
      fails_with(load_down_projection(file_, "m").status(), StatusCode::kNotFound, "m.down_proj"));
  EXPECT_TRUE(
      fails_with(load_down_projection(file_, "q").status(), StatusCode::kNotFound, "layer 'q'"));
  add_modelopt(file_, "m.down_proj", down_, {1.0f, 2.0f}, 0.0f);
  EXPECT_TRUE(fails_with(load_down_projection(file_, "m").status(), StatusCode::kCorruptFile,
                         "2 global scales"));
  file_ = {};
  add_gate_and_up("m.gate_proj", "m.up_proj");
  const std::vector<float> values(static_cast<size_t>(kHidden * kIntermediate), 1.0f);
  ASSERT_TRUE(
      add_bytes(file_, "m.down_proj.weight", ElementType::kF32, {kHidden, kIntermediate}, values)
          .ok());
  Expected<DownProjection> plain = load_down_projection(file_, "m");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_TRUE(fails_with(make_runnable(*plain), StatusCode::kUnsupported, "must be NVFP4"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
