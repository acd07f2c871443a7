// `ptxsim mutate` without expected results: the unchanged kernel's are what a mutant must give.
#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

// Copies 16 bytes out of shared memory.
const std::string kStore = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry store(.param .u64 out)
{
  .reg .b64 %rd<2>;
  .shared .align 16 .b8 tile[16];
  ld.param.u64 %rd1, [out];
  st.shared.v4.u32 [tile], {1, 2, 3, 4};
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
)";
const std::string kStoreCase = R"({"params": [{"buffer": "out"}],
 "buffers": [{"name": "out", "type": "u32", "count": 4}]})";

TEST_F(Program, MutantsAreComparedWithTheUnchangedKernel) {
  write("k.ptx", kStore);
  write("c.json", kStoreCase);
  const Outcome outcome = start({"mutate", "k.ptx", "--case", "c.json", "--list"});
  EXPECT_TRUE(contains(outcome.out,
                       "the case expects no results: compared is what the unchanged kernel leaves "
                       "in out, under the same schedule and seed\n"));
  EXPECT_TRUE(contains(outcome.out, "wrong result: k.ptx:11: "));
  EXPECT_TRUE(
      contains(outcome.out, "[eager: out: byte 0 is unwritten; the unchanged kernel leaves 0x01]"));
  EXPECT_EQ(outcome.out.find("note:"), std::string::npos) << outcome;
}

TEST_F(Program, AnInitializedBufferIsComparedByItsBytes) {
  write("k.ptx", kStore);
  write("c.json", replaced(kStoreCase, "\"count\": 4", "\"count\": 4, \"fill\": 9"));
  const Outcome outcome = start({"mutate", "k.ptx", "--case", "c.json", "--list"});
  EXPECT_TRUE(
      contains(outcome.out, "[eager: out: byte 0 is 0x09; the unchanged kernel leaves 0x01]"));
}

TEST_F(Program, WhatTheCaseExpectsIsComparedInstead) {
  write("k.ptx", kStore);
  write("c.json", replaced(kStoreCase, "\"count\": 4", "\"count\": 4, \"expect\": [1, 2, 3, 4]"));
  const Outcome outcome = start({"mutate", "k.ptx", "--case", "c.json", "--list"});
  EXPECT_EQ(outcome.out.find("compared is"), std::string::npos) << outcome;
  EXPECT_TRUE(contains(outcome.out, "[eager: wrong result]"));
}

// Threads number themselves by an atomic: which gets which number depends on the schedule.
TEST_F(Program, ResultsThatDependOnTheScheduleAreNoted) {
  std::string kernel =
      replaced(kStore, "  ret;\n",
               "  mov.u32 %r2, 0;\nmore:\n  atom.global.add.u32 %r3, [%rd1+16], 1;\n"
               "  add.u32 %r2, %r2, 1;\n  setp.lt.u32 %p1, %r2, 100;\n  @%p1 bra more;\n"
               "  mul.wide.u32 %rd0, %r1, 4;\n  add.u64 %rd1, %rd1, %rd0;\n"
               "  st.global.u32 [%rd1+20], %r3;\n  ret;\n");
  kernel = replaced(kernel, "  .reg .b64 %rd<2>;",
                    "  .reg .b64 %rd<2>; .reg .b32 %r<4>; .reg .pred %p<2>;\n"
                    "  mov.u32 %r1, %tid.x;\n  setp.eq.u32 %p0, %r1, 0;");
  for (const char* text :
       {"  st.shared", "  fence", "  cp.async.bulk.g", "  cp.async.bulk.c", "  cp.async.bulk.w"})
    kernel = replaced(kernel, text, "  @%p0" + std::string(text + 1));
  write("k.ptx", kernel);
  write("c.json", replaced(replaced(kStoreCase, "\"count\": 4", "\"count\": 69, \"fill\": 0"),
                           "{\"params\"", "{\"block\": [64], \"params\""));
  const Outcome outcome = start({"mutate", "k.ptx", "--case", "c.json", "--limit", "2"});
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(contains(outcome.out, "note: out of the unchanged kernel differs between schedules"));
}

}  // namespace
