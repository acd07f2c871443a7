// Baselines: findings that are known pass, others fail, and those that are gone are named.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

using Json = nlohmann::json;

class Baseline : public Program {
 protected:
  Baseline() {
    const std::string race = of_rules("R16_bad.ptx");
    write("expected.ptx", race);
    write("racing.ptx", replaced(race, "\"expect_reports\": [\"R16\"]", "\"strict\": false"));
  }
  static std::string of_rules(const std::string& name) {
    std::ifstream file(std::string(PTXSIM_TEST_RULES) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Json written(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"run", "--write-baseline", "known.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.err, "") << outcome;
    return Json::parse(read("known.json"));
  }
};

TEST_F(Baseline, KnowsWhatWasFoundAndNothingElse) {
  const Json entries = written({"racing.ptx", "--schedule", "all", "--seeds", "2"});
  ASSERT_EQ(entries.size(), 2u);
  for (const Json& entry : entries) {
    EXPECT_EQ(entry.at("rule"), "R16");
    EXPECT_EQ(entry.at("kernel"), "kernel");
    EXPECT_TRUE(entry.at("source").get<std::string>().starts_with("racing.ptx:")) << entry;
    EXPECT_FALSE(entry.at("reason").get<std::string>().empty());
  }
  Outcome outcome =
      start({"run", "racing.ptx", "--schedule", "all", "--baseline", "known.json", "--strict"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err, "") << outcome;
  write("known.json", Json(std::vector<Json>{entries.at(0)}).dump());
  outcome = start({"run", "racing.ptx", "--baseline", "known.json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "1 errors")) << outcome;
}

TEST_F(Baseline, IsASuppressionsFile) {
  written({"racing.ptx"});
  EXPECT_EQ(start({"run", "racing.ptx", "--suppress", "known.json"}).exit_code, 0);
}

TEST_F(Baseline, StaleEntriesAreNamedWithTheirNumber) {
  written({"racing.ptx"});
  write("other.json", "[{\"rule\": \"R2\", \"kernel\": \"x\", \"reason\": \"by design\"}]");
  const Outcome outcome = start(
      {"run", "k.ptx", "--case", "c.json", "--suppress", "other.json", "--baseline", "known.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "warning: unused suppression [0]: R2, kernel x")) << outcome;
  EXPECT_TRUE(contains(outcome.err, "warning: stale baseline entry [0]: R16, kernel kernel"))
      << outcome;
  EXPECT_TRUE(contains(outcome.err, "warning: stale baseline entry [1]: R16")) << outcome;
  EXPECT_EQ(run({"--strict", "--baseline", "known.json"}).exit_code, 1);
}

TEST_F(Baseline, HasNoFindingsThatTheCaseExpects) {
  EXPECT_EQ(written({"expected.ptx"}).size(), 0u);
}

TEST_F(Baseline, WithStrictHasWarnings) {
  write("../same.ptx",
        replaced(of_rules("R16_same_bad.ptx"),
                 "\"expect_reports\": [\"R16\"],\n//!  \"strict\": true", "\"strict\": false"));
  const std::string elsewhere = path("../same.ptx").string();
  EXPECT_EQ(written({elsewhere}).size(), 0u);
  const Json entries = written({elsewhere, "--strict"});
  ASSERT_EQ(entries.size(), 1u) << entries;
  // A file that is not below the working directory is named by its name alone.
  EXPECT_TRUE(entries.at(0).at("source").get<std::string>().starts_with("same.ptx:")) << entries;
}

TEST_F(Baseline, OfNothingIsEmpty) {
  EXPECT_EQ(written({"k.ptx", "--case", "c.json"}), Json::array());
}

TEST_F(Baseline, BadFilesAreRefused) {
  expect_refused(run({"--baseline", "none.json"}), "none.json", "cannot read");
  write("bad.json", "[{\"rule\": \"R16\", \"kernel\": \"k\"}]");
  expect_refused(run({"--baseline", "bad.json"}), "bad.json:1:2", "'reason' is missing");
  write("bad.json", "[");
  expect_refused(run({"--baseline", "bad.json"}), "bad.json:1:2", "syntax error");
  expect_refused(run({"--baseline", "bad.json", "--write-baseline", "new.json"}), "",
                 "--baseline excludes --write-baseline");
  const Outcome outcome = run({"--write-baseline", "none/new.json"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_TRUE(contains(outcome.err, "--write-baseline: cannot write 'none/new.json'")) << outcome;
}

}  // namespace
}  // namespace ptxsim_test
