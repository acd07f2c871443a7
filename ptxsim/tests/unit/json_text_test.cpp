// JSON that is too deep, and objects with a key twice.
#include "case/json_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "case/json_node.hpp"
#include "case/suppression_list.hpp"
#include "ptxsim/case/survivors.hpp"

namespace ptxsim {
namespace {

Error error_of(const std::string& text) {
  try {
    read_json(text);
  } catch (const Fault& fault) {
    return fault.error();
  }
  return {ErrorKind::kBudget, "no error", {}};
}

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(JsonText, IsBoundedInDepth) {
  EXPECT_NO_THROW(read_json(nested(kMostJsonDepth)));
  const Error error = error_of("{\"a\":\n" + nested(kMostJsonDepth) + "}");
  EXPECT_EQ(error.kind, ErrorKind::kInput);
  EXPECT_EQ(error.message, "more than 64 levels of lists and objects");
  EXPECT_EQ(error.place.ptx_line, 2);
  EXPECT_EQ(error.place.ptx_column, static_cast<int>(kMostJsonDepth));
  for (const std::string& text :
       {nested(100000), std::string(100000, '['), std::string(100000, '{'), [] {
          std::string objects;
          for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
          return objects;
        }()})
    EXPECT_EQ(error_of(text).message, "more than 64 levels of lists and objects");
}

TEST(JsonText, BracketsInStringsAreNoLevels) {
  EXPECT_NO_THROW(
      read_json("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]"));
}

TEST(JsonText, EachKeyComesOnce) {
  const struct {
    const char *text, *key;
    int column;
  } twice[] = {
      {"{\"a\": 1, \"a\": 1}", "a", 10},
      {"{\"a\": {\"b\": [], \"c\": {}, \"b\": 2}}", "b", 26},
      {"[{}, {\"x\": [{\"a\": \"a\"}], \"y\": 1, \"\\u0078\": 2}]", "x", 34},
      {"{\"\\u001b\": 1, \"\\u001b\": 1}", "\\x1b", 15},
  };
  for (const auto& [text, key, column] : twice) {
    const Error error = error_of(text);
    EXPECT_EQ(error.message,
              "the key '" + std::string(key) + "' is given twice; an object has each key once");
    EXPECT_EQ(error.place.ptx_column, column) << text;
  }
}

TEST(JsonText, EqualKeysOfSeveralObjectsAndEqualValuesAreFine) {
  for (const char* text :
       {"[{\"a\": 1}, {\"a\": 2}]", "{\"a\": {\"a\": [\"a\", \"a\"]}, \"b\": \"a\"}", "\"a\"", "[]",
        "{}", "[\"a\", \"a\", {\"a\": 1}, \"a\", \"a\"]"})
    EXPECT_NO_THROW(read_json(text)) << text;
}

TEST(JsonText, WhatIsNoJsonHasItsPlace) {
  EXPECT_EQ(error_of("{\"a\":\n 1,}").place.ptx_line, 2);
  EXPECT_EQ(error_of("").kind, ErrorKind::kInput);
  EXPECT_LE(error_of("\"" + std::string(1 << 20, 'x')).message.size(), 1500u);
}

// One reader: whatever is read from JSON is refused alike.
TEST(JsonText, ServesEveryReader) {
  const std::string deep = nested(100000), twice = "[{\"rule\": \"R1\", \"rule\": \"R1\"}]";
  EXPECT_THROW(JsonDocument(deep, "d.json"), Fault);
  for (const std::string& text : {deep, twice}) {
    const auto list = parse_suppressions(text, "s.json");
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().place.ptx_name, "s.json");
    EXPECT_FALSE(parse_survivors(text).ok());
  }
  EXPECT_EQ(parse_survivors(twice).error().message,
            "survivors: the key 'rule' is given twice; an object has each key once");
}

}  // namespace
}  // namespace ptxsim
