// CTAs of an ordinary launch that wait for each other, and launches that do not end.
#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

// A grid barrier by hand, as programs write it: each CTA counts itself and polls until all have.
const std::string kBarrier = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry barrier(.param .u64 count, .param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  .reg .pred %p;
  ld.param.u64 %rd1, [count];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p, %r1, 0;
  @%p bra after;
  fence.acq_rel.gpu;
  atom.relaxed.gpu.global.add.u32 %r2, [%rd1], 1;
  mov.u32 %r3, %nctaid.x;
again:
  ld.volatile.global.u32 %r4, [%rd1];
  setp.lt.u32 %p, %r4, %r3;
  @%p bra again;
  fence.acq_rel.gpu;
  mov.u32 %r5, %ctaid.x;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r4;
after:
  ret;
}
)";

class Residency : public Program {
 protected:
  // `ctas` of which each waits for `waited` in all.
  void write_barrier(int ctas) const {
    write("b.ptx", kBarrier);
    std::string expected;
    for (int i = 0; i < ctas; ++i) expected += (i == 0 ? "" : ", ") + std::to_string(ctas);
    write("b.json",
          "{\"entry\": \"barrier\", \"grid\": [" + std::to_string(ctas) +
              "], \"block\": [32], \"buffers\": [{\"name\": \"count\", \"type\": \"u32\", "
              "\"values\": [0]}, {\"name\": \"out\", \"type\": \"u32\", \"count\": " +
              std::to_string(ctas) + ", \"expect\": [" + expected +
              "]}], \"params\": [{\"buffer\": \"count\"}, {\"buffer\": \"out\"}]}");
  }
  Outcome run_barrier(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"run", "b.ptx", "--case", "b.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }
};

TEST_F(Residency, AHandMadeGridBarrierEnds) {
  for (const int ctas : {8, 64}) {
    write_barrier(ctas);
    for (const char* schedule : {"eager", "random"}) {
      const Outcome outcome = run_barrier({"--schedule", schedule});
      EXPECT_EQ(outcome.exit_code, 0) << ctas << " " << schedule << " " << outcome;
      EXPECT_TRUE(contains(outcome.out, "0 errors")) << outcome;
    }
  }
}

TEST_F(Residency, ALaunchThatSpinsNamesItselfAndWhatHelps) {
  write_barrier(64);
  const Outcome outcome = run_barrier({"--resident", "4", "--budget", "200000"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  for (const char* part : {"b.ptx:", "kernel 'barrier'", "--resident",
                           "60 clusters of the grid have not begun, as 4 run at the same time"})
    EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome;
}

TEST_F(Residency, BudgetsMayBeSeconds) {
  write_barrier(64);
  const Outcome outcome = run_barrier({"--resident", "4", "--budget-seconds", "0.05"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  for (const char* part :
       {"b.ptx:", "the launch of kernel 'barrier' runs for", "the budget is 0.05 s", "--resident"})
    EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome;
  EXPECT_EQ(run_barrier({"--budget-seconds", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace ptxsim_test
