#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

constexpr const char* kPrefix = "model.layers.0.mlp";
const std::string kGate = "model.layers.0.mlp.gate_proj";
const std::string kUp = "model.layers.0.mlp.up_proj";
const std::string kStacked = "model.layers.0.mlp.gate_up_proj";

class LayerTest : public ::testing::Test {
 protected:
  // The upper (false) or lower (true) half of a stacked weight.
  static RawWeight half_of(const RawWeight& stacked, bool lower) {
    RawWeight half = stacked;
    half.n /= 2;
    const auto cut = [lower](std::vector<uint8_t>& bytes) {
      const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
      lower ? bytes.erase(bytes.begin(), middle) : bytes.erase(middle, bytes.end());
    };
    cut(half.codes);
    cut(half.scales);
    return half;
  }
  void expect_layer(const Expected<MlpLayer>& layer, const RawWeight& gate, double gate_global,
                    const RawWeight& up, double up_global) {
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(layer->type, DataType::kE2M1);
    EXPECT_EQ(layer->n, gate.n);
    EXPECT_EQ(layer->k, gate.k);
    EXPECT_EQ(decode(*layer, layer->gate), decode(gate, gate_global));
    EXPECT_EQ(decode(*layer, layer->up), decode(up, up_global));
  }

  test::Rng rng_;
  RawWeight gate_{3, 32, rng_}, up_{3, 32, rng_}, both_{6, 48, rng_};
  TensorFile file_;
};

TEST_F(LayerTest, ModelOptSeparate) {
  add_modelopt(file_, kGate, gate_, {0.5f}, 0.125f);
  add_modelopt(file_, kUp, up_, {4.0f}, 0.125f);
  const Expected<MlpLayer> layer = load_mlp_layer(file_, kPrefix);
  expect_layer(layer, gate_, 0.5, up_, 4.0);
  EXPECT_EQ(layer->convention, Convention::kModelOpt);
  EXPECT_FALSE(layer->stacked);
  EXPECT_EQ(layer->dequant_input_scale, 0.125f);
  EXPECT_EQ(layer->gate.tensor_name, kGate + ".weight");
  EXPECT_EQ(layer->gate.data.data(), file_.get(kGate + ".weight")->data.data());  // no copy
}

TEST_F(LayerTest, CompressedTensorsScalesAreDivisors) {
  add_compressed(file_, kGate, gate_, {2.0f}, 8.0f);
  add_compressed(file_, kUp, up_, {0.25f}, 8.0f);
  const Expected<MlpLayer> layer = load_mlp_layer(file_, kPrefix);
  expect_layer(layer, gate_, 0.5, up_, 4.0);
  EXPECT_EQ(layer->convention, Convention::kCompressedTensors);
  EXPECT_EQ(layer->dequant_input_scale, 0.125f);
}

TEST_F(LayerTest, StackedInBothOrdersWithOneOrTwoScales) {
  const RawWeight first = half_of(both_, false), second = half_of(both_, true);
  LayerOptions up_first;
  up_first.stacked_order = StackedOrder::kUpFirst;
  add_modelopt(file_, kStacked, both_, {0.5f}, 0.0f);
  expect_layer(load_mlp_layer(file_, kPrefix), first, 0.5, second, 0.5);
  expect_layer(load_mlp_layer(file_, kPrefix, up_first), second, 0.5, first, 0.5);
  EXPECT_TRUE(load_mlp_layer(file_, kPrefix)->stacked);
  EXPECT_FALSE(load_mlp_layer(file_, kPrefix)->dequant_input_scale.has_value());

  TensorFile two;
  add_compressed(two, kStacked, both_, {2.0f, 0.125f}, 0.0f);
  expect_layer(load_mlp_layer(two, kPrefix), first, 0.5, second, 8.0);
  expect_layer(load_mlp_layer(two, kPrefix, up_first), second, 8.0, first, 0.5);
}

TEST_F(LayerTest, SwizzledScalesAreDeclaredInTheMetadata) {
  const int64_t n = 130, k = 80;  // two row tiles, two column tiles, both partly filled
  const RawWeight gate(n, k, rng_), up(n, k, rng_);
  for (const auto& [raw, module] : {std::pair(&gate, kGate), std::pair(&up, kUp)}) {
    std::vector<uint8_t> swizzled(256 * 8, 0xFF);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t col = 0; col < k / 16; ++col) {
        swizzled[scale_offset(ScaleLayout::kSwizzled128x4, row, col, k / 16)] =
            raw->scales[scale_offset(ScaleLayout::kLinear, row, col, k / 16)];
      }
    }
    ASSERT_TRUE(
        add_bytes(file_, module + ".weight", ElementType::kU8, {n, k / 2}, raw->codes).ok());
    ASSERT_TRUE(
        add_bytes(file_, module + ".weight_scale", ElementType::kF8E4M3, {256, 8}, swizzled).ok());
    add_scalar(file_, module + ".weight_scale_2", 2.0f);
  }
  expect_layer(load_mlp_layer(file_, kPrefix), gate, 2.0, up, 2.0);  // the shape tells, too
  LayerOptions options;
  options.weight.scale_layout = ScaleLayout::kLinear;
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, kPrefix, options).status(), StatusCode::kCorruptFile,
                         "[130, 5]"));
  options.weight.scale_layout = ScaleLayout::kSwizzled128x4;
  expect_layer(load_mlp_layer(file_, kPrefix, options), gate, 2.0, up, 2.0);
  file_.metadata()[kScaleLayoutKey] = "swizzled_128x4";
  expect_layer(load_mlp_layer(file_, kPrefix), gate, 2.0, up, 2.0);
  file_.metadata()[kScaleLayoutKey] = "swizzled";
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, kPrefix).status(), StatusCode::kCorruptFile,
                         "metadata dualgemm.scale_layout"));
}

TEST_F(LayerTest, SwizzledStackedNeedsWholeTilesPerHalf) {
  const auto load = [this](int64_t rows, int64_t padded) {
    TensorFile file;
    file.metadata()[kScaleLayoutKey] = "swizzled_128x4";
    const RawWeight raw(rows, 16, rng_);
    EXPECT_TRUE(add_bytes(file, kStacked + ".weight", ElementType::kU8, {rows, 8}, raw.codes).ok());
    const std::vector<uint8_t> scales(static_cast<size_t>(padded * 4), 0x38);
    EXPECT_TRUE(
        add_bytes(file, kStacked + ".weight_scale", ElementType::kF8E4M3, {padded, 4}, scales)
            .ok());
    add_scalar(file, kStacked + ".weight_scale_2", 1.0f);
    return load_mlp_layer(file, kPrefix);
  };
  const Expected<MlpLayer> whole = load(256, 256);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->up.scales.size(), 512u);
  EXPECT_TRUE(fails_with(load(128, 128).status(), StatusCode::kUnsupported, "convert"));
}

TEST_F(LayerTest, HighEvenNibblesAreSwappedOnRequest) {
  RawWeight gate = gate_, up = up_;
  for (RawWeight* raw : {&gate, &up}) {
    for (uint8_t& byte : raw->codes) byte = static_cast<uint8_t>(byte << 4 | byte >> 4);
  }
  add_modelopt(file_, kGate, gate, {1.0f}, 0.0f);
  add_modelopt(file_, kUp, up, {1.0f}, 0.0f);
  file_.metadata()[kNibbleOrderKey] = "high_even";
  Expected<MlpLayer> layer = load_mlp_layer(file_, kPrefix);
  ASSERT_TRUE(layer.ok());
  EXPECT_EQ(layer->nibble_order, NibbleOrder::kHighEven);
  expect_layer(layer, gate_, 1.0, up_, 1.0);
  ASSERT_TRUE(make_runnable(*layer).ok());
  EXPECT_EQ(layer->nibble_order, NibbleOrder::kLowEven);
  expect_layer(layer, gate_, 1.0, up_, 1.0);
  EXPECT_EQ(std::memcmp(layer->gate.codes(), gate_.codes.data(), gate_.codes.size()), 0);
}

TEST_F(LayerTest, PlainTypesStayAsTheyAre) {
  const std::pair<ElementType, DataType> types[] = {{ElementType::kF32, DataType::kF32},
                                                    {ElementType::kF16, DataType::kF16},
                                                    {ElementType::kBF16, DataType::kBF16}};
  for (const auto& [stored, type] : types) {
    // At every misalignment, as a file may place them.
    const size_t size = 2 * 16 * static_cast<size_t>(bits_of(stored)) / 8;
    std::vector<std::byte> memory(2 * size + 3);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
    const std::span<const std::byte> bytes(memory);
    TensorFile file;
    ASSERT_TRUE(file.add({"gate_proj.weight", stored, {2, 16}, bytes.subspan(1, size)}).ok());
    ASSERT_TRUE(file.add({"up_proj.weight", stored, {2, 16}, bytes.subspan(1 + size, size)}).ok());
    Expected<MlpLayer> layer = load_mlp_layer(file, "");
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(layer->type, type);
    EXPECT_EQ(layer->convention, Convention::kPlain);
    EXPECT_EQ(layer->k, 16);
    EXPECT_EQ(layer->gate.dequant_global_scale, 1.0f);
    ASSERT_TRUE(make_runnable(*layer).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(layer->up.data.data()) % 4, 0u);
    EXPECT_EQ(test::to_text(layer->up.data), test::to_text(bytes.subspan(1 + size, size)));
  }
}

TEST_F(LayerTest, InputScalesMustAgreeUnlessTheLargerIsWanted) {
  LayerOptions take_max;
  take_max.max_input_scale = true;
  add_modelopt(file_, kGate, gate_, {1.0f}, 0.25f);
  add_modelopt(file_, kUp, up_, {1.0f}, 0.75f);
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, kPrefix).status(), StatusCode::kCorruptFile,
                         "0.25 for gate, 0.75 for up"));
  EXPECT_EQ(load_mlp_layer(file_, kPrefix, take_max)->dequant_input_scale, 0.75f);
  file_.erase(kGate + ".input_scale");
  EXPECT_TRUE(
      fails_with(load_mlp_layer(file_, kPrefix).status(), StatusCode::kCorruptFile, "none"));
  EXPECT_EQ(load_mlp_layer(file_, kPrefix, take_max)->dequant_input_scale, 0.75f);
}

TEST_F(LayerTest, MissingLayerNamesTheNearest) {
  add_modelopt(file_, kGate, gate_, {1.0f}, 0.0f);
  EXPECT_TRUE(fails_with(load_mlp_layer(file_, kPrefix).status(), StatusCode::kNotFound,
                         "nearest names: model.layers.0.mlp.gate_proj.weight"));  // Up is missing
  add_modelopt(file_, kUp, up_, {1.0f}, 0.0f);
  add_modelopt(file_, "model.layers.10.mlp.gate_up_proj", both_, {1.0f}, 0.0f);
  EXPECT_EQ(list_mlp_layers(file_),
            (std::vector<LayerEntry>{{kPrefix, 0}, {"model.layers.10.mlp", 0}}));
  const Status status = load_mlp_layer(file_, "model.layer.0.mlp").status();
  EXPECT_TRUE(fails_with(status, StatusCode::kNotFound, "layer 'model.layer.0.mlp'"));
  EXPECT_EQ(status.rule(), "nearest of 2 layers: model.layers.0.mlp, model.layers.10.mlp");
  TensorFile other;
  ASSERT_TRUE(other.add("m.w1.weight", ElementType::kU8, {0}, {}).ok());
  EXPECT_TRUE(fails_with(load_mlp_layer(other, "m").status(), StatusCode::kNotFound,
                         "nearest names: m.w1.weight"));
}

TEST_F(LayerTest, MixtralAndGgufNames) {
  add_modelopt(file_, "block.w1", gate_, {1.0f}, 0.0f);
  EXPECT_TRUE(list_mlp_layers(file_).empty()) << "w1 alone is no gated layer";
  add_modelopt(file_, "block.w3", up_, {2.0f}, 0.0f);
  add_modelopt(file_, "blk.0.ffn_gate", gate_, {3.0f}, 0.0f);
  add_modelopt(file_, "blk.0.ffn_up", up_, {4.0f}, 0.0f);
  expect_layer(load_mlp_layer(file_, "block"), gate_, 1.0, up_, 2.0);
  expect_layer(load_mlp_layer(file_, "blk.0"), gate_, 3.0, up_, 4.0);
  EXPECT_EQ(list_mlp_layers(file_), (std::vector<LayerEntry>{{"blk.0", 0}, {"block", 0}}));
}

TEST_F(LayerTest, HalvesThatDoNotBelongTogetherAreRefused) {
  const RawWeight taller(4, 32, rng_);
  add_modelopt(file_, kGate, gate_, {1.0f}, 0.0f);
  TensorFile other_shape = file_, other_convention = file_, both = file_;
  add_modelopt(other_shape, kUp, taller, {1.0f}, 0.0f);
  EXPECT_TRUE(fails_with(load_mlp_layer(other_shape, kPrefix).status(), StatusCode::kCorruptFile,
                         "modelopt e2m1 [4, 32]"));
  add_compressed(other_convention, kUp, up_, {1.0f}, 0.0f);
  EXPECT_TRUE(fails_with(load_mlp_layer(other_convention, kPrefix).status(),
                         StatusCode::kCorruptFile, "agree"));
  add_modelopt(both, kUp, up_, {1.0f}, 0.0f);
  add_modelopt(both, kStacked, both_, {1.0f}, 0.0f);
  EXPECT_TRUE(
      fails_with(load_mlp_layer(both, kPrefix).status(), StatusCode::kCorruptFile, "either"));
  TensorFile odd, two_scales;
  add_modelopt(odd, kStacked, gate_, {1.0f}, 0.0f);
  EXPECT_TRUE(fails_with(load_mlp_layer(odd, kPrefix).status(), StatusCode::kCorruptFile, "even"));
  add_modelopt(two_scales, kGate, gate_, {1.0f, 2.0f}, 0.0f);
  add_modelopt(two_scales, kUp, up_, {1.0f}, 0.0f);
  EXPECT_TRUE(fails_with(load_mlp_layer(two_scales, kPrefix).status(), StatusCode::kCorruptFile,
                         "two global scales"));
}

TEST_F(LayerTest, SpansOutliveTheFile) {
  const test::TempDirectory directory;
  add_modelopt(file_, kGate, gate_, {1.0f}, 0.0f);
  add_modelopt(file_, kUp, up_, {1.0f}, 0.0f);
  ASSERT_TRUE(write_safetensors(directory / "f.safetensors", file_).ok());
  Expected<MlpLayer> layer =
      load_mlp_layer(*TensorFile::open(directory / "f.safetensors"), kPrefix);
  expect_layer(layer, gate_, 1.0, up_, 1.0);
}

}  // namespace
}  // namespace dualgemm::checkpoint
