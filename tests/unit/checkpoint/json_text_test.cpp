// JSON as Python writes it: what is read, how deep, and what stays of a text that is edited.
#include "checkpoint/json_text.hpp"

#include "checkpoint/safetensors.hpp"
#include "io_test_support.hpp"
#include "tools/checkpoint_jobs/quantization_config.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::as_bytes;
using test::fails_with;

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(JsonText, ValuesStayAsTheyStand) {
  const auto members = json_members(
      " {\"a\" : [1, {\"b\":[]}] ,\"i\":-Infinity,\"n\": NaN, "
      "\"e\":{},\"x\":1e400,\"s\\u0041\\n\":\"}\"} ",
      "x");
  ASSERT_TRUE(members.ok()) << members.status().message();
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [key, value] : *members) found.emplace_back(key, value);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"a", "[1, {\"b\":[]}]"}, {"i", "-Infinity"}, {"n", "NaN"}, {"e", "{}"},
      {"x", "1e400"},           {"sA\n", "\"}\""}};
  EXPECT_EQ(found, expected);
}

TEST(JsonText, OfRepeatedKeysTheLastCounts) {
  const auto members = json_members(R"({"a":1,"\u0061":2})", "x");
  ASSERT_TRUE(members.ok());
  EXPECT_EQ(find_member(*members, "a")->value, "2");
  EXPECT_EQ(find_member(*members, "b"), nullptr);
}

TEST(JsonText, StringsAreUnescaped) {
  EXPECT_EQ(*json_string(R"("\"\\\/\b\f\n\r\t")", "x"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(*json_string(R"("\u00e9\u20ac\ud83d\ude00")", "x"), "\u00e9\u20ac\U0001F600");
  EXPECT_EQ(*json_string(R"("\ud800x")", "x"), "\xED\xA0\x80x");  // Python writes it
  EXPECT_TRUE(fails_with(json_string("5", "x").status(), StatusCode::kCorruptFile, "a string"));
}

TEST(JsonText, WhatIsNoJsonIsRefused) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{a:1}",
                           "[1 2]",
                           "[}",
                           "{]",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "-",
                           "1e",
                           "Inf",
                           "-NaN",
                           "nan",
                           "tru",
                           "\"",
                           "\"\t\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "'a'",
                           "[1]]",
                           "{}{}",
                           "\xEF\xBB\xBF{}",
                           "\"\xC0\xAF\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF5\x80\"",
                           "\"\xE2\x82\""}) {
    EXPECT_TRUE(fails_with(check_json(text, "x"), StatusCode::kCorruptFile, "valid JSON")) << text;
  }
  for (const char* text :
       {"0", "-0.5e+3", "[]", "{}", "[[],{}]", "NaN", "[Infinity,-Infinity]", "null"})
    EXPECT_TRUE(check_json(text, "x").ok()) << text;
}

TEST(JsonText, DepthIsBounded) {
  EXPECT_TRUE(check_json(nested(kMostJsonLevels), "x").ok());
  for (const size_t levels : {kMostJsonLevels + 1, size_t{5'000'000}}) {
    EXPECT_TRUE(
        fails_with(check_json(nested(levels), "x"), StatusCode::kCorruptFile, "too deeply"));
    const std::string config = "{\"a\":" + nested(levels) + "}";
    EXPECT_TRUE(fails_with(
        config_with_quantization(config, "config.json", Convention::kModelOpt, {}).status(),
        StatusCode::kCorruptFile, "too deeply"));
    EXPECT_TRUE(fails_with(parse_safetensors_index(as_bytes(config), "index").status(),
                           StatusCode::kCorruptFile, "too deeply"));
  }
}

// A copied config keeps all of its bytes: numbers that a parser would round, too.
TEST(JsonText, AConfigKeepsWhatPythonWrote) {
  const std::string config =
      "{\n  \"time_step_limit\": [0.0, Infinity],\n  \"x\": 123456789012345678901234567890,\n"
      "  \"eps\": 1e-05\n}\n";
  const Expected<std::string> edited =
      config_with_quantization(config, "config.json", Convention::kModelOpt, {});
  ASSERT_TRUE(edited.ok()) << edited.status().message();
  const std::string kept = config.substr(0, config.size() - 3);  // without "\n}\n"
  EXPECT_EQ(edited->substr(0, kept.size()), kept);
  EXPECT_EQ(edited->substr(kept.size(), 30), ",\n  \"quantization_config\": {\n ");
  const auto members = json_members(*edited, "edited");
  ASSERT_TRUE(members.ok()) << members.status().message();
  EXPECT_EQ(members->size(), 4u);
  const auto made = json_members(find_member(*members, "quantization_config")->value, "made");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(find_member(*made, "quant_method")->value, "\"modelopt\"");
}

TEST(JsonText, AConfigThatIsNullIsNone) {
  const Expected<std::string> edited =
      config_with_quantization("{\"quantization_config\": null, \"b\": 1}", "config.json",
                               Convention::kCompressedTensors, {});
  ASSERT_TRUE(edited.ok()) << edited.status().message();
  const auto members = json_members(*edited, "edited");
  ASSERT_TRUE(members.ok()) << members.status().message();
  EXPECT_EQ(members->size(), 2u);
  EXPECT_NE(members->front().value, "null");
  for (const char* text : {"", "{}", " {\n} "}) {
    const Expected<std::string> made =
        config_with_quantization(text, "config.json", Convention::kModelOpt, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(json_members(*made, "made").ok()) << *made;
  }
}

TEST(JsonText, AnIndexMayHoldInfinity) {
  const auto index = parse_safetensors_index(
      as_bytes(R"({"metadata":{"x":[Infinity,NaN]},"weight_map":{"a":"m.safetensors"}})"), "index");
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->at("a"), "m.safetensors");
}

}  // namespace
}  // namespace dualgemm::checkpoint
