// What is poisoned when a warp starts: registers that some path may read before it writes them.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"

namespace {

// Names of the registers that are poisoned.
std::set<std::string> poisoned(const std::string& body) {
  auto module = ptxsim::load(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u32 n) {\n.reg "
      ".pred %p<9>;\n"
      ".reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .f32 %f<33>;\n" +
          body + "\nret;\n}\n",
      "k.ptx");
  EXPECT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, "k");
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  std::set<std::string> names;
  for (const ptxsim::RegisterRange& range : (*program)->poisoned)
    for (const ptxsim::Register& reg : (*program)->entry->registers)
      if (reg.offset == range.at) names.insert(reg.name);
  return names;
}
using Names = std::set<std::string>;

TEST(UndefinedRegisters, StraightText) {
  EXPECT_EQ(poisoned("mov.u32 %r1, 1; add.u32 %r2, %r1, 1;"), Names{});
  EXPECT_EQ(poisoned("add.u32 %r2, %r1, 1; mov.u32 %r1, 1;"), Names{"%r1"});
  EXPECT_EQ(poisoned("add.u32 %r1, %r1, 1;"), Names{"%r1"});
  EXPECT_EQ(poisoned("mov.b64 {%r1, %r2}, %d1; add.u32 %r3, %r1, %r2;"), Names{"%d1"});
}

TEST(UndefinedRegisters, AGuardedStatementMayWriteNothing) {
  EXPECT_EQ(poisoned("setp.eq.u32 %p1, 1, 1; @%p1 mov.u32 %r1, 1; add.u32 %r2, %r1, 1;"),
            Names{"%r1"});
  EXPECT_EQ(poisoned("@%p1 mov.u32 %r1, 1;"), Names{"%p1"});
}

TEST(UndefinedRegisters, EveryPath) {
  const std::string skipped =
      "setp.eq.u32 %p1, 1, 1; @%p1 bra L; mov.u32 %r1, 1; L: add.u32 %r2, %r1, 1;";
  EXPECT_EQ(poisoned(skipped), Names{"%r1"});
  EXPECT_EQ(poisoned("bra B; A: add.u32 %r2, %r1, 1; bra C; B: mov.u32 %r1, 1; bra A; C:"),
            Names{});
  // Written in the first round of a loop, read in the next ones, or in the first one already.
  EXPECT_EQ(poisoned("mov.u32 %r3, 0; L: mov.u32 %r1, 1; add.u32 %r3, %r3, %r1; setp.lt.u32 %p1, "
                     "%r3, 4; @%p1 bra L;"),
            Names{});
  EXPECT_EQ(poisoned("mov.u32 %r3, 0; L: add.u32 %r3, %r3, %r1; mov.u32 %r1, 1; setp.lt.u32 %p1, "
                     "%r3, 4; @%p1 bra L;"),
            Names{"%r1"});
  EXPECT_EQ(
      poisoned(
          "mov.u32 %r1, 0; ts: .branchtargets A, B; brx.idx %r1, ts; A: add.u32 %r3, %r2, 1; ret; "
          "B: add.u32 %r3, %r4, 1;"),
      (Names{"%r2", "%r4"}));
}

// D is read unless scale-d says no, which is known when it is executed.
TEST(UndefinedRegisters, AccumulatorsOfWgmma) {
  const std::string mma =
      "setp.eq.u32 %p1, 1, 1; mov.u64 %d1, 0; mov.u64 %d2, 0;"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, %p1, 1, "
      "1, 0, 0;";
  EXPECT_EQ(poisoned(mma), (Names{"%f1", "%f2", "%f3", "%f4"}));
}

// Register files are used again: unwritten registers are NaN all the same.
TEST(UndefinedRegisters, HoldNoneOfAnotherWarpsValues) {
  auto module = ptxsim::load(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n.reg "
      ".b32 %r<4>;\n"
      ".reg .b64 %d<3>;\n.reg .pred %p<2>;\nld.param.u64 %d1, [out];\nmov.u32 %r2, %ctaid.x;\n"
      "mul.wide.u32 %d2, %r2, 4;\nadd.u64 %d1, %d1, %d2;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 mov.u32 "
      "%r1, 7;\n"
      "st.global.u32 [%d1], %r1;\nret;\n}\n",
      "k.ptx");
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, "k");
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  ptxsim::GlobalMemory memory;
  constexpr uint64_t kAt = 0x10'0000'0000;
  memory.add("out", kAt, std::vector<std::byte>(16), true, false);
  ptxsim::Launch launch;
  launch.grid = {4, 1, 1};
  launch.block = {1, 1, 1};
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &kAt, 8);
  ptxsim::Options options;
  options.resident_clusters = 1;
  options.sanitize = false;
  const ptxsim::RunResult result = ptxsim::run(*program, launch, memory, options);
  EXPECT_FALSE(result.error) << to_string(*result.error);
  uint32_t words[4];
  std::memcpy(words, memory.find(kAt)->data.data(), sizeof words);
  EXPECT_EQ(words[0], 7u);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(words[i], ptxsim::kPoisonWord);
}

}  // namespace
