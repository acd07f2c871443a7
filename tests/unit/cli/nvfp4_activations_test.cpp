// Activations that are NVFP4 in their file: for a layer, for experts, for a whole MLP; and files in
// which several tensors could be the activations.
#include <cmath>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/npy.hpp"
#include "checkpoint/safetensors.hpp"
#include "dualgemm/formats.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using checkpoint::ElementType;
using Strings = std::vector<std::string>;

class Nvfp4Activations : public CliTest {
 protected:
  static constexpr int64_t kExperts = 3, kRows = 4, kK = 64, kAll = kExperts * kRows;

  Nvfp4Activations() : codes_(kAll * kK / 2), scales_(kAll * kK / 16) {
    for (size_t i = 0; i < codes_.size(); ++i) codes_[i] = static_cast<uint8_t>(37 * i + i / 7);
    for (size_t i = 0; i < scales_.size(); ++i) scales_[i] = static_cast<uint8_t>(0x30 + i % 24);
  }

  void make_experts() {
    Strings make = {
        "make-layer", "--out", path("layer.safetensors"), "--n", "48", "--k", "64", "--mlp",
        "--experts",  "3"};
    const ProgramResult made = run(make);
    ASSERT_EQ(made.exit_code, 0) << made;
    quantize();
    write_text("counts.txt", "3 0 4");
    write_text("all.txt", "5 0 7");
  }

  // Rows from `first` on as module `x`, shaped [batch..., K].
  void add(checkpoint::TensorFile& file, const std::string& module, int64_t first,
           std::vector<int64_t> batch, const std::vector<float>& globals) const {
    int64_t rows = 1;
    for (const int64_t extent : batch) rows *= extent;
    const auto add = [&](const char* end, ElementType type, const std::vector<uint8_t>& from,
                         int64_t columns) {
      std::vector<int64_t> shape = batch;
      shape.push_back(columns);
      ASSERT_TRUE(file.add_copy(module + end, type, shape, from.data() + first * columns,
                                static_cast<size_t>(rows * columns))
                      .ok());
    };
    add(".weight", ElementType::kU8, codes_, kK / 2);
    add(".weight_scale", ElementType::kF8E4M3, scales_, kK / 16);
    std::vector<int64_t> shape;
    if (globals.size() > 1) shape.push_back(static_cast<int64_t>(globals.size()));
    ASSERT_TRUE(file.add_copy(module + ".weight_scale_2", ElementType::kF32, shape, globals.data(),
                              globals.size() * 4)
                    .ok());
  }
  void write(const std::string& name, int64_t first, std::vector<int64_t> batch,
             const std::vector<float>& globals) const {
    checkpoint::TensorFile file;
    add(file, "x", first, std::move(batch), globals);
    ASSERT_TRUE(checkpoint::write_safetensors(path(name), file).ok());
  }
  // The same values in 16 bits, which hold them; global a power of two.
  void write_values(const std::string& name, std::vector<int64_t> batch, float global) const {
    std::vector<uint16_t> values;
    for (int64_t i = 0; i < kAll * kK; ++i) {
      const auto code =
          static_cast<uint8_t>(codes_[static_cast<size_t>(i / 2)] >> (i % 2 * 4) & 0xF);
      values.push_back(encode_bf16(decode_e2m1(code) *
                                   decode_scale(scales_[static_cast<size_t>(i / 16)]) * global));
    }
    batch.push_back(kK);
    checkpoint::TensorFile file;
    ASSERT_TRUE(
        file.add_copy("x", ElementType::kBF16, batch, values.data(), values.size() * 2).ok());
    ASSERT_TRUE(checkpoint::write_safetensors(path(name), file).ok());
  }

  ProgramResult run_on(const std::string& activations, const Strings& more) const {
    Strings all = {"run", path("q.safetensors"), "--activations", path(activations)};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  // The bytes of the checked result.
  std::string result_of(const std::string& activations, Strings more) const {
    more.insert(more.end(), {"--check", "--d-type", "f32", "--out", path("d.npy")});
    const ProgramResult result = run_on(activations, more);
    EXPECT_EQ(result.exit_code, 0) << result;
    const Expected<checkpoint::TensorFile> d = checkpoint::open_npy(path("d.npy"));
    if (!d) return {};
    const auto bytes = d->tensors().begin()->second.data;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string expert(int64_t number, int64_t first, int64_t rows, float global) const {
    write("one.safetensors", first, {rows}, {global});
    return result_of("one.safetensors",
                     {"--prefix", "model.layers.0.mlp", "--expert", std::to_string(number)});
  }

  std::vector<uint8_t> codes_, scales_;
};

TEST_F(Nvfp4Activations, GroupedRunsAgreeWithOneExpertAtATime) {
  make_experts();
  const Strings experts = {"--experts", "--expert-tokens", path("all.txt")};
  write("flat.safetensors", 0, {kAll}, {0.375f});
  const std::string expected = expert(0, 0, 5, 0.375f) + expert(2, 5, 7, 0.375f);
  EXPECT_TRUE(result_of("flat.safetensors", experts) == expected);
  // Batches of the file are rows one after the other, too.
  write("batches.safetensors", 0, {kExperts, kRows}, {0.375f});
  EXPECT_TRUE(result_of("batches.safetensors", experts) == expected);
  // Swizzled scales.
  const ProgramResult converted =
      run({"convert", path("flat.safetensors"), "--out", path("swizzled.safetensors"),
           "--scale-layout", "swizzled_128x4"});
  ASSERT_EQ(converted.exit_code, 0) << converted;
  EXPECT_TRUE(result_of("swizzled.safetensors", experts) == expected);
}

TEST_F(Nvfp4Activations, MaskedRunsTakeEachExpertsGlobalScale) {
  make_experts();
  write("batches.safetensors", 0, {kExperts, kRows}, {0.375f, 1.0f, 3.0f});
  const std::string d = result_of("batches.safetensors",
                                  {"--experts", "--masked", "--expert-tokens", path("counts.txt")});
  const size_t row = 48 * 4;
  ASSERT_EQ(d.size(), kAll * row);
  EXPECT_TRUE(d.substr(0, 3 * row) == expert(0, 0, 3, 0.375f));
  EXPECT_TRUE(d.substr(8 * row) == expert(2, 8, 4, 3.0f));
  const ProgramResult flat =
      run_on("batches.safetensors", {"--experts", "--expert-tokens", path("all.txt")});
  EXPECT_EQ(flat.exit_code, 1) << flat;
  EXPECT_TRUE(contains(flat.err, "must be one, except with --masked"));
}

// 16 bits hold the values: what multiplies them does as with the codes.
TEST_F(Nvfp4Activations, WholeLayersTakeThem) {
  make_experts();
  write("x.safetensors", 0, {kAll}, {0.5f});
  write_values("values.safetensors", {kAll}, 0.5f);
  write("batches.safetensors", 0, {kExperts, kRows}, {0.5f});
  write_values("value_batches.safetensors", {kExperts, kRows}, 0.5f);
  const Strings one = {"--prefix", "model.layers.0.mlp", "--expert", "1", "--mlp"},
                grouped = {"--experts", "--expert-tokens", path("all.txt"), "--mlp"},
                masked = {"--experts", "--masked", "--expert-tokens", path("counts.txt"), "--mlp"};
  EXPECT_TRUE(result_of("x.safetensors", one) == result_of("values.safetensors", one));
  EXPECT_TRUE(result_of("x.safetensors", grouped) == result_of("values.safetensors", grouped));
  EXPECT_TRUE(result_of("batches.safetensors", masked) ==
              result_of("value_batches.safetensors", masked));
  Strings quantized = one;
  quantized.push_back("--quantize-x");  // it is
  EXPECT_TRUE(result_of("x.safetensors", quantized) == result_of("x.safetensors", one));
}

TEST_F(Nvfp4Activations, ALayerTakesAllBatches) {
  make_experts();
  write("batches.safetensors", 0, {kExperts, kRows}, {0.375f});
  EXPECT_TRUE(result_of("batches.safetensors", {"--prefix", "model.layers.0.mlp", "--expert",
                                                "1"}) == expert(1, 0, kAll, 0.375f));
}

TEST_F(Nvfp4Activations, SeveralThatCouldBeMeantAreRefused) {
  make_experts();
  checkpoint::TensorFile two, beside;
  add(two, "a", 0, {kRows}, {1.0f});
  add(two, "b", kRows, {kRows}, {1.0f});
  add(beside, "a", 0, {kRows}, {1.0f});
  const std::vector<float> values(kK, 1.0f);
  ASSERT_TRUE(beside.add_copy("c", ElementType::kF32, {1, kK}, values.data(), kK * 4).ok());
  ASSERT_TRUE(checkpoint::write_safetensors(path("two.safetensors"), two).ok());
  ASSERT_TRUE(checkpoint::write_safetensors(path("beside.safetensors"), beside).ok());
  write_text("one.txt", "4 0 0");
  const Strings layer = {"--prefix", "model.layers.0.mlp", "--expert", "1"};
  const Strings grouped = {"--experts", "--expert-tokens", path("one.txt")};
  for (Strings more : {layer, grouped}) {
    for (const bool mlp : {false, true}) {
      if (mlp) more.push_back("--mlp");
      for (const char* file : {"two.safetensors", "beside.safetensors"}) {
        const ProgramResult result = run_on(file, more);
        EXPECT_EQ(result.exit_code, 1) << result;
        EXPECT_TRUE(contains(result.err, "name one with --activations-tensor (a, "));
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      }
      Strings named = more;
      named.insert(named.end(), {"--activations-tensor", "b"});
      const std::string second = result_of("two.safetensors", named);
      write("one.safetensors", kRows, {kRows}, {1.0f});
      EXPECT_TRUE(second == result_of("one.safetensors", more));
    }
  }
}

// NumPy has no bf16: the message of each job says what helps.
TEST_F(Nvfp4Activations, OpaqueNpySaysHowToReadIt) {
  make_experts();
  for (const char* descr : {"<u2", "<V2", "|V2"}) {
    std::string header =
        std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (12, 64), }";
    header.resize(117, ' ');
    header += '\n';
    write_text("x.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
                            std::string(kAll * kK * 2, '\x3F'));
    for (const Strings& more : {Strings{"--prefix", "model.layers.0.mlp", "--expert", "1"},
                                Strings{"--prefix", "model.layers.0.mlp", "--expert", "1", "--mlp"},
                                Strings{"--experts", "--expert-tokens", path("all.txt")}}) {
      const ProgramResult result = run_on("x.npy", more);
      EXPECT_EQ(result.exit_code, 1) << result;
      EXPECT_TRUE(contains(result.err, "if it is bf16, say so with --u2-is-bf16")) << descr;
      Strings as_bf16 = more;
      as_bf16.push_back("--u2-is-bf16");
      EXPECT_EQ(run_on("x.npy", as_bf16).exit_code, 0) << descr;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
