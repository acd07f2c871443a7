// Scales that are NaN or infinite: an error where a layer is read, unless they are allowed.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "dualgemm/checkpoint.h"
#include "dualgemm/checkpoint.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

class NanScales : public ::testing::Test {
 protected:
  static constexpr int64_t kN = 16, kK = 32;  // Down is kK x kN

  // The file with one thing changed: a block scale or a scalar of `module`.
  TensorFile file_with(const std::string& module, const std::string& tensor, float value) {
    TensorFile file;
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      const bool down = std::string(name) == "down_proj";
      RawWeight raw(down ? kK : kN, down ? kN : kK, rng_);
      const bool here = module == name;
      if (here && tensor == ".weight_scale") raw.scales[1] = 0xFF;
      const std::string at = std::string("m.") + name;
      add_modelopt(file, at, raw, {here && tensor == ".weight_scale_2" ? value : 0.5f}, 0.0f);
      // Gate and Up share their input: both, or Down's alone.
      const bool input = tensor == ".input_scale" && (down == (module == "down_proj"));
      add_scalar(file, at + ".input_scale", input ? value : 0.25f);
    }
    return file;
  }

  test::Rng rng_;
};

TEST_F(NanScales, AreErrorsWhereALayerIsRead) {
  const float nan = std::nanf(""), infinite = INFINITY;
  for (const std::string module : {"gate_proj", "up_proj", "down_proj"}) {
    for (const auto& [tensor, value] : {std::pair<std::string, float>{".weight_scale", 0.0f},
                                        {".weight_scale_2", nan},
                                        {".weight_scale_2", infinite},
                                        {".input_scale", infinite}}) {
      const TensorFile file = file_with(module, tensor, value);
      LayerOptions options;
      const bool down = module == "down_proj";
      const auto read = [&]() {
        return down ? load_down_projection(file, "m", options).status()
                    : load_mlp_layer(file, "m", options).status();
      };
      EXPECT_TRUE(fails_with(read(), StatusCode::kCorruptFile, "--allow-nan")) << module << tensor;
      EXPECT_TRUE(fails_with(read(), StatusCode::kCorruptFile, tensor)) << module << tensor;
      EXPECT_TRUE(down ? load_mlp_layer(file, "m").ok() : load_down_projection(file, "m").ok())
          << "the other part of the layer";
      options.weight.allow_nan = true;
      EXPECT_TRUE(read().ok()) << module << tensor << read().message();
    }
  }
  const Status place = load_mlp_layer(file_with("up_proj", ".weight_scale", 0), "m").status();
  EXPECT_TRUE(fails_with(place, StatusCode::kCorruptFile, "NaN at row 0, block 1; 1 in all"));
}

// One that no calibration wrote: the layer is as one that has none.
TEST_F(NanScales, UnwrittenInputScalesAreAsIfAbsent) {
  for (const float value : {0.0f, std::nanf("")}) {
    const Expected<MlpLayer> layer =
        load_mlp_layer(file_with("up_proj", ".input_scale", value), "m");
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_FALSE(layer->dequant_input_scale.has_value());
    EXPECT_TRUE(layer->unwritten_input_scale);
    const TensorFile of_down = file_with("down_proj", ".input_scale", value);
    const Expected<DownProjection> down = load_down_projection(of_down, "m");
    ASSERT_TRUE(down.ok()) << down.status().message();
    EXPECT_FALSE(down->dequant_input_scale.has_value());
    EXPECT_TRUE(down->unwritten_input_scale);
    EXPECT_EQ(load_mlp_layer(of_down, "m")->dequant_input_scale, 0.25f);
    EXPECT_FALSE(load_mlp_layer(of_down, "m")->unwritten_input_scale);
    // A weight by itself keeps all of its tensors: convert must not lose one.
    EXPECT_FALSE(load_weight(of_down, "m.down_proj").ok());
  }
  // Gate's alone is not enough: both share one input.
  TensorFile file = file_with("down_proj", ".bias", 0.0f);
  file.erase("m.up_proj.input_scale");
  add_scalar(file, "m.up_proj.input_scale", 0.0f);
  EXPECT_FALSE(load_mlp_layer(file, "m")->dequant_input_scale.has_value());
}

TEST_F(NanScales, ValuesThatAreAllowedArrive) {
  LayerOptions options;
  options.weight.allow_nan = true;
  const auto layer =
      load_mlp_layer(file_with("up_proj", ".weight_scale_2", INFINITY), "m", options);
  ASSERT_TRUE(layer.ok());
  EXPECT_EQ(layer->up.dequant_global_scale, INFINITY);
  EXPECT_EQ(layer->gate.dequant_global_scale, 0.5f);
  const auto down = load_down_projection(file_with("down_proj", ".input_scale", NAN), "m", options);
  ASSERT_TRUE(down.ok());
  EXPECT_TRUE(std::isnan(*down->dequant_input_scale));
  for (const float value : {0.0f, -1.0f}) {  // no scale at all
    EXPECT_TRUE(fails_with(
        load_mlp_layer(file_with("up_proj", ".weight_scale_2", value), "m", options).status(),
        StatusCode::kCorruptFile, "must be finite and > 0"));
  }
}

// 130 rows of 2 blocks: most of two tiles of 128 x 4 is padding.
TEST_F(NanScales, PaddingMayBeAnything) {
  const int64_t n = 130;
  for (const bool in_matrix : {false, true}) {
    TensorFile file;
    for (const char* name : {"m.gate_proj", "m.up_proj"}) {
      const RawWeight raw(n, kK, rng_);
      std::vector<uint8_t> scales(2 * 512, 0x7F);
      for (int64_t row = 0; row < n; ++row) {
        for (int64_t col = 0; col < 2; ++col)
          scales[scale_offset(ScaleLayout::kSwizzled128x4, row, col, 2)] = 0x38;
      }
      if (in_matrix) scales[scale_offset(ScaleLayout::kSwizzled128x4, 129, 1, 2)] = 0x7F;
      const std::string at = name;
      ASSERT_TRUE(add_bytes(file, at + ".weight", ElementType::kU8, {n, kK / 2}, raw.codes).ok());
      ASSERT_TRUE(
          add_bytes(file, at + ".weight_scale", ElementType::kF8E4M3, {256, 4}, scales).ok());
      add_scalar(file, at + ".weight_scale_2", 1.0f);
    }
    const Status status = load_mlp_layer(file, "m").status();
    if (in_matrix) {
      EXPECT_TRUE(fails_with(status, StatusCode::kCorruptFile, "NaN at row 129, block 1"));
    } else {
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
}

TEST_F(NanScales, OfExpertsOnlyTheOneThatIsRead) {
  TensorFile file;
  std::vector<uint8_t> codes(3 * 2 * kN * kK / 2), scales(3 * 2 * kN * kK / 16, 0x38);
  scales[2 * scales.size() / 3 + 3] = 0x7F;  // expert 2, row 1, block 1
  const std::vector<float> globals = {1.0f, NAN, 1.0f};
  ASSERT_TRUE(
      add_bytes(file, "m.experts.gate_up_proj", ElementType::kU8, {3, 2 * kN, kK / 2}, codes).ok());
  ASSERT_TRUE(add_bytes(file, "m.experts.gate_up_proj_weight_scale", ElementType::kF8E4M3,
                        {3, 2 * kN, kK / 16}, scales)
                  .ok());
  ASSERT_TRUE(
      add_bytes(file, "m.experts.gate_up_proj_weight_scale_2", ElementType::kF32, {3}, globals)
          .ok());
  const auto read = [&](int64_t expert) {
    LayerOptions options;
    options.expert = expert;
    return load_mlp_layer(file, "m", options).status();
  };
  EXPECT_TRUE(read(0).ok()) << read(0).message();
  EXPECT_TRUE(fails_with(read(1), StatusCode::kCorruptFile, "value nan"));
  EXPECT_TRUE(fails_with(read(2), StatusCode::kCorruptFile, "expert 2: NaN at row 1, block 1"));
  EXPECT_TRUE(fails_with(read(3), StatusCode::kInvalidArgument, "has 3 experts"));
}

// Down of another number of experts than Gate would be taken for each expert's.
TEST_F(NanScales, AllProjectionsHoldTheSameExperts) {
  TensorFile file;
  const auto add = [&](const std::string& name, std::vector<int64_t> batch, int64_t n, int64_t k) {
    const auto shape = [&](int64_t columns) {
      std::vector<int64_t> all = batch;
      all.insert(all.end(), {n, columns});
      return all;
    };
    const auto count = static_cast<size_t>((batch.empty() ? 1 : batch[0]) * n * k);
    ASSERT_TRUE(add_bytes(file, name + ".weight", ElementType::kU8, shape(k / 2),
                          std::vector<uint8_t>(count / 2))
                    .ok());
    ASSERT_TRUE(add_bytes(file, name + ".weight_scale", ElementType::kF8E4M3, shape(k / 16),
                          std::vector<uint8_t>(count / 16, 0x38))
                    .ok());
    add_scalar(file, name + ".weight_scale_2", 1.0f);
  };
  add("a.gate_proj", {2}, kN, kK);
  add("a.up_proj", {3}, kN, kK);
  add("a.down_proj", {}, kK, kN);
  LayerOptions options;
  options.expert = 1;
  EXPECT_TRUE(fails_with(load_mlp_layer(file, "a", options).status(), StatusCode::kCorruptFile,
                         "must hold 2 experts"));
  EXPECT_TRUE(fails_with(load_down_projection(file, "a", options).status(),
                         StatusCode::kCorruptFile, "must hold 2 experts"));
}

TEST_F(NanScales, FromCppAndC) {
  const test::TempDirectory directory;
  const std::string gate = directory / "gate.safetensors", down = directory / "down.safetensors";
  ASSERT_TRUE(write_safetensors(gate, file_with("gate_proj", ".weight_scale", 0)).ok());
  ASSERT_TRUE(write_safetensors(down, file_with("down_proj", ".weight_scale_2", NAN)).ok());
  const auto opened = Checkpoint::open(gate), with_down = Checkpoint::open(down);
  ASSERT_TRUE(opened.ok() && with_down.ok());
  const CheckpointOptions allowed{.allow_nan = true};
  EXPECT_EQ(opened->load("m").status().code(), StatusCode::kCorruptFile);
  EXPECT_TRUE(opened->load("m", allowed).ok());
  EXPECT_EQ(opened->load_matrix("m.gate_proj").status().code(), StatusCode::kCorruptFile);
  EXPECT_TRUE(opened->load_matrix("m.gate_proj", allowed).ok());
  EXPECT_EQ(with_down->load_down("m").status().code(), StatusCode::kCorruptFile);
  EXPECT_TRUE(with_down->load_down("m", allowed).ok());

  dualgemm_checkpoint* file = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_open(gate.c_str(), &file), DUALGEMM_OK);
  dualgemm_checkpoint_layer* layer = nullptr;
  EXPECT_EQ(dualgemm_checkpoint_load(file, "m", -1, 0, &layer), DUALGEMM_CORRUPT_FILE);
  ASSERT_EQ(dualgemm_checkpoint_load(file, "m", -1, DUALGEMM_CHECKPOINT_ALLOW_NAN, &layer),
            DUALGEMM_OK);
  dualgemm_checkpoint_layer_free(layer);
  dualgemm_checkpoint_matrix* matrix = nullptr;
  EXPECT_EQ(dualgemm_checkpoint_load_matrix(file, "m.gate_proj", -1, &matrix),
            DUALGEMM_CORRUPT_FILE);
  EXPECT_EQ(dualgemm_checkpoint_load_matrix_flags(file, "m.gate_proj", -1, 1, &matrix),
            DUALGEMM_INVALID_ARGUMENT);
  ASSERT_EQ(dualgemm_checkpoint_load_matrix_flags(file, "m.gate_proj", -1,
                                                  DUALGEMM_CHECKPOINT_ALLOW_NAN, &matrix),
            DUALGEMM_OK);
  dualgemm_checkpoint_matrix_free(matrix);
  dualgemm_checkpoint_close(file);
  ASSERT_EQ(dualgemm_checkpoint_open(down.c_str(), &file), DUALGEMM_OK);
  EXPECT_EQ(dualgemm_checkpoint_load_down(file, "m", -1, &matrix), DUALGEMM_CORRUPT_FILE);
  ASSERT_EQ(
      dualgemm_checkpoint_load_down_flags(file, "m", -1, DUALGEMM_CHECKPOINT_ALLOW_NAN, &matrix),
      DUALGEMM_OK);
  dualgemm_checkpoint_matrix_free(matrix);
  dualgemm_checkpoint_close(file);
}

// What a failure leaves behind an out argument is null, whatever was there.
TEST_F(NanScales, AFailureLeavesNoHandle) {
  const test::TempDirectory directory;
  const std::string path = directory / "m.safetensors";
  ASSERT_TRUE(write_safetensors(path, file_with("gate_proj", ".weight_scale", 0)).ok());
  dualgemm_checkpoint* file = nullptr;
  ASSERT_EQ(dualgemm_checkpoint_open(path.c_str(), &file), DUALGEMM_OK);
  int something = 0;
  const auto fails_to_null = [&](auto* wild, auto call) {
    using Handle = decltype(wild);
    for (const bool has_file : {true, false}) {
      for (const char* name : {"m", "none", static_cast<const char*>(nullptr)}) {
        auto handle = reinterpret_cast<Handle>(&something);
        EXPECT_NE(call(has_file ? file : nullptr, name, &handle), DUALGEMM_OK);
        EXPECT_EQ(handle, nullptr);
      }
    }
  };
  fails_to_null(
      static_cast<dualgemm_checkpoint*>(nullptr),
      [](auto, const char* name, auto** handle) { return dualgemm_checkpoint_open(name, handle); });
  fails_to_null(static_cast<dualgemm_checkpoint_layer*>(nullptr),
                [](auto from, const char* name, auto** handle) {
                  return dualgemm_checkpoint_load(from, name, -1, 0, handle);
                });
  fails_to_null(static_cast<dualgemm_checkpoint_matrix*>(nullptr),
                [](auto from, const char* name, auto** handle) {
                  return dualgemm_checkpoint_load_down(from, name, 0, handle);
                });
  fails_to_null(static_cast<dualgemm_checkpoint_matrix*>(nullptr),
                [](auto from, const char* name, auto** handle) {
                  return dualgemm_checkpoint_load_matrix(from, name, -1, handle);
                });
  EXPECT_EQ(dualgemm_checkpoint_open(path.c_str(), nullptr), DUALGEMM_INVALID_ARGUMENT);
  dualgemm_checkpoint_close(file);
}

}  // namespace
}  // namespace dualgemm::checkpoint
