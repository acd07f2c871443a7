#include <cmath>
#include <limits>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

class WeightTest : public ::testing::Test {
 protected:
  WeightTest() {
    add_modelopt(modelopt_, "m", raw_, {0.5f}, 0.25f);
    add_compressed(compressed_, "m", raw_, {2.0f}, 4.0f);
  }
  template <class T>
  static TensorFile with(TensorFile file, const std::string& name, ElementType type,
                         std::vector<int64_t> shape, const std::vector<T>& values) {
    file.erase(name);
    EXPECT_TRUE(add_bytes(file, name, type, std::move(shape), values).ok()) << name;
    return file;
  }
  test::Rng rng_;
  RawWeight raw_{2, 32, rng_};
  TensorFile modelopt_, compressed_;
};

TEST_F(WeightTest, NamesParseBack) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(*parse_convention(name_of(static_cast<Convention>(i))), static_cast<Convention>(i));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*parse_nibble_order(name_of(static_cast<NibbleOrder>(i))),
              static_cast<NibbleOrder>(i));
    EXPECT_EQ(*parse_stacked_order(name_of(static_cast<StackedOrder>(i))),
              static_cast<StackedOrder>(i));
  }
  EXPECT_TRUE(fails_with(parse_convention("x").status(), StatusCode::kInvalidArgument, "modelopt"));
  EXPECT_TRUE(
      fails_with(parse_nibble_order("x").status(), StatusCode::kInvalidArgument, "low_even"));
  EXPECT_TRUE(
      fails_with(parse_stacked_order("x").status(), StatusCode::kInvalidArgument, "up_first"));
}

TEST_F(WeightTest, BothConventionsMeanTheSame) {
  for (const TensorFile* file : {&modelopt_, &compressed_}) {
    const Expected<Weight> weight = load_weight(*file, "m");
    ASSERT_TRUE(weight.ok()) << weight.status().message();
    EXPECT_EQ(weight->n, 2);
    EXPECT_EQ(weight->k, 32);
    EXPECT_EQ(weight->dequant_global_scales, std::vector<float>{0.5f});
    EXPECT_EQ(weight->dequant_input_scales, std::vector<float>{0.25f});
  }
}

TEST_F(WeightTest, ScalarsMayBeRank0Or1AndF4CodesAreCodes) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, std::vector<int64_t>{1}}) {
    const TensorFile file =
        with(modelopt_, "m.weight_scale_2", ElementType::kF32, shape, std::vector{3.0f});
    EXPECT_EQ(load_weight(file, "m")->dequant_global_scales, std::vector<float>{3.0f});
  }
  const TensorFile f4 = with(modelopt_, "m.weight", ElementType::kF4, {2, 32}, raw_.codes);
  EXPECT_EQ(load_weight(f4, "m")->k, 32);
}

TEST_F(WeightTest, MissingPartsAreNamed) {
  for (const char* part : {"m.weight_scale", "m.weight_scale_2"}) {
    TensorFile file = modelopt_;
    file.erase(part);
    EXPECT_TRUE(fails_with(load_weight(file, "m").status(), StatusCode::kNotFound, part));
  }
  for (const char* part : {"m.weight_scale", "m.weight_global_scale"}) {
    TensorFile file = compressed_;
    file.erase(part);
    EXPECT_TRUE(fails_with(load_weight(file, "m").status(), StatusCode::kNotFound, part));
  }
  EXPECT_TRUE(fails_with(load_weight(modelopt_, "n").status(), StatusCode::kNotFound,
                         "nearest names: m.weight"));
  TensorFile no_input = modelopt_;
  no_input.erase("m.input_scale");
  EXPECT_TRUE(load_weight(no_input, "m")->dequant_input_scales.empty());
}

TEST_F(WeightTest, WrongShapesAndTypesAreRefused) {
  const std::vector<uint8_t> zeros(4096);
  const auto bytes = [&](size_t count) { return std::vector<uint8_t>(count); };
  const auto refuse = [](const TensorFile& file, StatusCode code, const char* message) {
    EXPECT_TRUE(fails_with(load_weight(file, "m").status(), code, message));
  };
  const auto corrupt = StatusCode::kCorruptFile;
  refuse(with(modelopt_, "m.weight", ElementType::kU8, {32}, bytes(32)), corrupt, "matrix");
  refuse(with(modelopt_, "m.weight", ElementType::kU8, {1, 2, 16}, bytes(32)), corrupt,
         "[1, 2, 2]");  // one expert: its scales must have three extents, too
  refuse(with(modelopt_, "m.weight", ElementType::kU8, {1, 1, 2, 16}, bytes(32)), corrupt,
         "matrix");
  refuse(with(modelopt_, "m.weight", ElementType::kU8, {0, 16}, bytes(0)), corrupt, "matrix");
  refuse(with(modelopt_, "m.weight", ElementType::kU8, {2, 12}, bytes(24)), corrupt,
         "multiple of 16");
  refuse(with(modelopt_, "m.weight", ElementType::kU8, {3, 16}, bytes(48)), corrupt, "[3, 2]");
  refuse(with(modelopt_, "m.weight", ElementType::kF8E4M3, {2, 16}, bytes(32)),
         StatusCode::kUnsupported, "F8_E4M3 [2, 16]");
  refuse(with(compressed_, "m.weight_packed", ElementType::kI32, {2, 4}, bytes(32)),
         StatusCode::kUnsupported, "I32 [2, 4]");
  refuse(with(modelopt_, "m.weight", ElementType::kF16, {2, 24}, bytes(96)), corrupt,
         "multiple of 16");
  refuse(with(modelopt_, "m.weight_scale", ElementType::kI8, {2, 2}, bytes(4)), corrupt,
         "F8_E4M3 or U8 [2, 2]");
  refuse(with(modelopt_, "m.weight_scale", ElementType::kU8, {1, 2}, bytes(2)), corrupt,
         "scales of MXFP4 with n = 2, k = 32");
  refuse(with(modelopt_, "m.weight_scale", ElementType::kF8E4M3, {2, 1}, bytes(2)), corrupt,
         "n = 2");
  refuse(with(modelopt_, "m.weight_scale", ElementType::kF8E4M3, {4}, bytes(4)), corrupt, "[2, 2]");
  refuse(with(modelopt_, "m.weight_scale_2", ElementType::kF16, {}, bytes(2)), corrupt, "F32 []");
  refuse(with(modelopt_, "m.weight_scale_2", ElementType::kF32, {0}, bytes(0)), corrupt, "F32 [0]");
  refuse(with(modelopt_, "m.weight_scale_2", ElementType::kF32, {3}, bytes(12)), corrupt,
         "F32 [3]");
  refuse(with(modelopt_, "m.weight_scale_2", ElementType::kF32, {2, 1}, bytes(8)), corrupt,
         "F32 [2, 1]");
  refuse(with(modelopt_, "m.input_scale", ElementType::kF64, {}, bytes(8)), corrupt, "F64 []");
  refuse(with(modelopt_, "m.weight_packed", ElementType::kU8, {2, 16}, bytes(32)), corrupt,
         "only one");
}

TEST_F(WeightTest, GlobalScalesMustBePositiveAndFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  const std::pair<const TensorFile*, const char*> places[] = {
      {&modelopt_, "m.weight_scale_2"},
      {&modelopt_, "m.input_scale"},
      {&compressed_, "m.weight_global_scale"},
      {&compressed_, "m.input_global_scale"}};
  for (const auto& [file, name] : places) {
    for (const float value : {0.0f, -0.0f, -1.0f, nan, inf, -inf}) {
      const TensorFile bad = with(*file, name, ElementType::kF32, {}, std::vector{value});
      EXPECT_TRUE(fails_with(load_weight(bad, "m").status(), StatusCode::kCorruptFile, name))
          << value;
    }
  }
  // The smallest divisor is finite and positive, its reciprocal is not.
  const float denormal = std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(
      load_weight(with(modelopt_, "m.weight_scale_2", ElementType::kF32, {}, std::vector{denormal}),
                  "m")
          .ok());
  EXPECT_TRUE(fails_with(load_weight(with(compressed_, "m.weight_global_scale", ElementType::kF32,
                                          {}, std::vector{denormal}),
                                     "m")
                             .status(),
                         StatusCode::kCorruptFile, "reciprocal"));
}

TEST_F(WeightTest, AskedForConventionMustBeTheOneFound) {
  WeightOptions options;
  options.convention = Convention::kModelOpt;
  EXPECT_TRUE(load_weight(modelopt_, "m", options).ok());
  EXPECT_TRUE(fails_with(load_weight(compressed_, "m", options).status(),
                         StatusCode::kInvalidArgument, "compressed_tensors"));
}

TEST_F(WeightTest, AddedWeightsComeBack) {
  for (const TensorFile* file : {&modelopt_, &compressed_}) {
    const Weight weight = *load_weight(*file, "m");
    TensorFile out;
    ASSERT_TRUE(add_weight(out, "x.y", weight).ok());
    const Expected<Weight> back = load_weight(out, "x.y");
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->convention, weight.convention);
    EXPECT_EQ(back->data.data(), weight.data.data());
    EXPECT_EQ(back->scales.data(), weight.scales.data());
    EXPECT_EQ(back->dequant_global_scales, weight.dequant_global_scales);
    EXPECT_EQ(back->dequant_input_scales, weight.dequant_input_scales);
    EXPECT_EQ(out.tensors().size(), 4u);
  }
}

TEST_F(WeightTest, AddRefusesWhatWouldNotLoad) {
  const Weight good = *load_weight(compressed_, "m");
  TensorFile out;
  Weight weight = good;
  weight.dequant_global_scales = {std::numeric_limits<float>::denorm_min()};
  EXPECT_TRUE(fails_with(add_weight(out, "a", weight), StatusCode::kInvalidArgument, "finite"));
  weight = good;
  weight.k = 24;
  EXPECT_TRUE(fails_with(add_weight(out, "b", weight), StatusCode::kInvalidArgument, "k = 24"));
  weight = good;
  weight.n = 3;
  EXPECT_TRUE(fails_with(add_weight(out, "c", weight), StatusCode::kInvalidArgument, "needs 48"));
  ASSERT_TRUE(add_weight(out, "d", good).ok());
  weight = good;
  weight.nibble_order = NibbleOrder::kHighEven;
  EXPECT_TRUE(fails_with(add_weight(out, "e", weight), StatusCode::kInvalidArgument, "alike"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
