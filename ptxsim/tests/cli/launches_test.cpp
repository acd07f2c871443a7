// Cases with several launches: of other files, overlapped, mutated, and those that are not valid.
#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

// `twice` adds up: 1 becomes 2, and 2 becomes 4. Each waits for the grid before, but may begin
// while it runs.
const std::string kWaits = replaced(
    replaced(kKernel, "  mov.u32 %r1, %tid.x;", "  griddepcontrol.wait;\n  mov.u32 %r1, %tid.x;"),
    "  ret;", "  griddepcontrol.launch_dependents;\n  ret;");
const std::string kLaunches =
    R"({"buffers": [{"name": "a", "type": "u32", "count": 32, "iota": true},
             {"name": "b", "type": "u32", "count": 32}, {"name": "c", "type": "u32", "count": 32, "expect": [0, 4, 8]}],
 "launches": [{"kernel": "first.ptx", "block": [32], "params": [{"buffer": "a"}, {"buffer": "b"}]},
              {"entry": "twice", "block": [32], "overlaps": true, "params": [{"buffer": "b"}, {"buffer": "c"}]}]})";

class Launches : public Program {
 protected:
  Launches() {
    write("first.ptx", replaced(kWaits, "twice", "first"));
    write("k.ptx", kWaits);
    write("c.json", kLaunches);
  }
};

TEST_F(Launches, FollowEachOther) {
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.out, "passed eager seed 1: 0 errors")) << outcome;
}

TEST_F(Launches, OverlappedOnesAreJudgedByEachOther) {
  write("k.ptx", replaced(kWaits, "  griddepcontrol.wait;\n", ""));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "which the previous grid 'launch 0, first' may still write"))
      << outcome;
  write("c.json", replaced(kLaunches, "\"overlaps\": true, ", ""));
  EXPECT_EQ(run().exit_code, 0);
}

TEST_F(Launches, FindingsOfOtherFilesAreReported) {
  write("first.ptx",
        replaced(replaced(kWaits, "twice", "first"), "  ret;",
                 "  ld.global.nc.u32 %r2, [%rd5];\n  st.global.u32 [%rd5], %r2;\n  ret;"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "first.ptx:19: error: ")) << outcome;
}

TEST_F(Launches, AMissingWaitIsNoticed) {
  const Outcome outcome = start({"mutate", "k.ptx", "--case", "c.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.out, "1 mutants executed, 1 noticed")) << outcome;
}

TEST_F(Launches, TheClockTakesOne) {
  expect_refused(start({"time", "k.ptx", "--case", "c.json"}), "", "the clock takes one");
}

TEST_F(Launches, AnEntryMustBeLaunched) {
  expect_refused(start({"run", "k.ptx", "--case", "c.json", "--entry", "none"}), "",
                 "--entry: no launch of the case is of 'none'");
}

TEST_F(Launches, BadOnesAreRefused) {
  for (const BadText& bad :
       {BadText{"Outside", "\"launches\"", "\"grid\": [2], \"launches\"", "c.json:3:10",
                "belongs to one of the launches"},
        BadText{"Overlaps", "\"block\": [32], \"params\": [{\"buffer\": \"a\"}",
                "\"overlaps\": true, \"params\": [{\"buffer\": \"a\"}", "c.json:3:51",
                "there is no launch before the first"},
        BadText{"NoFile", "first.ptx", "none.ptx", "c.json:3:26", "cannot read './none.ptx'"},
        BadText{"NoneOfTheKernel", "\"entry\": \"twice\"", "\"kernel\": \"first.ptx\"",
                "c.json:3:14", "none is of the kernel that the case is for"},
        BadText{"Key", "\"overlaps\"", "\"overlap\"", "c.json:4:60",
                "a launch has the unknown key 'overlap'"},
        BadText{"Entry", "\"entry\": \"twice\"", "\"entry\": \"none\"", "k.ptx",
                "entry 'none' is not in the module"}}) {
    SCOPED_TRACE(bad.name);
    write("c.json", replaced(kLaunches, bad.from, bad.to));
    expect_refused(run(), bad.position, bad.reason);
  }
}

}  // namespace
