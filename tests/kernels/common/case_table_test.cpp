// The language of cases.txt: what a line stands for, and what a mistake in it is called.
#include "kernels/suite/case_table.hpp"

#include <gtest/gtest.h>

#include "kernels/suite/case_expression.hpp"

namespace dualgemm::test {
namespace {

const CaseVocabulary kVocabulary{
    .has = [](const std::string& key) { return key.size() == 1 || key == "instance"; },
    .word = [](const std::string& key, const std::string& word) -> std::optional<int64_t> {
      if (key != "t") return std::nullopt;
      if (word == "f16") return 1;
      return word == "bf16" ? std::optional<int64_t>(2) : std::nullopt;
    },
    .count = [](const std::string& key) -> int64_t { return key == "instance" ? 2 : 0; },
    .implied =
        [](const std::string& key, int64_t value) {
          return key == "instance" ? CaseValues{{"m", 64 << value}, {"stages", 4 - value}}
                                   : CaseValues{};
        }};

Expected<std::vector<CaseValues>> cases_of_line(const std::string& line) {
  const auto table = parse_case_table("[Suite.Name] check\n" + line + "\n");
  if (!table.ok()) return table.status();
  return expand((*table)[0].lines.at(0), kVocabulary);
}

using CaseList = std::vector<CaseValues>;

void expect_cases(const std::string& line, const CaseList& cases) {
  const auto got = cases_of_line(line);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(*got, cases) << line;
}

void expect_refused(const std::string& line, const std::string& message) {
  EXPECT_EQ(cases_of_line(line).status().message(), message);
}

TEST(CaseTable, ListsAreCombinedTheLeftmostSlowest) {
  expect_cases("m=1,33 n=7,9", CaseList{{{"m", 1}, {"n", 7}},
                                        {{"m", 1}, {"n", 9}},
                                        {{"m", 33}, {"n", 7}},
                                        {{"m", 33}, {"n", 9}}});
  expect_cases("k=16:50:16,9", CaseList{{{"k", 16}}, {{"k", 32}}, {{"k", 48}}, {{"k", 9}}});
}

TEST(CaseTable, TurnsCountTheCombinationsToTheLeft) {
  expect_cases("m=1,2,3 t=f16|bf16",
               CaseList{{{"m", 1}, {"t", 1}}, {{"m", 2}, {"t", 2}}, {{"m", 3}, {"t", 1}}});
  // What stands to the right does not count.
  expect_cases("m=1,2 t=bf16|f16 x=number p=0,1",
               CaseList{{{"m", 1}, {"t", 2}, {"x", 0}, {"p", 0}},
                        {{"m", 1}, {"t", 2}, {"x", 0}, {"p", 1}},
                        {{"m", 2}, {"t", 1}, {"x", 1}, {"p", 0}},
                        {{"m", 2}, {"t", 1}, {"x", 1}, {"p", 1}}});
}

TEST(CaseTable, InstancesSetWhatTheyAre) {
  expect_cases("instance=every n=m+stages",
               CaseList{{{"instance", 0}, {"m", 64}, {"stages", 4}, {"n", 68}},
                        {{"instance", 1}, {"m", 128}, {"stages", 3}, {"n", 131}}});
}

TEST(CaseTable, Expressions) {
  const auto value = [](const std::string& text) {
    const auto result = evaluate(text, [](const std::string& name) -> std::optional<int64_t> {
      return name == "a.ld" ? std::optional<int64_t>(10) : std::nullopt;
    });
    return result.ok() ? std::to_string(*result) : result.status().message();
  };
  EXPECT_EQ(value("1+2*3-4"), "3");
  EXPECT_EQ(value("10-2-3"), "5");
  EXPECT_EQ(value("2*(3+4)%5"), "4");
  EXPECT_EQ(value("a.ld*2/3"), "6");
  EXPECT_EQ(value("a.ld/(5-5)"), "a.ld/(5-5): a division by 0; is no number");
  EXPECT_EQ(value("(1+2"), "(1+2: its end; must be )");
  EXPECT_EQ(value("1+"), "1+: its end; must be a number, a name or (");
  EXPECT_EQ(value("1 2"), "1 2:  2; must end here");
  EXPECT_EQ(value("9999999999999"),
            "9999999999999: 9999999999999; must be a number, a word or a key to the left");
}

TEST(CaseTable, Sections) {
  const auto table = parse_case_table(
      "# a comment\n\n[A.One] within limit=2*3 # and one here\nm=1 # not n=2\nm=2\n[A.Two] "
      "same\nm=3");
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->size(), 2u);
  const CaseSection& one = (*table)[0];
  EXPECT_EQ(one.suite + " " + one.name + " " + one.check, "A One within");
  EXPECT_EQ(one.limits, (std::map<std::string, int64_t>{{"limit", 6}}));
  EXPECT_EQ(one.line, 3);
  ASSERT_EQ(one.lines.size(), 2u);
  EXPECT_EQ(one.lines[0].keys.size(), 1u);
  EXPECT_EQ(one.lines[1].line, 5);
}

TEST(CaseTable, MistakesAreRefused) {
  const auto message = [](const std::string& text) {
    return parse_case_table(text).status().message();
  };
  EXPECT_EQ(message("m=1\n"), "line 1: m=1; must stand below a [suite.name]");
  EXPECT_EQ(message("[A.B]\nm=1"), "line 1: [A.B]; must be [suite.name] and a check");
  EXPECT_EQ(message("[AB] check\nm=1"), "line 1: [AB]; must be [suite.name] and a check");
  EXPECT_EQ(message("[A.B] check\n"), "line 1: B; must have a case");
  EXPECT_EQ(message("[A.B] c\nm=1\n[A.B] c\nm=1"), "line 3: B; stands there twice");
  expect_refused("m", "line 2: m; must be key=value");
  expect_refused("m=", "line 2: m=; must be key=value");
  expect_refused("m=1 m=2", "line 2: m; stands there twice");
  expect_refused("mm=1", "line 2: mm; is no key");
  expect_refused("m=n", "line 2, m: n; must be a number, a word or a key to the left");
  expect_refused("m=every", "line 2, m: every; must be a number, a word or a key to the left");
  expect_refused("t=f32", "line 2, t: f32; must be a number, a word or a key to the left");
  expect_refused("m=3:1:1", "line 2, m: 3:1:1; must be a value, or first:last:step that ascend");
  expect_refused("m=1:3", "line 2, m: 1:3; must be a value, or first:last:step that ascend");
  expect_refused("m=1,2|3", "line 2, m: 1,2|3; must have single values between the |");
}

}  // namespace
}  // namespace dualgemm::test
