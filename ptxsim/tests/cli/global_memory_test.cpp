// What `ptxsim run` says of global memory: races, --fast, and launches that overlap a previous
// grid.
#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

// Two CTAs write and read the same buffer without an order.
const std::string kTwoCtas = replaced(kCase, "\"block\": [32]", "\"grid\": [2], \"block\": [32]");
const std::string kRacing =
    replaced(replaced(kKernel, ".reg .b32 %r<4>", ".reg .b32 %r<5>"), "  add.u32 %r3, %r2, %r2;",
             "  mov.u32 %r4, %ctaid.x;\n  add.u32 %r3, %r2, %r4;");

TEST_F(Program, RacesInGlobalMemoryFailUnlessFast) {
  write("k.ptx", kRacing);
  write("c.json", replaced(kTwoCtas, "[0, 2, 4, 6]", "[]"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "writes global memory 0x1010000000 (out + 0x0)"));
  EXPECT_TRUE(contains(outcome.out, "[R17]"));
  EXPECT_EQ(run({"--fast"}).exit_code, 0);
}

TEST_F(Program, AMissingWaitForThePreviousGridFails) {
  write("c.json",
        replaced(kCase, "\"block\"", "\"previous_grid\": {\"writes\": [\"in\"]}, \"block\""));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.out, "which the previous grid may still write"));
  EXPECT_TRUE(contains(outcome.out, "[R21]"));
  write("k.ptx", replaced(kKernel, "  ld.global", "  griddepcontrol.wait;\n  ld.global"));
  EXPECT_EQ(run().exit_code, 0);
}

TEST_F(Program, APreviousGridNamesBuffersOfTheCase) {
  write("c.json",
        replaced(kCase, "\"block\"", "\"previous_grid\": {\"reads\": [\"no\"]}, \"block\""));
  expect_refused(run(), "c.json:1:48", "previous_grid.reads[0]: there is no buffer 'no'");
  write("c.json", replaced(kCase, "\"block\"", "\"previous_grid\": {\"read\": []}, \"block\""));
  expect_refused(run(), "c.json:1:46", "a previous grid has the unknown key 'read'");
}

}  // namespace
