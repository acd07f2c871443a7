// Mutants of a multicast: each CTA that it is for is left out once, by another mask.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ptxsim/mutate/mutation.hpp"
#include "run_text.hpp"

namespace ptxsim::test {
namespace {

// What the mutants of the group do to the entry's statement of `text`.
std::set<std::string> masks(const Program& program, const std::string& text) {
  std::set<std::string> found;
  for (const Mutation& m : enumerate_mutations(program)) {
    const Statement& s = program.entry->statements[m.statement];
    if (m.group != "multicast" || s.text.find(text) == std::string::npos) continue;
    EXPECT_TRUE(m.from_register);
    EXPECT_EQ(program.entry->registers[m.reg].name, "%mask");
    EXPECT_EQ(m.add, 0u);
    found.insert(std::to_string(m.flip));
  }
  return found;
}

TEST(MulticastMutants, EachCtaOfAPairIsLeftOut) {
  auto module = load(
      with_header(
          ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b16 "
          "%mask;\n"
          "ld.param.u64 %rd1, [out];\nmov.b16 %mask, 3;\nmov.u32 %r1, 1024;\nmov.u32 %r2, 2048;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%r1], [%rd1], 16, [%r2], %mask;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%r1], [%rd1], 16, [%r2];\n"
          "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster."
          "b64 "
          "[%r2], %mask;\nret;\n}\n"),
      "k.ptx");
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  auto program = decode(*module, "");
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const std::set<std::string> both{"1", "2"};
  EXPECT_EQ(masks(**program, "cp.async.bulk"), both);
  EXPECT_EQ(masks(**program, "tcgen05.commit"), both);
}

}  // namespace
}  // namespace ptxsim::test
