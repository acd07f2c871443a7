// What a run prints and writes: text, JSON, counters, traces, buffers; one result for one seed.
#include <nlohmann/json.hpp>

#include "ptxsim/cli/program.hpp"

namespace {

using namespace ptxsim_test;
using Json = nlohmann::json;

const std::string kLoop = "again:\n  bra again;";

// Two warps take numbers from one counter: which warp gets which depends on the schedule.
const std::string kRace = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry race(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
more:
  atom.global.add.u32 %r3, [%rd1], 1;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 100;
  @%p1 bra more;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3+4], %r3;
  ret;
}
)";
const std::string kRaceCase = R"({"block": [64], "params": [{"buffer": "out"}],
 "buffers": [{"name": "out", "type": "u32", "count": 65, "fill": 0}]})";

TEST_F(Program, SaysThatACasePassed) {
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "passed eager seed 1: 0 errors, 0 warnings, 0 advisories\n");
}

TEST_F(Program, SaysWhichValueIsWrong) {
  write("c.json", replaced(kCase, "[0, 2, 4, 6]", "[0, 2, 5, 6]"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "FAILED eager seed 1"));
  EXPECT_TRUE(contains(outcome.out, "out[2] is 0x00000004; expected 0x00000005"));
}

TEST_F(Program, SaysWhereAFaultHappened) {
  write("c.json", replaced(kCase, "\"block\": [32]", "\"block\": [64]"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "k.ptx:13: error: global read of 4 bytes at 0x1000000080"));
  EXPECT_TRUE(contains(outcome.out, "CTA (0,0,0), warp 1, lane 0: 'ld.global.u32 %r2, [%rd4];'"));
}

// What is printed and lost is an error, whichever subcommand printed it.
TEST_F(Program, AFullStdoutIsAnError) {
  for (const char* arguments : {"run k.ptx --case c.json", "check k.ptx", "case k.ptx --out -",
                                "--version", "--help", "run --help"})
    for (const char* closed : {">/dev/full", ">&-"}) {
      const std::string command = "cd '" + path("").string() + "' && '" PTXSIM_BINARY "' " +
                                  arguments + " 2>/dev/null " + closed;
      const int state = std::system(command.c_str());
      EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 2) << command << ": " << state;
    }
}

TEST_F(Program, RunsEachScheduleAndSeed) {
  const Outcome outcome = run({"--schedule", "all", "--seed", "7", "--seeds", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  std::string expected;
  for (const char* seed : {"7", "8"})
    for (const char* schedule : {"eager", "lazy", "random"})
      expected += std::string("passed ") + schedule + " seed " + seed +
                  ": 0 errors, 0 warnings, 0 advisories\n";
  EXPECT_EQ(outcome.out, expected);
}

TEST_F(Program, TheLargestSeedIsFollowedByZero) {
  const Outcome outcome = run({"--seed", "18446744073709551615", "--seeds", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.out, "seed 18446744073709551615:"));
  EXPECT_TRUE(contains(outcome.out, "seed 0:"));
}

TEST_F(Program, OneSeedGivesOneResult) {
  write("k.ptx", kRace);
  write("c.json", kRaceCase);
  const auto race = [&](const std::string& seed) {
    const Outcome outcome =
        run({"--schedule", "random", "--seed", seed, "--dump", "out=b", "--trace", "t"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    return read("b") + read("t");
  };
  const std::string first = race("5");
  EXPECT_EQ(first, race("5"));
  EXPECT_NE(first, race("6"));
}

TEST_F(Program, PrintsCounters) {
  const Outcome outcome = run({"--stats"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.out, "warp instructions 10, lanes 320\n"));
  EXPECT_TRUE(contains(outcome.out, "    warp 0: 10\n"));
  EXPECT_TRUE(contains(outcome.out, "MMA 0 (0 multiply-adds)"));
  EXPECT_TRUE(contains(outcome.out, "barrier waits 0, of them blocked 0"));
}

TEST_F(Program, TracesEveryStatement) {
  const Outcome outcome = run({"--trace", "trace.txt"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const std::string trace = read("trace.txt");
  EXPECT_EQ(std::count(trace.begin(), trace.end(), '\n'), 10) << trace;
  EXPECT_TRUE(
      contains(trace, "cta (0,0,0) warp  0 lanes ffffffff k.ptx:16\tst.global.u32 [%rd5], %r3;\n"));
}

TEST_F(Program, PrintsJson) {
  const Outcome outcome = run({"--json", "--schedule", "all", "--seeds", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err, "");
  const Json runs = Json::parse(outcome.out);
  ASSERT_EQ(runs.size(), 6u);
  for (const Json& run : runs) {
    EXPECT_EQ(run.at("passed"), true);
    EXPECT_EQ(run.at("mismatches"), Json::array());
    EXPECT_EQ(run.at("reports"), Json::array());
    EXPECT_FALSE(run.contains("error"));
    EXPECT_EQ(run.at("stats").at("warp_instructions"), 10);
    EXPECT_EQ(run.at("stats").at("by_warp"), Json::parse("[10]"));
  }
  EXPECT_EQ(runs[1].at("schedule"), "lazy");
  EXPECT_EQ(runs[5].at("schedule"), "random");
  EXPECT_EQ(runs[5].at("seed"), 2);
}

TEST_F(Program, JsonOfAWrongResultSaysSo) {
  write("c.json", replaced(kCase, "[0, 2, 4, 6]", "[1]"));
  const Outcome outcome = run({"--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  const Json result = Json::parse(outcome.out).at(0);
  EXPECT_EQ(result.at("passed"), false);
  EXPECT_EQ(result.at("mismatches"),
            Json::parse(R"(["out[0] is 0x00000000; expected 0x00000001"])"));
  EXPECT_FALSE(result.contains("error"));
}

TEST_F(Program, JsonOfAFaultHasItsPlace) {
  write("c.json", replaced(kCase, "\"block\": [32]", "\"block\": [64]"));
  const Outcome outcome = run({"--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  const Json result = Json::parse(outcome.out).at(0);
  EXPECT_EQ(result.at("passed"), false);
  EXPECT_EQ(result.at("error").at("kind"), "fault");
  EXPECT_EQ(result.at("error").at("place").at("ptx"), "k.ptx");
  EXPECT_EQ(result.at("error").at("place").at("line"), 13);
  EXPECT_TRUE(contains(result.at("error").at("message"), "global read of 4 bytes"));
}

TEST_F(Program, JsonOfADeadlockNamesTheBarrier) {
  write("k.ptx", replaced(kKernel, "  ret;", "  bar.sync 2, 64;\n  ret;"));
  write("c.json", replaced(kCase, "\"block\": [32]", "\"block\": [64]"));
  write("c.json", replaced(replaced(read("c.json"), "32, \"iota\"", "64, \"iota\""),
                           "32, \"expect\"", "64, \"expect\""));
  write("k.ptx", replaced(read("k.ptx"), "  bar.sync",
                          "  .reg .pred %p<2>;\n"
                          "  setp.lt.u32 %p1, %r1, 32;\n"
                          "  @%p1 bar.sync"));
  const Outcome outcome = run({"--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  const Json error = Json::parse(outcome.out).at(0).at("error");
  EXPECT_EQ(error.at("kind"), "deadlock");
  EXPECT_TRUE(contains(error.at("message"),
                       "'@%p1 bar.sync 2, 64;' waits for named barrier 2 (phase 0, 32 of 64 "
                       "threads have arrived)"));
}

TEST_F(Program, JsonOfARefusedRunIsNotPrinted) {
  write("k.ptx", replaced(kKernel, "  ret;", kLoop));
  expect_refused(run({"--json", "--budget", "100"}), "k.ptx:18", "the budget is 100");
}

TEST_F(Program, JsonHoldsNamesThatAreNoUtf8) {
  write("k.ptx",
        replaced(kKernel, "  add.u32", "  .loc 1 5 1\n  add.u32") + ".file 1 \"caf\xe9.cu\"\n");
  write("k.ptx",
        replaced(read("k.ptx"), "ld.global.u32 %r2, [%rd4]", "ld.global.u32 %r2, [%rd4+4]"));
  write("k.ptx", replaced(read("k.ptx"), "  ld.global", "  .loc 1 5 1\n  ld.global"));
  const Outcome outcome = run({"--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  const Json place = Json::parse(outcome.out).at(0).at("error").at("place");
  EXPECT_EQ(place.at("source"), "caf\xef\xbf\xbd.cu");
  EXPECT_EQ(place.at("source_line"), 5);
}

TEST_F(Program, DumpsABuffer) {
  const Outcome outcome = run({"--dump", "out=out.bin"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const std::string bytes = read("out.bin");
  ASSERT_EQ(bytes.size(), 128u);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(static_cast<unsigned char>(bytes[4 * i]), 2 * i);
}

TEST_F(Program, ChecksEveryEntry) {
  const Outcome good = start({"check", "k.ptx"});
  EXPECT_EQ(good.exit_code, 0) << good;
  EXPECT_EQ(good.out, "twice: 10 statements\n");
  write("k.ptx", replaced(kKernel, "mul.wide.u32", "unheard.of"));
  expect_refused(start({"check", "k.ptx"}), "k.ptx:11", "unheard");
  write("k.ptx", std::string(kKernel) + ".func f { unheard.of; }\n.func g { ret; }\n");
  const Outcome functions = start({"check", "k.ptx"});
  EXPECT_EQ(functions.exit_code, 2) << functions;
  EXPECT_NE(functions.out.find("function g: 1 statements\n"), std::string::npos) << functions;
  EXPECT_NE(functions.err.find(" in f: error: unknown instruction 'unheard'"), std::string::npos)
      << functions;
}

}  // namespace
