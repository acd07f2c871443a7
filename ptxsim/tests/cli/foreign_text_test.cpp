// Text of files, options and names: escaped and bounded wherever it is printed; JSON that is
// refused; absolute paths; the command line itself.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

const std::string kSteering = "\x1b]0;x\x07\xc2\x9b";

class ForeignText : public Program {
 protected:
  static void expect_plain(const Outcome& outcome) {
    for (const std::string* text : {&outcome.out, &outcome.err}) {
      EXPECT_EQ(text->find('\x1b'), std::string::npos) << outcome;
      EXPECT_EQ(text->find('\x07'), std::string::npos) << outcome;
      EXPECT_EQ(text->find("\xc2\x9b"), std::string::npos) << outcome;
    }
  }
};

TEST_F(ForeignText, OfACaseIsEscaped) {
  write("c.json", replaced(kCase, "\"block\"", "\"\\u001b[31m\\u009b\": 1, \"block\""));
  const Outcome outcome = run();
  expect_plain(outcome);
  expect_refused(outcome, "c.json:1:40", "the unknown key '\\x1b[31m\\xc2\\x9b'");
  write("c.json", replaced(kCase, "\"twice\"", "\"\\u001b\""));
  expect_plain(run());
}

TEST_F(ForeignText, OfACaseIsBounded) {
  write("c.json",
        replaced(kCase, "\"block\"", "\"" + std::string(1 << 20, 'k') + "\": 1, \"block\""));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_LE(outcome.err.size(), 1600u);
  EXPECT_TRUE(contains(outcome.err, "it may have: entry, grid")) << outcome.err;  // the rule stays
}

TEST_F(ForeignText, OfOptionsAndNamesOfFilesIsEscaped) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", kSteering},
           {"run", "k.ptx", "--case", kSteering},
           {"run", "k.ptx", "--case", "c.json", "--entry", kSteering},
           {"run", "k.ptx", "--case", "c.json", "--schedule", kSteering},
           {"run", "k.ptx", "--case", "c.json", "--dump", kSteering},
           {"run", "k.ptx", "--case", "c.json", "--" + kSteering},
           {"run", "k.ptx", "--case", "c.json", "--suppress", kSteering},
           {"run", "k.ptx", "--case", "c.json", "--sarif", "no/" + kSteering},
           {"exec", "--device", kSteering, "--", "true"},
           {"exec", "--", "./" + kSteering},
           {"time", kSteering},
           {kSteering}}) {
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome;
    expect_plain(outcome);
  }
  const Outcome outcome = start({"run", std::string(100000, 'x')});
  EXPECT_LE(outcome.err.size(), 1600u);
}

TEST_F(ForeignText, OfPtxIsEscapedAndBounded) {
  std::string text = replaced(
      kKernel, ".visible", ".file 1 \"" + kSteering + std::string(100000, 's') + ".cu\"\n.visible");
  text = replaced(text, "  ld.global.u32 %r2, [%rd4];",
                  "  .loc 1 7 1\n  ld.global.u32 %r2, [%rd4+1];");
  write("k.ptx", text);
  const Outcome outcome = run();
  EXPECT_NE(outcome.exit_code, 0);
  expect_plain(outcome);
  EXPECT_TRUE(contains(outcome.out + outcome.err, ".cu:7)")) << outcome;
  EXPECT_LE(outcome.out.size() + outcome.err.size(), 8000u);
}

TEST_F(ForeignText, OfSuppressionsIsEscapedAndBounded) {
  write("known.json", "[{\"rule\": \"R16\", \"kernel\": \"\\u001b[2J\", \"reason\": \"\\u009b" +
                          std::string(1 << 16, 'r') + "\"}]");
  const Outcome outcome = run({"--suppress", "known.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  expect_plain(outcome);
  EXPECT_TRUE(contains(outcome.err, "unused suppression [0]: R16, kernel \\x1b[2J (\\xc2\\x9brr"))
      << outcome;
  EXPECT_LE(outcome.err.size(), 1500u);
}

TEST_F(ForeignText, JsonThatIsTooDeepIsRefused) {
  for (const std::string& deep :
       {std::string(100000, '['),
        "{\"block\": " + std::string(100000, '[') + std::string(100000, ']') + "}"}) {
    write("deep.json", deep);
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"run", "k.ptx", "--case", "deep.json"},
             {"run", "k.ptx", "--case", "c.json", "--suppress", "deep.json"},
             {"mutate", "k.ptx", "--case", "c.json", "--allow", "deep.json"},
             {"time", "--gpu", "deep.json", "k.ptx", "--case", "c.json"},
             {"time", "--launch", "deep.json", "--gpu", "b200"}}) {
      const Outcome outcome = start(arguments);
      EXPECT_EQ(outcome.exit_code, 2) << outcome;
      EXPECT_TRUE(contains(outcome.err, "more than 64 levels of lists and objects")) << outcome;
    }
  }
}

TEST_F(ForeignText, AKeyThatComesTwiceIsRefused) {
  write("c.json", replaced(kCase, "\"block\": [32]", "\"block\": [32], \"block\": [64]"));
  expect_refused(run(), "c.json:1:35",
                 "the key 'block' is given twice; an object has each key once");
  write("c.json",
        replaced(kCase, "\"count\": 32, \"iota\"", "\"count\": 32, \"count\": 32, \"iota\""));
  expect_refused(run(), "c.json:2:57", "the key 'count' is given twice");
  write("known.json",
        "[{\"rule\": \"R16\", \"kernel\": \"k\", \"reason\": \"x\", \"reason\": \"y\"}]");
  write("c.json", kCase);
  expect_refused(run({"--suppress", "known.json"}), "known.json:1:48", "the key 'reason'");
}

TEST_F(ForeignText, ACaseNamesFilesByAbsolutePaths) {
  write("in.bin", std::string(128, '\1'));
  write("c.json", replaced(replaced(kCase, "\"count\": 32, \"iota\": true",
                                    "\"file\": \"" + path("in.bin").string() + "\""),
                           "[0, 2, 4, 6]", "[33686018, 33686018]"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
}

TEST_F(ForeignText, TheVersionIsPrinted) {
  const Outcome outcome = start({"--version"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(outcome.out.starts_with("ptxsim ")) << outcome;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '.'), 2) << outcome;
}

TEST_F(ForeignText, AnUnknownSubcommandIsNamed) {
  const std::string list = "must be one of run, check, case, speed, mutate, exec, time; see --help";
  expect_refused(start({"rnu", "k.ptx"}), "",
                 "unknown subcommand 'rnu', did you mean 'run'?; " + list);
  expect_refused(start({"excec", "--", "true"}), "", "did you mean 'exec'?");
  expect_refused(start({"k.ptx"}), "", "unknown subcommand 'k.ptx'; " + list);
  expect_refused(start({}), "", "a subcommand is required: one of run, check, ");
}

}  // namespace
}  // namespace ptxsim_test
