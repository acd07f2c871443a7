// The report of a deadlock: for each warp what it waits for, how far that is, and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "contains.hpp"
#include "unit/small_kernel.hpp"

namespace {

using ptxsim_test::contains;
using ptxsim_test::run_small;
using ptxsim_test::SmallKernel;

std::string report_of(const SmallKernel& kernel) {
  const ptxsim::RunResult result = run_small(kernel);
  if (!result.error) return "no error";
  EXPECT_EQ(result.error->kind, ptxsim::ErrorKind::kDeadlock);
  return to_string(*result.error);
}

// The number of the line of small.ptx that begins with these words.
int line_of(const SmallKernel& kernel, const std::string& words) {
  const std::string text = text_of(kernel);
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << words;
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

const std::string kInit = R"(
  mov.u32 %r1, full;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra initialised;
  mbarrier.init.shared::cta.b64 [%r1], 3;
initialised:
  bar.sync 0;
)";

TEST(Deadlock, NamesBarrierPhasePendingAndBytesOfAnMbarrier) {
  const SmallKernel kernel{kInit + R"(
  @%p1 bra wait;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra wait;)"};
  const std::string report = report_of(kernel);
  EXPECT_TRUE(contains(report, "deadlock: no warp can go on and nothing is in flight (R13)"));
  EXPECT_TRUE(contains(report, "CTA (0,0,0), warp 0, all lanes"));
  EXPECT_TRUE(contains(report, "waits for phase parity 0 of mbarrier 0x"));
  EXPECT_TRUE(contains(report, "(phase 0, 2 of 3 arrivals pending, tx-count 256)"));
  EXPECT_TRUE(
      contains(report, "small.ptx:" + std::to_string(line_of(kernel, "mbarrier.try_wait")) + ": "));
}

TEST(Deadlock, NamesTheSourceLineOfTheLocDirective) {
  const SmallKernel kernel{kInit + R"(
  .loc 1 88 3
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra wait;
  ret;
}
.file 1 "dual_gemm.cuh"
.visible .entry other()
{)"};
  EXPECT_TRUE(contains(report_of(kernel), "(dual_gemm.cuh:88)"));
}

TEST(Deadlock, CountsPhasesThatHaveCompleted) {
  const SmallKernel kernel{kInit + R"(
  @%p1 bra wait;
  mbarrier.arrive.shared::cta.b64 _, [%r1], 3;
  mbarrier.arrive.shared::cta.b64 _, [%r1], 1;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 1;
  @!%p2 bra wait;)"};
  EXPECT_TRUE(contains(report_of(kernel), "phase parity 1 of mbarrier 0x"));
  EXPECT_TRUE(contains(report_of(kernel), "(phase 1, 2 of 3 arrivals pending, tx-count 0)"));
}

TEST(Deadlock, LanesThatWaitForDifferentMbarriersHaveALineEach) {
  const SmallKernel kernel{R"(
  mov.u32 %r1, tile;
  setp.gt.u32 %p1, %r0, 1;
  @%p1 ret;
  mad.lo.u32 %r1, %r0, 8, %r1;
  add.u32 %r2, %r0, 5;
  mbarrier.init.shared::cta.b64 [%r1], %r2;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra wait;)"};
  const std::string report = report_of(kernel);
  EXPECT_TRUE(contains(report, "lanes 00000001"));
  EXPECT_TRUE(contains(report, "5 of 5 arrivals pending"));
  EXPECT_TRUE(contains(report, "lanes 00000002"));
  EXPECT_TRUE(contains(report, "6 of 6 arrivals pending"));
}

TEST(Deadlock, CountsTheThreadsAtANamedBarrier) {
  const SmallKernel kernel{"bar.sync 3, 96;\nsetp.gt.u32 %p1, %r0, 63;\n@%p1 ret;\nbar.sync 3, 96;",
                           {96, 1, 1}};
  const std::string report = report_of(kernel);
  EXPECT_TRUE(contains(report, "warp 0, all lanes"));
  EXPECT_TRUE(contains(report, "warp 1, all lanes"));
  EXPECT_TRUE(contains(report, "named barrier 3 (phase 1, 64 of 96 threads have arrived)"));
  EXPECT_TRUE(contains(report, "'bar.sync 3, 96;'"));
}

TEST(Deadlock, CountsTheThreadsAtTheClusterBarrier) {
  const SmallKernel kernel{R"(
  mov.u32 %r1, %cluster_ctarank;
  setp.eq.u32 %p1, %r1, 1;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p1 bar.sync 1, 64;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;)",
                           {64, 1, 1},
                           {2, 1, 1}};
  const SmallKernel one_warp_missing{R"(
  mov.u32 %r1, %cluster_ctarank;
  setp.eq.u32 %p1, %r1, 1;
  setp.lt.and.u32 %p1, %r0, 32, %p1;
  @%p1 bar.sync 1, 64;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;)",
                                     {64, 1, 1},
                                     {2, 1, 1}};
  EXPECT_EQ(report_of(kernel), "no error");
  const std::string report = report_of(one_warp_missing);
  EXPECT_TRUE(
      contains(report,
               "the cluster barrier (phase 0, 96 threads have arrived, 128 of the cluster's 128 "
               "have not exited)"));
  EXPECT_TRUE(contains(report, "CTA (1,0,0) rank 1, warp 0, all lanes"));
  EXPECT_TRUE(contains(report, "named barrier 1 (phase 0, 32 of 64 threads have arrived)"));
}

TEST(Deadlock, LanesThatWaitForOthersOfTheirWarpSaySo) {
  const SmallKernel kernel{kInit + R"(
  @%p1 bra together;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra wait;
together:
  bar.warp.sync 0xffffffff;)"};
  const std::string report = report_of(kernel);
  EXPECT_TRUE(contains(report, "lanes 00000001"));
  EXPECT_TRUE(contains(report, "3 of 3 arrivals pending"));
  EXPECT_TRUE(contains(report, "lanes fffffffe"));
  EXPECT_TRUE(contains(report, "waits for the other lanes of the warp"));
}

}  // namespace
