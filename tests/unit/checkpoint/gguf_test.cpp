// GGUF files built byte by byte: what is read, and what is refused in which words.
#include "checkpoint/gguf.hpp"

#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint_test_support.hpp"
#include "dualgemm/formats.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;
using test::little_endian;

std::string text(const std::string& value) { return little_endian<uint64_t>(value.size()) + value; }

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> extents;  // K first, as in the file
  uint32_t type;
  std::string data;
};

struct GgufFile {
  uint32_t version = 3;
  std::vector<std::string> pairs;
  std::vector<GgufTensor> tensors;
  uint64_t alignment = 32;
  std::vector<uint64_t> offsets;  // replace the right ones where given

  std::string bytes() const {
    std::string out = "GGUF" + little_endian<uint32_t>(version) +
                      little_endian<uint64_t>(tensors.size()) +
                      little_endian<uint64_t>(pairs.size());
    for (const std::string& pair : pairs) out += pair;
    std::string data;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const GgufTensor& tensor = tensors[i];
      out +=
          text(tensor.name) + little_endian<uint32_t>(static_cast<uint32_t>(tensor.extents.size()));
      for (const uint64_t extent : tensor.extents) out += little_endian<uint64_t>(extent);
      out += little_endian<uint32_t>(tensor.type) +
             little_endian<uint64_t>(i < offsets.size() ? offsets[i] : data.size());
      data += tensor.data;
      data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
    }
    out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
    return out + data;
  }
};

std::string scalar(float value) { return little_endian<float>(value); }

std::string blocks_of(const RawWeight& raw) {
  std::string blocks(static_cast<size_t>(raw.n * raw.k / 64 * 36), '\0');
  EXPECT_TRUE(to_ggml_nvfp4(raw.codes.data(), raw.scales.data(), raw.n, raw.k,
                            reinterpret_cast<uint8_t*>(blocks.data()))
                  .ok());
  return blocks;
}

Expected<TensorFile> parse(const std::string& bytes) {
  return parse_gguf(test::as_bytes(bytes), "x.gguf");
}

class GgufTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kF32 = 0, kQ80 = 8, kNvfp4 = 40;
  GgufTest() : gate_(4, 128, rng_), up_(4, 128, rng_) {
    file_.pairs = {text("general.architecture") + little_endian<uint32_t>(8) + text("llama"),
                   text("tokens") + little_endian<uint32_t>(9) + little_endian<uint32_t>(8) +
                       little_endian<uint64_t>(2) + text("a") + text("b"),
                   text("scores") + little_endian<uint32_t>(9) + little_endian<uint32_t>(6) +
                       little_endian<uint64_t>(3) + std::string(12, '\0'),
                   text("flag") + little_endian<uint32_t>(7) + std::string(1, '\1')};
    file_.tensors = {{"blk.0.ffn_gate.weight", {128, 4}, kNvfp4, blocks_of(gate_)},
                     {"blk.0.ffn_gate.scale", {1}, kF32, scalar(0.5f)},
                     {"blk.0.ffn_up.weight", {128, 4}, kNvfp4, blocks_of(up_)},
                     {"blk.0.attn_q.weight", {32, 2}, kQ80, std::string(68, '\1')}};
  }

  test::Rng rng_;
  RawWeight gate_, up_;
  GgufFile file_;
};

TEST_F(GgufTest, ReadsALayerAndSaysWhatItLeavesOut) {
  const std::string bytes = file_.bytes();
  const Expected<TensorFile> file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->left_out(), (std::vector<std::string>{"blk.0.attn_q.weight (Q8_0)"}));
  EXPECT_EQ(file->metadata().at("general.architecture"), "llama");
  EXPECT_EQ(list_mlp_layers(*file), (std::vector<LayerEntry>{{"blk.0", 0}}));
  const Expected<MlpLayer> layer = load_mlp_layer(*file, "blk.0");
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->convention, Convention::kGgml);
  EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
  EXPECT_EQ(decode(*layer, layer->up), decode(up_, 1.0));  // without a scale tensor
}

TEST_F(GgufTest, IsFoundByNameAndByContent) {
  const test::TempDirectory directory;
  for (const char* name : {"model.gguf", "blob"}) {
    test::write_text(directory / name, file_.bytes());
    const Expected<TensorFile> file = TensorFile::open(directory / name);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->paths(), (std::vector<std::string>{directory / name}));
    EXPECT_TRUE(load_mlp_layer(*file, "blk.0").ok());
  }
}

TEST_F(GgufTest, ExpertsAndConversion) {
  const RawWeight other(4, 128, rng_);
  file_.tensors = {
      {"blk.1.ffn_gate_exps.weight", {128, 4, 2}, kNvfp4, blocks_of(gate_) + blocks_of(other)},
      {"blk.1.ffn_gate_exps.scale", {2}, kF32, scalar(0.5f) + scalar(0.25f)},
      {"blk.1.ffn_up_exps.weight", {128, 4, 2}, kNvfp4, blocks_of(up_) + blocks_of(gate_)}};
  const std::string bytes = file_.bytes();
  const Expected<TensorFile> file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(list_mlp_layers(*file), (std::vector<LayerEntry>{{"blk.1", 2}}));
  const Expected<TensorFile> converted = convert_checkpoint(*file, {});
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  EXPECT_TRUE(converted->contains("blk.1.experts.1.ffn_gate.weight_scale"));
  LayerOptions options;
  options.expert = 1;
  for (const TensorFile* from : {&*file, &*converted}) {
    const Expected<MlpLayer> layer = load_mlp_layer(*from, "blk.1", options);
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(decode(*layer, layer->gate), decode(other, 0.25));
    EXPECT_EQ(decode(*layer, layer->up), decode(gate_, 1.0));
  }
}

TEST_F(GgufTest, SharedExpertsBesideTheExperts) {
  file_.tensors = {
      {"blk.1.ffn_gate_exps.weight", {128, 4, 2}, kNvfp4, blocks_of(up_) + blocks_of(gate_)},
      {"blk.1.ffn_up_exps.weight", {128, 4, 2}, kNvfp4, blocks_of(up_) + blocks_of(up_)},
      {"blk.1.ffn_gate_shexp.weight", {128, 4}, kNvfp4, blocks_of(gate_)},
      {"blk.1.ffn_gate_shexp.scale", {1}, kF32, scalar(0.5f)},
      {"blk.1.ffn_up_shexp.weight", {128, 4}, kNvfp4, blocks_of(up_)}};
  const std::string bytes = file_.bytes();
  const Expected<TensorFile> file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(list_mlp_layers(*file), (std::vector<LayerEntry>{{"blk.1", 2}, {"blk.1.shexp", 0}}));
  EXPECT_EQ(list_expert_layers(*file), (std::vector<std::string>{"blk.1"}));
  const Expected<TensorFile> converted = convert_checkpoint(*file, {});
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  for (const TensorFile* from : {&*file, &*converted}) {
    const Expected<MlpLayer> layer = load_mlp_layer(*from, "blk.1.shexp");
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
    EXPECT_EQ(decode(*layer, layer->up), decode(up_, 1.0));
  }
}

// A model in several files, as llama-gguf-split writes it.
class GgufParts : public GgufTest {
 protected:
  static std::string number(const char* key, uint32_t type, uint32_t value) {
    return text(key) + little_endian<uint32_t>(type) +
           (type == 2 ? little_endian<uint16_t>(static_cast<uint16_t>(value))
                      : little_endian<uint32_t>(value));
  }
  GgufFile part(uint32_t no, uint32_t count, std::vector<GgufTensor> tensors, uint32_t all) const {
    GgufFile part;
    part.tensors = std::move(tensors);
    if (no == 0) part.pairs = file_.pairs;
    part.pairs.push_back(number("split.no", 2, no));
    part.pairs.push_back(number("split.count", 2, count));
    part.pairs.push_back(number("split.tensors.count", 5, all));
    return part;
  }
  std::string at(int number) const {
    return directory_ / ("m-0000" + std::to_string(number) + "-of-00003.gguf");
  }
  void write(uint32_t all = 4) {
    const std::vector<GgufTensor>& t = file_.tensors;
    test::write_text(at(1), part(0, 3, {}, all).bytes());  // metadata alone is usual
    test::write_text(at(2), part(1, 3, {t[0], t[3]}, all).bytes());
    test::write_text(at(3), part(2, 3, {t[1], t[2]}, all).bytes());
  }
  void refused(const std::string& path, StatusCode code, const char* message) {
    EXPECT_TRUE(fails_with(TensorFile::open(path).status(), code, message));
  }
  test::TempDirectory directory_;
};

TEST_F(GgufParts, AnyOfThemOpensTheModel) {
  write();
  for (const int number : {1, 2, 3}) {
    const Expected<TensorFile> file = TensorFile::open(at(number));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->paths(), (std::vector<std::string>{at(1), at(2), at(3)}));
    EXPECT_EQ(file->left_out(), (std::vector<std::string>{"blk.0.attn_q.weight (Q8_0)"}));
    EXPECT_EQ(file->metadata().at("general.architecture"), "llama");
    const Expected<MlpLayer> layer = load_mlp_layer(*file, "blk.0");
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    EXPECT_EQ(decode(*layer, layer->gate), decode(gate_, 0.5));
    EXPECT_EQ(decode(*layer, layer->up), decode(up_, 1.0));
  }
}

TEST_F(GgufParts, WhatDoesNotBelongTogetherIsRefused) {
  write(5);
  refused(at(1), StatusCode::kCorruptFile, "4 tensors in 3 parts; must be 5");
  write();
  const std::vector<GgufTensor>& t = file_.tensors;
  test::write_text(at(3), part(1, 3, {t[1], t[2]}, 4).bytes());
  refused(at(2), StatusCode::kCorruptFile, "says part 2 of 3; must be part 3 of 3");
  refused(at(3), StatusCode::kCorruptFile, "must be called NAME-00002-of-00003.gguf");
  test::write_text(at(3), part(2, 3, {t[0], t[2]}, 4).bytes());
  refused(at(1), StatusCode::kCorruptFile, "'blk.0.ffn_gate.weight' is in another part, too");
  test::write_text(at(3), file_.bytes());
  refused(at(1), StatusCode::kCorruptFile, "says part 1 of 1");
  write();
  std::filesystem::copy(at(2), directory_ / "renamed.gguf");
  refused(directory_ / "renamed.gguf", StatusCode::kCorruptFile, "llama-gguf-split --merge");
  std::filesystem::remove(at(2));
  const Status missing = TensorFile::open(at(1)).status();
  EXPECT_FALSE(missing.ok());
  EXPECT_NE(missing.message().find("m-00002-of-00003.gguf"), std::string::npos)
      << missing.message();
}

TEST_F(GgufTest, EveryTruncationIsRefused) {
  const std::string bytes = file_.bytes();
  for (size_t size = 0; size + 28 < bytes.size(); ++size) {  // 28: padding after the last tensor
    const std::string part = bytes.substr(0, size);
    const Expected<TensorFile> file = parse(part);
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_EQ(file.status().code(), StatusCode::kCorruptFile) << size;
  }
}

void refuse(const GgufFile& file, StatusCode code, const char* part) {
  EXPECT_TRUE(fails_with(parse(file.bytes()).status(), code, part));
}

TEST_F(GgufTest, RefusesWhatContradictsItself) {
  GgufFile bad = file_;
  bad.version = 1;
  refuse(bad, StatusCode::kUnsupported, "GGUF 1");
  bad.version = 0x03000000;
  refuse(bad, StatusCode::kUnsupported, "big-endian");
  bad = file_;
  bad.tensors[1].name = bad.tensors[0].name;
  refuse(bad, StatusCode::kCorruptFile, "appears twice");
  bad = file_;
  bad.tensors[0].extents = {100, 4};
  refuse(bad, StatusCode::kCorruptFile, "NVFP4 needs a multiple of 64");
  bad.tensors[0].extents = {uint64_t{1} << 40, uint64_t{1} << 40};
  refuse(bad, StatusCode::kCorruptFile, "60 bits");
  bad.tensors[0].extents = {1, 1, 1, 1, 1};
  refuse(bad, StatusCode::kCorruptFile, "at most 4 extents");
  bad.tensors[0].extents = {128, 4000};
  refuse(bad, StatusCode::kCorruptFile, "");
  bad = file_;
  bad.offsets = {1};
  refuse(bad, StatusCode::kCorruptFile, "must be a multiple of 32");
  bad.offsets = {0, 32};
  refuse(bad, StatusCode::kCorruptFile, "not before");
  bad.offsets = {0, uint64_t{1} << 62};
  refuse(bad, StatusCode::kCorruptFile, "bytes of data");
  bad = file_;
  bad.pairs.push_back(text("general.alignment") + little_endian<uint32_t>(4) +
                      little_endian<uint32_t>(24));
  refuse(bad, StatusCode::kCorruptFile, "power of two");
  bad.pairs.back() = text("k") + little_endian<uint32_t>(13) + std::string(8, '\0');
  refuse(bad, StatusCode::kCorruptFile, "value type 13");
  bad.pairs.back() = text("k") + little_endian<uint32_t>(9) + little_endian<uint32_t>(9) +
                     little_endian<uint64_t>(1);
  refuse(bad, StatusCode::kCorruptFile, "not nested");
  bad.pairs.back() = text("k") + little_endian<uint32_t>(9) + little_endian<uint32_t>(10) +
                     little_endian<uint64_t>(UINT64_MAX / 4);
  refuse(bad, StatusCode::kCorruptFile, "a length points past");
  std::string counts = file_.bytes();
  counts.replace(8, 8, little_endian<uint64_t>(UINT64_MAX));
  EXPECT_TRUE(fails_with(parse(counts).status(), StatusCode::kCorruptFile, "do not fit"));
}

// A key of another type than GGUF gives it would be as good as not there, and tensors read from the
// wrong place.
TEST_F(GgufTest, KeysThatAreUsedHaveTheirType) {
  const auto pair = [](const char* key, uint32_t type, const std::string& value) {
    return text(key) + little_endian<uint32_t>(type) + value;
  };
  const std::string array =
      little_endian<uint32_t>(4) + little_endian<uint64_t>(1) + little_endian<uint32_t>(64);
  const std::pair<std::string, const char*> cases[] = {
      {pair("general.alignment", 10, little_endian<uint64_t>(64)), "value type 10; must be uint32"},
      {pair("general.alignment", 5, little_endian<uint32_t>(64)), "value type 5; must be uint32"},
      {pair("general.alignment", 8, text("64")), "value type 8; must be uint32"},
      {pair("general.alignment", 9, array), "value type 9; must be uint32"},
      {pair("split.no", 4, little_endian<uint32_t>(0)), "must be uint16"},
      {pair("split.count", 10, little_endian<uint64_t>(3)), "must be uint16"},
      {pair("split.tensors.count", 4, little_endian<uint32_t>(3)), "must be int32"},
      {pair("split.tensors.count", 5, little_endian<int32_t>(-3)), "must not be negative"},
      {pair("general.name", 4, little_endian<uint32_t>(3)), "must be a string"}};
  for (const auto& [bytes, message] : cases) {
    GgufFile bad = file_;
    bad.pairs.push_back(bytes);
    refuse(bad, StatusCode::kCorruptFile, message);
  }
  GgufFile twice = file_;
  for (const uint32_t alignment : {32u, 64u})
    twice.pairs.push_back(pair("general.alignment", 4, little_endian<uint32_t>(alignment)));
  refuse(twice, StatusCode::kCorruptFile, "appears twice");
}

TEST_F(GgufTest, OtherAlignmentsAndAScaleThatIsNoNumber) {
  file_.alignment = 64;
  file_.pairs.push_back(text("general.alignment") + little_endian<uint32_t>(4) +
                        little_endian<uint32_t>(64));
  EXPECT_TRUE(parse(file_.bytes()).ok());
  file_.tensors[1].data = scalar(NAN);
  const std::string bytes = file_.bytes();
  const Expected<TensorFile> file = parse(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(fails_with(load_mlp_layer(*file, "blk.0").status(), StatusCode::kCorruptFile,
                         "blk.0.ffn_gate.scale': value nan"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
