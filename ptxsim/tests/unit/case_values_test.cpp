// Values of buffers as packed texts and in files of their own: what stands for what, what is
// refused and where.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "case/packed_values.hpp"
#include "case/value_file.hpp"
#include "ptxsim/case/case.hpp"

namespace ptxsim {
namespace {

namespace fs = std::filesystem;

constexpr std::optional<uint64_t> kAny;

Patterns unpacked(const std::string& text, ElementType type, bool hex = false) {
  Patterns patterns;
  const PackedFormat format{.type = type, .hex = hex};
  const auto error = read_packed(text, format, patterns);
  EXPECT_FALSE(error) << text << ": " << error->reason;
  return patterns;
}

TEST(PackedValues, AreNumbersRunsAndRanges) {
  const struct {
    const char* text;
    ElementType type;
    Patterns patterns;
  } rows[] = {
      {"", ElementType::kU8, {}},
      {" 1\t2\r\n 255 ", ElementType::kU8, {1, 2, 255}},
      {"-1 -128 127 0xff", ElementType::kS8, {0xff, 0x80, 0x7f, 0xff}},
      {"-0", ElementType::kS32, {0}},
      {"7*3 0xbeef*2", ElementType::kU16, {7, 7, 7, 0xbeef, 0xbeef}},
      {"- 1 -*2", ElementType::kU32, {kAny, 1, kAny, kAny}},
      {"3..6", ElementType::kU64, {3, 4, 5, 6}},
      {"5..5", ElementType::kU64, {5}},
      {"2..-2", ElementType::kS16, {2, 1, 0, 0xffff, 0xfffe}},
      {"-4..8/4 9..0/3", ElementType::kS8, {0xfc, 0, 4, 8, 9, 6, 3, 0}},
      {"18446744073709551615", ElementType::kU64, {UINT64_MAX}},
      {"-9223372036854775808", ElementType::kS64, {uint64_t{1} << 63}},
      {"1.5 -2 -0.0 1e-3 0x7fc00000",
       ElementType::kF32,
       {0x3fc00000, 0xc0000000, 0x80000000, 0x3a83126f, 0x7fc00000}},
      {"1..3 -1*2",
       ElementType::kF64,
       {0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000, 0xbff0000000000000,
        0xbff0000000000000}},
      {"15360", ElementType::kF16, {0x3c00}},
  };
  for (const auto& row : rows) EXPECT_EQ(unpacked(row.text, row.type), row.patterns) << row.text;
}

TEST(PackedValues, AreHexadecimalPatternsWhereTheFileSaysSo) {
  EXPECT_EQ(unpacked("3f800000 0 a*2 8..b - c..0/4", ElementType::kF32, true),
            (Patterns{0x3f800000, 0, 10, 10, 8, 9, 10, 11, kAny, 12, 8, 4, 0}));
  EXPECT_EQ(unpacked("fffffffffffffffe..ffffffffffffffff", ElementType::kU64, true),
            (Patterns{UINT64_MAX - 1, UINT64_MAX}));
}

TEST(PackedValues, AreRefusedWithTheWord) {
  const struct {
    const char* text;
    const char* word;
    const char* reason;
    ElementType type = ElementType::kU8;
    bool hex = false;
  } rows[] = {
      {"1 256 2", "256", "'256' is no number or pattern of 8 bits"},
      {"-129", "-129", "'-129' is no number or pattern of 8 bits"},
      {"+1", "+1", "'+1' is no number or pattern of 8 bits"},
      {"1.5", "1.5", "'1.5' is no number or pattern of 8 bits"},
      {"0x1ff", "0x1ff", "'0x1ff' is no number or pattern of 8 bits"},
      {"0x", "0x", "'0x' is no number or pattern of 8 bits"},
      {"nan", "nan", "'nan' is no number or pattern of 32 bits", ElementType::kF32},
      {"1e999", "1e999", "'1e999' is no number or pattern of 64 bits", ElementType::kF64},
      {"0x3f", "0x3f", "'0x3f' is no pattern of 32 bits", ElementType::kF32, true},
      {"12g", "12g", "'12g' is no pattern of 32 bits", ElementType::kU32, true},
      {"100", "100", "'100' is no pattern of 8 bits", ElementType::kU8, true},
      {"\x1b", "\x1b", "'\\x1b' is no number or pattern of 8 bits"},
      {"2*0", "2*0", "'0' is no count; 'value*count' has one of 1 or more"},
      {"2*x", "2*x", "'x' is no count; 'value*count' has one of 1 or more"},
      {"2*3*4", "2*3*4", "'3*4' is no count; 'value*count' has one of 1 or more"},
      {"1..2*3", "1..2*3", "'1..2' is no number or pattern of 8 bits"},
      {"1..", "1..", "'' is no number or pattern of 8 bits"},
      {"..1", "..1", "'' is no number or pattern of 8 bits"},
      {"0..256", "0..256", "'256' is no number or pattern of 8 bits"},
      {"1..2.5", "1..2.5", "'2.5' is no number or pattern of 32 bits", ElementType::kF32},
      {"0..7/2", "0..7/2", "'0..7/2': steps from the first value do not end at the last"},
      {"0..7/0", "0..7/0", "'0..7/0': steps from the first value do not end at the last"},
      {"0..7/-1", "0..7/-1", "'0..7/-1': steps from the first value do not end at the last"},
      {"0*4194305", "0*4194305", "more than 4194304 values"},
      {"0*99999999999999999999", "0*99999999999999999999",
       "'99999999999999999999' is no count; 'value*count' has one of 1 or more"},
      {"0..18446744073709551615", "0..18446744073709551615",
       "'18446744073709551615' is no number or pattern of 64 bits", ElementType::kU64},
      {"0..9223372036854775807", "0..9223372036854775807", "more than 4194304 values",
       ElementType::kU64},
      {"-9223372036854775808..9223372036854775807", "-9223372036854775808..9223372036854775807",
       "more than 4194304 values", ElementType::kS64},
  };
  for (const auto& row : rows) {
    Patterns patterns;
    const PackedFormat format{.type = row.type, .hex = row.hex};
    const auto error = read_packed(row.text, format, patterns);
    ASSERT_TRUE(error) << row.text;
    EXPECT_EQ(error->word, row.word);
    EXPECT_EQ(error->reason, row.reason) << row.text;
  }
}

TEST(ValueFile, HasNamedArraysWithComments) {
  const ValueFile file = read_value_file(
      "# inputs\n"
      "a: u32 5 hex  # patterns\n"
      "1 ff\n"
      "\n"
      "a..c\r\n"
      "empty: f32 0\n"
      "out.after: s8 3\n"
      "-1 - 2",
      "x.values");
  ASSERT_EQ(file.size(), 3u);
  EXPECT_EQ(file.at("a").patterns, (Patterns{1, 0xff, 10, 11, 12}));
  EXPECT_EQ(file.at("a").type, ElementType::kU32);
  EXPECT_TRUE(file.at("empty").patterns.empty());
  EXPECT_EQ(file.at("out.after").patterns, (Patterns{0xff, kAny, 2}));
}

TEST(ValueFile, IsRefusedAtThePlace) {
  const struct {
    const char* text;
    int line, column;
    const char* message;
  } rows[] = {
      {"1 2", 1, 1, "'1 2' stands before the first array; an array begins with 'name: type count'"},
      {"a: u32\n1", 1, 1, "'a: u32'; an array begins with"},
      {"a: u32 1 octal\n1", 1, 1, "'a: u32 1 octal'; an array begins with"},
      {": u32 1\n1", 1, 1, "': u32 1'; an array begins with"},
      {"a b: u32 1\n1", 1, 1, "'a b: u32 1'; an array begins with"},
      {"a: u33 1\n1", 1, 4, "type 'u33' is unknown; u8 .. s64"},
      {"a: u32 -1\n", 1, 8, "count '-1'; must be an integer"},
      {"a: u32 4194305\n", 1, 8, "count '4194305'; must be an integer, and at most 4194304"},
      {"a: u8 4194304\n0*4194304\nb: u8 1\n1", 3, 7, "count '1'; must be an integer"},
      {"# c\na: u32 2\n 1\nb: u32 0\n", 2, 1, "1 values follow; the count says 2"},
      {"a: u32 3\n1 2", 1, 1, "2 values follow; the count says 3"},
      {"a: u32 2\n1\n 2 3", 3, 4, "more than 2 values"},
      {"a: u32 2\n0*99999999", 2, 1, "more than 2 values"},
      {"a: u8 1\n256", 2, 1, "'256' is no number or pattern of 8 bits"},
      {"a: u8 1\n1\na: u8 1\n2", 3, 1, "'a' is there already; a name stands for one array"},
  };
  for (const auto& row : rows) {
    try {
      read_value_file(row.text, "x.values");
      ADD_FAILURE() << row.text;
    } catch (const Fault& fault) {
      const Error& error = fault.error();
      EXPECT_EQ(error.kind, ErrorKind::kInput);
      EXPECT_TRUE(error.message.starts_with(std::string("values: ") + row.message))
          << error.message;
      EXPECT_EQ(error.place.ptx_name, "x.values");
      EXPECT_EQ(std::pair(error.place.ptx_line, error.place.ptx_column),
                std::pair(row.line, row.column))
          << row.text;
    }
  }
}

class ValuesOfACase : public testing::Test {
 protected:
  ValuesOfACase() {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("values_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_ / "sub");
    write("x.values", "a: u32 3\n1 2 3\nb: u32 2 hex\n- ff\n");
  }
  ~ValuesOfACase() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Result<Case> parse(const std::string& buffer) {
    return parse_case("{\"buffers\": [{\"name\": \"o\", \"type\": \"u32\", " + buffer + "}]}",
                      folder_.string(), nullptr, "c.json");
  }
  void expect_refused(const std::string& buffer, const std::string& message) {
    const auto c = parse(buffer);
    ASSERT_FALSE(c.ok()) << buffer;
    EXPECT_NE(to_string(c.error()).find(message), std::string::npos) << to_string(c.error());
  }

  fs::path folder_;
};

TEST_F(ValuesOfACase, StandInAFileBesideIt) {
  auto c = parse(R"("values": "x.values#a", "count": 4, "fill": 9, "expect": "x.values#b")");
  ASSERT_TRUE(c.ok()) << to_string(c.error());
  auto listed = parse(R"("values": [1, 2, 3], "count": 4, "fill": 9, "expect": [null, 255])");
  EXPECT_EQ(c->buffers[0].data, listed->buffers[0].data);
  EXPECT_EQ(c->buffers[0].expect, listed->buffers[0].expect);
  EXPECT_TRUE(c->buffers[0].initialized);
}

TEST_F(ValuesOfACase, StandInAFileOfAnotherFolder) {
  write("sub/y.values", "a: b32 1\n7\n");
  for (const std::string& file :
       {std::string("sub/y.values"), (folder_ / "sub/y.values").string()}) {
    auto c = parse("\"values\": \"" + file + "#a\"");
    ASSERT_TRUE(c.ok()) << to_string(c.error());
    EXPECT_EQ(c->buffers[0].data[0], std::byte{7});
  }
}

TEST_F(ValuesOfACase, ArePackedInTheCaseItself) {
  auto c = parse(R"("values": "0..6/2", "expect": "- 0x10 7*2")");
  ASSERT_TRUE(c.ok()) << to_string(c.error());
  auto listed = parse(R"("values": [0, 2, 4, 6], "expect": [null, 16, 7, 7])");
  EXPECT_EQ(c->buffers[0].data, listed->buffers[0].data);
  EXPECT_EQ(c->buffers[0].expect, listed->buffers[0].expect);
}

TEST_F(ValuesOfACase, AreRefused) {
  expect_refused(R"("values": "none.values#a")",
                 "c.json:1:53: error: case: buffers[0].values: "
                 "cannot read '" +
                     (folder_ / "none.values").string() + "'");
  expect_refused(R"("values": "sub#a")", "cannot read");
  expect_refused(R"("values": "x.values#c")",
                 "buffers[0].values: 'x.values' has no values 'c'; it has: a, b");
  expect_refused(R"("values": "x.values#")", "'x.values' has no values ''");
  expect_refused(R"("values": "x.values#b")", "value 0 is open; that is for \"expect\" alone");
  expect_refused(R"("values": "1 -")", "value 1 is open; that is for \"expect\" alone");
  expect_refused(R"("values": [1, null])", "value 1 is open; that is for \"expect\" alone");
  expect_refused(R"("values": "1 2x")", "buffers[0].values: '2x' is no number or pattern");
  expect_refused(R"("values": "x.values#a", "count": 2)", "more values than the count 2");
  expect_refused(R"("count": 1, "expect": "x.values#b")", "2 values expected of 4 bytes");
  expect_refused(R"("count": 1, "expect": 7)", "buffers[0].expect: must be a list");
  write("x.values", "a: s32 1\n1\n");
  expect_refused(R"("values": "x.values#a")",
                 "'x.values#a' has the type s32; the buffer has another");
  write("x.values", "a: u32 1\n1 2\n");
  expect_refused(R"("values": "x.values#a")",
                 (folder_ / "x.values").string() + ":2:3: error: values: more than 1 values");
}

TEST_F(ValuesOfACase, StandInAFileOfBoundedSize) {
  write("x.values", "");
  fs::resize_file(folder_ / "x.values", kMostValueFileBytes + 1);
  expect_refused(R"("values": "x.values#a")", "a file of values has at most 67108864");
}

// Files of values in the tree belong to a case, which uses all of them.
TEST(ValueFile, OfTheTestsAreUsed) {
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(PTXSIM_TEST_FOLDER)) {
    if (entry.path().extension() != ".values") continue;
    const auto read = [](const fs::path& path) {
      std::ostringstream text;
      text << std::ifstream(path, std::ios::binary).rdbuf();
      return text.str();
    };
    const std::string json = case_text(read(fs::path(entry.path()).replace_extension(".ptx")));
    const std::string name = entry.path().filename().string();
    for (const auto& [array, unused] : read_value_file(read(entry.path()), name))
      EXPECT_NE(json.find("\"" + name + "#" + array + "\""), std::string::npos)
          << name << "#" << array;
    ++files;
  }
  EXPECT_GT(files, 150u);
}

}  // namespace
}  // namespace ptxsim
