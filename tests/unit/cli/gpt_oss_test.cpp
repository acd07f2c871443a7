// gpt-oss as it is downloaded, through the command: the same results as of the same values split
// into ModelOpt's gate, up and down.
#include "checkpoint/mxfp4.hpp"
#include "checkpoint/npy.hpp"
#include "checkpoint/safetensors.hpp"
#include "run_program.hpp"
#include "support/rng.hpp"
#include "unit/checkpoint/checkpoint_test_support.hpp"

namespace dualgemm::test {
namespace {

using checkpoint::ElementType;
using checkpoint::TensorFile;

constexpr int64_t kExperts = 3, kN = 64, kK = 96, kRows = 8;

class GptOssCommand : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    add_projection("gate_up_proj", 2 * kN, kK);
    add_projection("down_proj", kK, kN);
    checkpoint::TensorView x;
    std::vector<float> values;
    for (int64_t i = 0; i < kRows * kK; ++i)
      values.push_back(static_cast<float>(rng_.integer(-32, 32)) / 16.0f);
    TensorFile file;
    ASSERT_TRUE(checkpoint::add_bytes(file, "x", ElementType::kF32, {kRows, kK}, values).ok());
    ASSERT_TRUE(checkpoint::write_npy(path("x.npy"), file.tensors().begin()->second).ok());
    ASSERT_TRUE(checkpoint::write_safetensors(path("mx.safetensors"), mx_).ok());
    ASSERT_TRUE(checkpoint::write_safetensors(path("split.safetensors"), split_).ok());
    write_text(path("counts.txt"), "3\n0\n5\n");
  }

  // Every other row from `first` on.
  static std::vector<uint8_t> rows(const std::vector<uint8_t>& from, int64_t n, int64_t first) {
    const int64_t bytes = static_cast<int64_t>(from.size()) / n;
    std::vector<uint8_t> out;
    for (int64_t row = first; row < n; row += 2)
      out.insert(out.end(), from.begin() + row * bytes, from.begin() + (row + 1) * bytes);
    return out;
  }
  void add_split(int64_t expert, const std::string& name, const std::vector<uint8_t>& codes,
                 const std::vector<uint8_t>& scales, float global, std::vector<float> bias) {
    const std::string at = "m.experts." + std::to_string(expert) + "." + name;
    const auto n = static_cast<int64_t>(bias.size());
    const auto k = static_cast<int64_t>(codes.size()) / n * 2;
    ASSERT_TRUE(
        checkpoint::add_bytes(split_, at + ".weight", ElementType::kU8, {n, k / 2}, codes).ok());
    ASSERT_TRUE(checkpoint::add_bytes(split_, at + ".weight_scale", ElementType::kF8E4M3,
                                      {n, k / 16}, scales)
                    .ok());
    checkpoint::add_scalar(split_, at + ".weight_scale_2", global);
    ASSERT_TRUE(checkpoint::add_bytes(split_, at + ".bias", ElementType::kF32, {n}, bias).ok());
  }
  void add_projection(const std::string& name, int64_t n, int64_t k) {
    std::vector<uint8_t> all_codes, all_exponents;
    std::vector<float> all_bias;
    for (int64_t e = 0; e < kExperts; ++e) {
      std::vector<uint8_t> codes(static_cast<size_t>(n * k / 2)),
          exponents(static_cast<size_t>(n * k / 32));
      for (uint8_t& code : codes) code = rng_.byte();
      for (uint8_t& exponent : exponents) exponent = static_cast<uint8_t>(rng_.integer(118, 122));
      std::vector<float> bias;
      for (int64_t i = 0; i < n; ++i)
        bias.push_back(static_cast<float>(rng_.integer(-8, 8)) / 4.0f);
      const auto nvfp4 = checkpoint::scales_of_mxfp4(codes, exponents, n, k, false, name);
      ASSERT_TRUE(nvfp4.ok());
      if (name == "down_proj") {
        add_split(e, name, codes, nvfp4->scales, nvfp4->global_scale, bias);
      } else {
        for (const int64_t first : {0, 1}) {
          std::vector<float> own;
          for (int64_t i = first; i < n; i += 2) own.push_back(bias[static_cast<size_t>(i)]);
          add_split(e, first == 0 ? "gate_proj" : "up_proj", rows(codes, n, first),
                    rows(nvfp4->scales, n, first), nvfp4->global_scale, own);
        }
      }
      all_codes.insert(all_codes.end(), codes.begin(), codes.end());
      all_exponents.insert(all_exponents.end(), exponents.begin(), exponents.end());
      all_bias.insert(all_bias.end(), bias.begin(), bias.end());
    }
    const std::string at = "m.experts." + name;
    const auto add = [&](const char* end, ElementType type, std::vector<int64_t> shape,
                         const auto& values) {
      ASSERT_TRUE(checkpoint::add_bytes(mx_, at + end, type, std::move(shape), values).ok());
    };
    add("_blocks", ElementType::kU8, {kExperts, n, k / 32, 16}, all_codes);
    add("_scales", ElementType::kU8, {kExperts, n, k / 32}, all_exponents);
    add("_bias", ElementType::kF32, {kExperts, n}, all_bias);
  }
  std::string result_of(const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"run",         path(file), "--activations",
                                    path("x.npy"), "--act",    "swiglu_oai",
                                    "--check",     "--out",    path("d.npy")};
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult result = run(all);
    EXPECT_EQ(result.exit_code, 0) << result;
    return read_text(path("d.npy"));
  }

  Rng rng_;
  TensorFile mx_, split_;
};

TEST_F(GptOssCommand, TheSameAsSplit) {
  const std::vector<std::string> groups = {"--experts", "--expert-tokens", path("counts.txt")};
  std::vector<std::string> whole = groups;
  whole.push_back("--mlp");
  for (const auto& more : {groups, whole, {"--expert", "1"}, {"--expert", "2", "--mlp"}}) {
    const std::string expected = result_of("split.safetensors", more);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(result_of("mx.safetensors", more) == expected) << more.front();
  }
  const ProgramResult validated = run({"validate", path("mx.safetensors")});
  EXPECT_EQ(validated.exit_code, 0) << validated;
  EXPECT_TRUE(contains(validated.out, "mxfp4, stacked, 3 experts"));
  EXPECT_TRUE(contains(validated.err, "`run` can use 1 of 1 layers"));
}

}  // namespace
}  // namespace dualgemm::test
