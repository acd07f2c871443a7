// The global scale of compressed-tensors, a divisor, as docs/formats.md and docs/checkpoints.md
// have it: what is written, what it reads back as, and that there and back is the identity.
#include <fmt/format.h>

#include <bit>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint_test_support.hpp"
#include "io_test_support.hpp"
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr int kRounds = 1000;

float ulp(float x) { return std::nextafter(x, 1e38f) - x; }

class Divisor : public ::testing::Test {
 protected:
  float random_positive() {
    return std::ldexp(rng_.uniform(1.0f, 2.0f), static_cast<int>(rng_.integer(-60, 60)));
  }
  static TensorFile convert(const TensorFile& in, Convention to) {
    Expected<TensorFile> out = convert_checkpoint(in, {{}, to, {}, {}});
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out ? *std::move(out) : TensorFile();
  }
  static float scalar(const TensorFile& file, const std::string& name) {
    const Expected<TensorView> tensor = file.get(name);
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    return tensor ? load_element<float>(tensor->data, 0) : 0.0f;
  }
  static Weight load(const TensorFile& file) {
    const Expected<Weight> weight = load_weight(file, "w");
    EXPECT_TRUE(weight.ok()) << weight.status().message();
    return weight ? *weight : Weight();
  }
  test::Rng rng_;
};

TEST_F(Divisor, OfAMultiplierIsItsReciprocalRoundedOnce) {
  int kept = 0;
  for (int round = 0; round < kRounds; ++round) {
    const float multiplier = random_positive(), input = random_positive();
    TensorFile file;
    add_modelopt(file, "w", RawWeight(1, 16, rng_), {multiplier}, input);
    const TensorFile there = convert(file, Convention::kCompressedTensors);
    const float divisor = scalar(there, "w.weight_global_scale");
    ASSERT_EQ(divisor, 1.0f / multiplier);
    ASSERT_EQ(scalar(there, "w.input_global_scale"), 1.0f / input);

    // The metadata keep the multiplier exactly where the reciprocal does not give it back.
    const auto entry = there.metadata().find(std::string(kMultiplierKey) + "w.weight_global_scale");
    const bool lost = 1.0f / divisor != multiplier;
    ASSERT_EQ(entry != there.metadata().end(), lost) << multiplier;
    if (lost) {
      ++kept;
      ASSERT_EQ(entry->second, fmt::format("{:08x}", std::bit_cast<uint32_t>(multiplier)));
    }

    // Read with them: the multiplier. Without, as others read: within one unit in the last place.
    ASSERT_EQ(load(there).dequant_global_scales, std::vector{multiplier});
    ASSERT_EQ(load(there).dequant_input_scales, std::vector{input});
    TensorFile others = there;
    others.metadata().clear();
    ASSERT_LE(std::abs(load(others).dequant_global_scales[0] - multiplier), ulp(multiplier));

    const TensorFile back = convert(there, Convention::kModelOpt);
    ASSERT_EQ(scalar(back, "w.weight_scale_2"), multiplier);
    ASSERT_EQ(scalar(back, "w.input_scale"), input);
    for (const auto& [key, value] : back.metadata())
      ASSERT_FALSE(key.starts_with(kMultiplierKey) || key.starts_with(kDivisorKey)) << key;
  }
  EXPECT_GT(kept, kRounds / 20) << "1/(1/x) is not x for many";
  EXPECT_LT(kept, kRounds / 2);
}

// A file of llm-compressor, whose divisor is 2688/amax, comes back as it was, too.
TEST_F(Divisor, OfOthersComesBack) {
  int kept = 0;
  for (int round = 0; round < kRounds; ++round) {
    const float divisor = 2688.0f / random_positive();
    TensorFile file;
    add_compressed(file, "w", RawWeight(1, 16, rng_), {divisor}, 0.0f);
    ASSERT_EQ(load(file).dequant_global_scales, std::vector{1.0f / divisor});
    const TensorFile there = convert(file, Convention::kModelOpt);
    ASSERT_EQ(scalar(there, "w.weight_scale_2"), 1.0f / divisor);
    kept += there.metadata().contains(fmt::format("{}w.weight_scale_2", kDivisorKey)) ? 1 : 0;
    const TensorFile back = convert(there, Convention::kCompressedTensors);
    ASSERT_EQ(scalar(back, "w.weight_global_scale"), divisor);
  }
  EXPECT_GT(kept, 0);
}

// What `quantize` writes: 1/(amax/2688), at most one unit in the last place from 2688/amax.
TEST_F(Divisor, OfAQuantisedTensor) {
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> values(16, 0.0f), activations(16, 0.0f);
    const float amax = values[3] = std::ldexp(rng_.uniform(1.0f, 2.0f), 3 - round % 16);
    activations[5] = -random_positive();
    TensorFile in, x;
    ASSERT_TRUE(add_bytes(in, "w.weight", ElementType::kF32, {1, 16}, values).ok());
    ASSERT_TRUE(add_bytes(x, "x", ElementType::kF32, {1, 16}, activations).ok());
    QuantizeCheckpointOptions options;
    options.convention = Convention::kCompressedTensors;
    options.calibrations = {{*x.find("x"), "x.npy"}};
    const Expected<TensorFile> out = quantize_checkpoint(in, options);
    ASSERT_TRUE(out.ok()) << out.status().message();
    const float divisor = scalar(*out, "w.weight_global_scale");
    ASSERT_EQ(divisor, 1.0f / (amax / 2688.0f));
    ASSERT_LE(std::abs(divisor - 2688.0f / amax), ulp(2688.0f / amax));
    ASSERT_EQ(scalar(*out, "w.input_global_scale"), 1.0f / (-activations[5] / 2688.0f));
    ASSERT_EQ(load(*out).dequant_global_scales, std::vector{amax / 2688.0f});
  }
}

}  // namespace
}  // namespace dualgemm::checkpoint
