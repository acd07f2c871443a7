// Launches below `ptxsim exec` whose CTAs wait for each other, and programs that end within a
// launch.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

class Waiting : public Program {
 protected:
  Outcome run(std::vector<std::string> options, const std::vector<std::string>& arguments,
              const std::string& signal_when = "", int signal = SIGINT) const {
    options.insert(options.begin(), "exec");
    options.insert(options.end(), {"--", PTXSIM_WAITING_PROGRAM});
    options.insert(options.end(), arguments.begin(), arguments.end());
    return start(options, signal_when, signal);
  }
};

TEST_F(Waiting, CtasOfAnOrdinaryLaunchMayWaitForEachOther) {
  for (const char* device : {"b200", "h200"}) {
    const Outcome outcome = run({"--device", device}, {"barrier"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.out, "64 0\n");
    EXPECT_TRUE(contains(outcome.err, "0 errors, 0 warnings")) << outcome;
  }
}

TEST_F(Waiting, ALaunchThatSpinsIsNamed) {
  for (const std::vector<std::string>& budget :
       std::vector<std::vector<std::string>>{{"--budget", "100000"}, {"--budget-seconds", "0.1"}}) {
    std::vector<std::string> options = budget;
    options.insert(options.end(), {"--resident", "4"});
    const Outcome outcome = run(options, {"spin"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome;
    EXPECT_EQ(outcome.out, "0 702\n");  // CUDA_ERROR_LAUNCH_TIMEOUT
    for (const char* part : {"kernel 'waits'", "--resident", "grid 64x1x1, block 32x1x1", ":"})
      EXPECT_TRUE(contains(outcome.err, part)) << part << outcome;
  }
}

// A signal to the command is the program's, and the report is still written: with the launch that
// was under way.
TEST_F(Waiting, ASignalEndsTheProgramAndLeavesTheReport) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::filesystem::remove(path("launching"));
    const Outcome outcome = run({"--json", "--budget", "1000000000000", "--report", "report.json"},
                                {"spin", "launching"}, "launching", signal);
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome;
    const auto report = nlohmann::json::parse(read("report.json"), nullptr, false);
    ASSERT_TRUE(report.is_object()) << read("report.json");
    EXPECT_EQ(report.at("status"), 128 + signal);
    EXPECT_EQ(report.at("ended"), false);
  }
}

TEST_F(Waiting, AKilledProgramNamesItsLaunch) {
  write("limited.sh",
        "ulimit -t 2\nexec \"$@\"\n");  // SIGXCPU or SIGKILL after two seconds of work
  const Outcome outcome = start({"exec", "--budget", "1000000000000", "--", "/bin/sh", "limited.sh",
                                 PTXSIM_WAITING_PROGRAM, "spin"});
  EXPECT_GT(outcome.exit_code, 128) << outcome;
  for (const char* part : {"error: the process ended while this launch ran; it was here after ",
                           "kernel:  waits", "launch:  grid 64x1x1, block 32x1x1"})
    EXPECT_TRUE(contains(outcome.err, part)) << part << outcome;
}

}  // namespace
}  // namespace ptxsim_test
