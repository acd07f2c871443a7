// Ctrl-C: what there is so far, and the exit code of shells for it.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

class Stop : public Program {
 protected:
  Stop() { write("k.ptx", replaced(kKernel, "  ret;", "again:\n  bra again;")); }
  Outcome interrupted(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"run",     "k.ptx", "--case",   "c.json",
                                       "--trace", "trace", "--budget", "1000000000000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments, "trace");
  }
};

TEST_F(Stop, ARunEndsWithItsReport) {
  const Outcome outcome = interrupted({"--seeds", "3", "--schedule", "all"});
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(contains(outcome.out, "stopped eager seed 1: 0 errors, 0 warnings, 0 advisories\n"));
  EXPECT_TRUE(contains(outcome.out, "error: stopped after "));
  EXPECT_EQ(outcome.out.find("lazy"), std::string::npos) << outcome;
}

TEST_F(Stop, JsonIsWhole) {
  const Outcome outcome = interrupted({"--json"});
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  const auto runs = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].at("error").at("kind"), "stopped");
  EXPECT_EQ(runs[0].at("passed"), false);
}

}  // namespace
