// Suppressed findings, and findings for other tools.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

using Json = nlohmann::json;

const std::string kRules = std::string(PTXSIM_TEST_RULES);
const std::string kRacing = kRules + "/R16_bad.ptx";
const std::string kSource = "R16_bad.ptx:";

class Findings : public Program {
 protected:
  // The lines of the races, which the two findings name: of a write after a read, and of a read
  // after a write. The case expects R16, so that without them the run fails.
  std::vector<std::string> lines_of_races() const {
    const Json run = Json::parse(start({"run", kRacing, "--json"}).out).at(0);
    std::vector<std::string> lines;
    for (const Json& report : run.at("reports"))
      lines.push_back(std::to_string(report.at("place").at("line").get<int>()));
    return lines;
  }
  static std::string entry_of(const std::string& rest) {
    return "{\"rule\": \"R16\", " + rest + ", \"reason\": \"by design\"}";
  }
  void suppress(const std::string& rest) const { write("known.json", "[" + entry_of(rest) + "]"); }
  void suppress_lines(const std::string& rest) const {
    std::string entries;
    for (const std::string& line : lines_of_races())
      entries +=
          (entries.empty() ? "" : ", ") + entry_of(rest + "\"source\": \"" + kSource + line + "\"");
    write("known.json", "[" + entries + "]");
  }
};

TEST_F(Findings, AreSuppressedByKernelAndLine) {
  ASSERT_EQ(lines_of_races().size(), 2u);
  for (const char* way : {"kernel", "lines", "both"}) {
    SCOPED_TRACE(way);
    if (way == std::string("kernel"))
      suppress("\"kernel\": \"kernel\"");
    else
      suppress_lines(way == std::string("both") ? "\"kernel\": \"kernel\", " : "");
    const Outcome outcome = start({"run", kRacing, "--suppress", "known.json"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome;
    EXPECT_TRUE(contains(outcome.out, "0 errors")) << outcome;
    EXPECT_TRUE(contains(outcome.out, "rules reported:; expected: R16")) << outcome;
    EXPECT_EQ(outcome.err, "") << outcome;
  }
}

TEST_F(Findings, OthersStayAndUnusedEntriesAreNamed) {
  for (const char* entry : {"\"kernel\": \"another\"", "\"source\": \"R16_bad.ptx:1\"",
                            "\"source\": \"6_bad.ptx:1\""}) {
    suppress(entry);
    const Outcome outcome = start({"run", kRacing, "--suppress", "known.json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_TRUE(contains(outcome.err, "warning: unused suppression [0]: R16, ")) << outcome;
    EXPECT_TRUE(contains(outcome.err, "(by design)")) << outcome;
    EXPECT_EQ(start({"run", kRacing, "--strict", "--suppress", "known.json"}).exit_code, 1);
  }
}

TEST_F(Findings, ACaseCanSuppressItsOwn) {
  std::string text = read(kRacing);
  text = replaced(
      text, "\"expect_reports\": [\"R16\"]",
      "\"suppress\": [{\"rule\": \"R16\", \"kernel\": \"kernel\", \"reason\": \"known\"}]");
  write("own.ptx", text);
  const Outcome outcome = start({"run", "own.ptx", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const Json run = Json::parse(outcome.out).at(0);
  EXPECT_TRUE(run.at("reports").empty());
  EXPECT_EQ(run.at("suppressed").at(0).at("rule"), "R16");
  EXPECT_EQ(run.at("suppressed").at(0).at("reason"), "known");
}

TEST_F(Findings, BadListsAreRefused) {
  const struct {
    const char *text, *reason;
  } lists[] = {
      {"{}", "must be"},
      {"[{\"rule\": \"R16\", \"reason\": \"x\"}]", "names neither a kernel nor a source line"},
      {"[{\"rule\": \"16\", \"kernel\": \"k\", \"reason\": \"x\"}]", "'16' is no rule such as R1"},
      {"[{\"rule\": \"R16\", \"kernel\": \"k\"}]", "reason"},
      {"[{\"rule\": \"R16\", \"kernel\": \"k\", \"reason\": \"\"}]", "must say why"},
      {"[{\"rule\": \"R16\", \"source\": \"k.cu\", \"reason\": \"x\"}]", "must be <file>:<line>"},
      {"[{\"rule\": \"R16\", \"kernel\": \"k\", \"reason\": \"x\", \"line\": 3}]", "line"},
  };
  for (const auto& [text, reason] : lists) {
    write("known.json", text);
    const Outcome outcome = start({"run", kRacing, "--suppress", "known.json"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome;
    EXPECT_TRUE(contains(outcome.err, "known.json:1:")) << outcome;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome;
  }
  EXPECT_EQ(start({"run", kRacing, "--suppress", "missing.json"}).exit_code, 2);
}

TEST_F(Findings, AreWrittenAsSarif) {
  suppress("\"kernel\": \"another\"");
  const Outcome outcome = start(
      {"run", kRacing, "--schedule", "all", "--sarif", "out.sarif", "--suppress", "known.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const Json log = Json::parse(read("out.sarif"));
  EXPECT_EQ(log.at("version"), "2.1.0");
  const Json& run = log.at("runs").at(0);
  EXPECT_EQ(run.at("tool").at("driver").at("name"), "ptxsim");
  const std::vector<std::string> lines = lines_of_races();
  ASSERT_EQ(run.at("results").size(), 3 * lines.size());  // those of each schedule
  for (const Json& result : run.at("results")) {
    EXPECT_EQ(result.at("ruleId"), "R16");
    EXPECT_EQ(
        run.at("tool").at("driver").at("rules").at(result.at("ruleIndex").get<size_t>()).at("id"),
        "R16");
    EXPECT_EQ(result.at("level"), "error");
    EXPECT_FALSE(result.at("message").at("text").get<std::string>().empty());
    EXPECT_GE(result.at("occurrenceCount").get<int>(), 1);
    const Json& place = result.at("locations").at(0);
    const int line = place.at("physicalLocation").at("region").at("startLine");
    EXPECT_EQ(std::count(lines.begin(), lines.end(), std::to_string(line)), 1) << line;
    EXPECT_EQ(place.at("logicalLocations").at(0).at("name"), "kernel");
    EXPECT_FALSE(result.contains("suppressions"));
  }
  suppress("\"kernel\": \"kernel\"");
  start({"run", kRacing, "--sarif", "out.sarif", "--suppress", "known.json"});
  bool is_suppressed = false;
  const Json suppressed = Json::parse(read("out.sarif"));
  for (const Json& result : suppressed.at("runs").at(0).at("results"))
    if (result.at("ruleId") == "R16")
      is_suppressed = result.at("suppressions").at(0).at("kind") == "external" &&
                      result.at("suppressions").at(0).at("justification") == "by design";
  EXPECT_TRUE(is_suppressed);
}

TEST_F(Findings, AreWrittenAsJunit) {
  start({"run", kRacing, "--junit", "out.xml"});
  const std::string xml = read("out.xml");
  EXPECT_TRUE(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")) << xml;
  EXPECT_TRUE(contains(xml, "name=\"eager seed 1\"")) << xml;
  EXPECT_TRUE(contains(xml, "tests=\"3\" failures=\"2\" errors=\"0\"")) << xml;
  EXPECT_TRUE(contains(xml, "<failure type=\"R16\" message=\"")) << xml;
  EXPECT_TRUE(xml.ends_with("</testsuites>\n")) << xml;
  EXPECT_FALSE(contains(xml, "message=\"'st.shared.u32 [%at], %t;' reads <")) << xml;
}

TEST_F(Findings, FilesThatCannotBeWrittenAreRefused) {
  for (const char* option : {"--sarif", "--junit"}) {
    const Outcome outcome = start({"run", kRacing, option, "no/such/folder/f"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome;
    EXPECT_TRUE(contains(outcome.err, std::string(option) + ": cannot write")) << outcome;
  }
}

}  // namespace
}  // namespace ptxsim_test
