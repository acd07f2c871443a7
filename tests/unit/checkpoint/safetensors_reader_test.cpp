#include <algorithm>

#include "checkpoint/safetensors.hpp"
#include "io_test_support.hpp"
#include "support/rng.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::as_bytes;
using test::fails_with;
using test::safetensors_bytes;

Expected<TensorFile> parse_file(const std::string& bytes) {
  return parse_safetensors(as_bytes(bytes), "test.safetensors");
}

// The example of the format's description, byte by byte.
TEST(SafetensorsReaderTest, ReadsALiteralFile) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"U8","shape":[],"data_offsets":[4,5]}}   )";
  const std::string bytes = safetensors_bytes(json, std::string("\x00\x3C\x00\xC0\x07", 5));
  const Expected<TensorFile> file = parse_file(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(file->origin(), "test.safetensors");
  ASSERT_EQ(file->tensors().size(), 2u);
  const TensorView w = *file->get("w"), b = *file->get("b");
  EXPECT_EQ(w.dtype, ElementType::kF16);
  EXPECT_EQ(w.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*decode_to_f32(w), (std::vector<float>{1.0f, -2.0f}));
  EXPECT_EQ(w.data.data(), as_bytes(bytes).data() + 8 + json.size());  // a view, no copy
  EXPECT_TRUE(b.shape.empty());
  EXPECT_EQ(load_element<uint8_t>(b.data, 0), 7);
}

TEST(SafetensorsReaderTest, EmptyOnesAreLegal) {
  EXPECT_TRUE(parse_file(safetensors_bytes("{}", "")).ok());
  EXPECT_TRUE(parse_file(safetensors_bytes(R"({"__metadata__":{}})", "")).ok());
  const Expected<TensorFile> file = parse_file(safetensors_bytes(
      R"({"e":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]},)"
      R"("f":{"dtype":"F64","shape":[3,0],"data_offsets":[0,0]}})",
      ""));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->get("e")->elements(), 0);
}

TEST(SafetensorsReaderTest, F4ShapeMayCountValuesOrBytes) {
  for (const char* shape : {"[2,6]", "[2,3]"}) {
    const Expected<TensorFile> file = parse_file(safetensors_bytes(
        std::string(R"({"t":{"dtype":"F4","shape":)") + shape + R"(,"data_offsets":[0,6]}})",
        "abcdef"));
    ASSERT_TRUE(file.ok()) << shape << file.status().message();
    EXPECT_EQ(file->get("t")->shape, (std::vector<int64_t>{2, 6})) << shape;
  }
}

TEST(SafetensorsReaderTest, UnicodeNamesSurvive) {
  const Expected<TensorFile> file = parse_file(safetensors_bytes(
      "{\"\xC3\xA4\\u00e4\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->contains("\xC3\xA4\xC3\xA4"));
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

std::string deep(int depth) {
  return R"({"t":)" + std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']') + "}";
}

struct Hostile {
  const char* what;
  std::string bytes;
  const char* message;  // a part of it
};

const Hostile kHostileFiles[] = {
    {"nothing", "", "0 bytes"},
    {"half a length", "\x01\x02\x03", "3 bytes"},
    {"no header", std::string(8, '\0'), "no '{'"},
    {"header beyond the file", test::little_endian<uint64_t>(3) + "{}", "inside the file"},
    {"header beyond the limit", test::little_endian<uint64_t>(100'000'001) + "{}", "at most"},
    {"header of 2^64-1 bytes", std::string(8, '\xFF') + "{}", "at most"},
    {"blank before the object", safetensors_bytes(" {}", ""), "no '{'"},
    {"array instead of object", safetensors_bytes("[]", ""), "no '{'"},
    {"unfinished object", safetensors_bytes("{", ""), "valid JSON"},
    {"two objects", safetensors_bytes("{}{}", ""), "valid JSON"},
    {"zero byte as padding", safetensors_bytes(std::string("{}\0", 3), ""), "valid JSON"},
    {"trailing comma", safetensors_bytes("{\"a\":1,}", ""), "no place"},
    {"bad UTF-8", safetensors_bytes("{\"\xFF\":1}", ""), "UTF-8"},
    {"overlong UTF-8", safetensors_bytes("{\"\xC0\x80\":1}", ""), "UTF-8"},
    {"lone surrogate", safetensors_bytes(R"({"\ud800":1})", ""), "UTF-8"},
    {"comment", safetensors_bytes("{/**/}", ""), "valid JSON"},
    {"number as tensor", safetensors_bytes(R"({"t":5})", ""), "no place"},
    {"string as tensor", safetensors_bytes(R"({"t":"x"})", ""), "no place"},
    {"null as tensor", safetensors_bytes(R"({"t":null})", ""), "no place"},
    {"array as tensor", safetensors_bytes(R"({"t":[]})", ""), "no place"},
    {"deep nesting", safetensors_bytes(deep(1'000'000), ""), "no place"},
    {"control character in a name", safetensors_bytes(R"({"\u001b[2J":{}})", ""), "control"},
    {"zero byte in a name", safetensors_bytes(R"({"a\u0000b":{}})", ""), "control"},
    {"no fields", safetensors_bytes(R"({"t":{}})", ""), "incomplete"},
    {"no dtype", safetensors_bytes(R"({"t":{"shape":[],"data_offsets":[0,0]}})", ""), "incomplete"},
    {"no shape", safetensors_bytes(R"({"t":{"dtype":"U8","data_offsets":[0,0]}})", ""),
     "incomplete"},
    {"no offsets", safetensors_bytes(R"({"t":{"dtype":"U8","shape":[0]}})", ""), "incomplete"},
    {"unknown field", safetensors_bytes(R"({"t":{"dtype":"U8","x":1}})", ""), "must be dtype"},
    {"field twice", safetensors_bytes(R"({"t":{"dtype":"U8","dtype":"U8"}})", ""), "twice"},
    {"unknown dtype", safetensors_bytes(tensor("\"F33\"", "[0]", "[0,0]"), ""), "'F33'"},
    {"dtype as number", safetensors_bytes(tensor("8", "[0]", "[0,0]"), ""), "no place"},
    {"dtype as object", safetensors_bytes(tensor("{}", "[0]", "[0,0]"), ""), "no place"},
    {"shape as string", safetensors_bytes(tensor("\"U8\"", "\"0\"", "[0,0]"), ""), "no place"},
    {"shape as number", safetensors_bytes(tensor("\"U8\"", "0", "[0,0]"), ""), "no place"},
    {"nested shape", safetensors_bytes(tensor("\"U8\"", "[[0]]", "[0,0]"), ""), "no place"},
    {"object in shape", safetensors_bytes(tensor("\"U8\"", "[{}]", "[0,0]"), ""), "no place"},
    {"negative extent", safetensors_bytes(tensor("\"U8\"", "[-1]", "[0,0]"), ""), "negative"},
    {"fractional extent", safetensors_bytes(tensor("\"U8\"", "[0.0]", "[0,0]"), ""), "fraction"},
    {"extent as exponent", safetensors_bytes(tensor("\"U8\"", "[1e1]", "[0,10]"), ""), "fraction"},
    {"extent 2^63", safetensors_bytes(tensor("\"U8\"", "[9223372036854775808]", "[0,0]"), ""),
     "2^63"},
    {"extent 2^64", safetensors_bytes(tensor("\"U8\"", "[18446744073709551616]", "[0,0]"), ""),
     "64 bits"},
    {"product overflows to 0",
     safetensors_bytes(tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]"), ""), "63 bits"},
    {"bytes overflow", safetensors_bytes(tensor("\"F64\"", "[2305843009213693952]", "[0,0]"), ""),
     "63 bits"},
    {"65 extents",
     safetensors_bytes(tensor(
                           "\"U8\"",
                           "[1" +
                               [] {
                                 std::string ones;
                                 for (int i = 0; i < 64; ++i) ones += ",1";
                                 return ones;
                               }() +
                               "]",
                           "[0,1]"),
                       "x"),
     "rank"},
    {"one offset", safetensors_bytes(tensor("\"U8\"", "[0]", "[0]"), ""), "must be two"},
    {"three offsets", safetensors_bytes(tensor("\"U8\"", "[0]", "[0,0,0]"), ""), "must be two"},
    {"no offsets inside", safetensors_bytes(tensor("\"U8\"", "[0]", "[]"), ""), "must be two"},
    {"offsets reversed", safetensors_bytes(tensor("\"U8\"", "[1]", "[1,0]"), "x"), "ordered"},
    {"end beyond the data", safetensors_bytes(tensor("\"U8\"", "[2]", "[0,2]"), "x"),
     "inside the 1"},
    {"offsets of 2^64-1",
     safetensors_bytes(tensor("\"U8\"", "[0]", "[18446744073709551615,18446744073709551615]"), ""),
     "inside"},
    {"too few bytes", safetensors_bytes(tensor("\"F32\"", "[1]", "[0,3]"), "xyz"), "needs 4"},
    {"too many bytes", safetensors_bytes(tensor("\"F32\"", "[1]", "[0,5]"), "vwxyz"), "needs 4"},
    {"odd F4", safetensors_bytes(tensor("\"F4\"", "[3]", "[0,2]"), "xy"), "whole bytes"},
    {"F4 doubled past 63 bits",
     safetensors_bytes(tensor("\"F4\"", "[4611686018427387904,0,4611686018427387904]", "[0,1]"),
                       "x"),
     "needs 0"},
    {"bytes of no tensor", safetensors_bytes(tensor("\"U8\"", "[1]", "[0,1]"), "xy"), "end at 1"},
    {"hole at the start", safetensors_bytes(tensor("\"U8\"", "[1]", "[1,2]"), "xy"), "start where"},
    {"tensor twice",
     safetensors_bytes(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                       R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                       ""),
     "twice"},
    {"overlap",
     safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                       "xyz"),
     "start where"},
    {"same bytes twice",
     safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                       "xy"),
     "start where"},
    {"metadata as string", safetensors_bytes(R"({"__metadata__":"x"})", ""), "no place"},
    {"metadata value as number", safetensors_bytes(R"({"__metadata__":{"a":1}})", ""), "no place"},
    {"metadata key twice", safetensors_bytes(R"({"__metadata__":{"a":"1","a":"2"}})", ""), "twice"},
    {"metadata twice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})", ""), "twice"},
};

TEST(SafetensorsReaderTest, HostileFilesAreRefusedWithAReason) {
  for (const Hostile& hostile : kHostileFiles) {
    EXPECT_TRUE(
        fails_with(parse_file(hostile.bytes).status(), StatusCode::kCorruptFile, hostile.message))
        << hostile.what;
  }
}

// A header of almost the largest size, full of tensors without elements, is read in a moment.
TEST(SafetensorsReaderTest, ManyTensorsAreFine) {
  std::string json = "{";
  for (int i = 0; i < 20'000; ++i) {
    json += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
            R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  const Expected<TensorFile> file = parse_file(safetensors_bytes(json + "}", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tensors().size(), 20'000u);
}

const std::string& valid_file() {
  static const std::string bytes = safetensors_bytes(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"F4","shape":[2,4],"data_offsets":[16,20]}})",
      "0123456789abcdefghij");
  return bytes;
}

TEST(SafetensorsReaderTest, EveryPrefixAndEveryExtensionIsRefused) {
  ASSERT_TRUE(parse_file(valid_file()).ok());
  for (size_t size = 0; size < valid_file().size(); ++size) {
    EXPECT_EQ(parse_file(valid_file().substr(0, size)).status().code(), StatusCode::kCorruptFile)
        << size;
  }
  EXPECT_EQ(parse_file(valid_file() + "x").status().code(), StatusCode::kCorruptFile);
}

// A flipped bit in the header is found, or it changed only a name, a text, a shape of the same size
// or a dtype of the same width; never is memory outside the file reached (the sanitizer jobs
// watch).
TEST(SafetensorsReaderTest, BitFlipsNeverReachOutside) {
  int accepted = 0, refused = 0;
  for (size_t bit = 0; bit < 8 * valid_file().size(); ++bit) {
    std::string flipped = valid_file();
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const Expected<TensorFile> file = parse_file(flipped);
    file.ok() ? ++accepted : ++refused;
    if (!file) continue;
    size_t covered = 0;
    for (const auto& [name, tensor] : file->tensors()) {
      covered += tensor.data.size();
      EXPECT_GE(tensor.data.data(), as_bytes(flipped).data());
      EXPECT_LE(tensor.data.data() + tensor.data.size(), as_bytes(flipped).data() + flipped.size());
    }
    EXPECT_EQ(covered, 20u) << "bit " << bit;
  }
  EXPECT_GE(accepted, 8 * 20);  // flips in the data are not the reader's business
  EXPECT_GT(refused, 8 * 60);
}

TEST(SafetensorsReaderTest, RandomDamageNeverReachesOutside) {
  test::Rng rng;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = valid_file();
    for (int64_t i = rng.integer(1, 4); i > 0; --i) {
      const auto at = static_cast<size_t>(rng.integer(0, static_cast<int64_t>(damaged.size()) - 1));
      if (rng.chance(0.3))
        damaged.erase(at, 1);
      else if (rng.chance(0.3))
        damaged.insert(at, 1, static_cast<char>(rng.byte()));
      else
        damaged[at] = static_cast<char>(rng.byte());
    }
    const Expected<TensorFile> file = parse_file(damaged);
    if (!file) continue;
    for (const auto& [name, tensor] : file->tensors()) {
      EXPECT_LE(tensor.data.data() + tensor.data.size(), as_bytes(damaged).data() + damaged.size());
    }
  }
}

TEST(SafetensorsReaderTest, OpenReportsThePath) {
  const test::TempDirectory directory;
  EXPECT_TRUE(
      fails_with(open_safetensors(directory / "none").status(), StatusCode::kNotFound, "none"));
  test::write_text(directory / "bad", "short");
  EXPECT_TRUE(
      fails_with(open_safetensors(directory / "bad").status(), StatusCode::kCorruptFile, "bad"));
  test::write_text(directory / "good", valid_file());
  const Expected<TensorFile> file = open_safetensors(directory / "good");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(test::to_text(file->get("b")->data), "ghij");
}

}  // namespace
}  // namespace dualgemm::checkpoint
