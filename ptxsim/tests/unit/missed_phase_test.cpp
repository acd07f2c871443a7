// A barrier that completes two phases while a thread waits for the first of them: the eager
// schedule releases the waiter, as polling hardware does, and says so; the others let it miss the
// phase, and the report of the deadlock says which.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "contains.hpp"
#include "unit/small_kernel.hpp"

namespace {

using ptxsim::Schedule;
using ptxsim_test::contains;
using ptxsim_test::run_small;
using ptxsim_test::SmallKernel;

const std::string kInit = R"(
  mov.u32 %r1, full;
  mov.u32 %r6, tile;
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
  bar.sync 0;
  setp.ge.u32 %p3, %r0, 32;
  @%p3 bra waiter;
)";
const std::string kWait = R"(
waiter:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra waiter;
)";

// Thread 0 goes through two phases without waiting; warp 1 waits for the first.
SmallKernel two_phases(Schedule schedule, const std::string& after_wait = "") {
  return {.body = kInit + R"(
  @%p1 bra end;
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  bra end;
)" + kWait + after_wait +
                  "end:",
          .block = {64, 1, 1},
          .schedule = schedule};
}

const ptxsim::Report* nearly_missed(const ptxsim::RunResult& result) {
  for (const ptxsim::Report& report : result.reports.list)
    if (report.message.find("nearly missed") != std::string::npos) return &report;
  return nullptr;
}

TEST(MissedPhase, TheEagerScheduleReleasesTheWaiterAndSaysSo) {
  const ptxsim::RunResult result = run_small(two_phases(Schedule::kEager));
  EXPECT_FALSE(result.error) << to_string(*result.error);
  const ptxsim::Report* report = nearly_missed(result);
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->rule, 10);
  EXPECT_EQ(report->severity, ptxsim::Severity::kAdvisory);
  EXPECT_TRUE(contains(report->message,
                       "'mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;' "
                       "nearly missed phase 0 of mbarrier 0x"));
  EXPECT_TRUE(contains(report->message, "phase 1 completed before the warp went on"));
  EXPECT_TRUE(
      contains(report->other, "'mbarrier.arrive.shared::cta.b64 %rd4, [%r1];' at small.ptx:"));
}

TEST(MissedPhase, ADeadlockUnderTheLazyScheduleNamesIt) {
  const ptxsim::RunResult result = run_small(two_phases(Schedule::kLazy));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->kind, ptxsim::ErrorKind::kDeadlock);
  EXPECT_TRUE(
      contains(result.error->message,
               "waits for phase parity 0 of mbarrier 0x440 (phase 2, 1 of 1 arrivals pending, "
               "tx-count 0); missed phase 0: it has completed, and the barrier went on to phase "
               "2, of the same parity"));
}

// A poll that gives up the turn is no suspended wait: the thread may be elsewhere.
TEST(MissedPhase, TestWaitIsNotReleased) {
  SmallKernel kernel = two_phases(Schedule::kEager);
  const size_t at = kernel.body.find("try_wait");
  kernel.body.replace(at, 8, "test_wait");
  const ptxsim::RunResult result = run_small(kernel);
  ASSERT_TRUE(result.error);
  EXPECT_TRUE(contains(result.error->message, "missed phase 0: it has completed"));
}

TEST(MissedPhase, APhaseThatIsWaitedForInTimeIsNotMissed) {
  const SmallKernel kernel{.body = kInit + R"(
  @%p1 bra end;
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  bra end;
)" + kWait + "end:",
                           .block = {64, 1, 1}};
  const ptxsim::RunResult result = run_small(kernel);
  EXPECT_FALSE(result.error) << to_string(*result.error);
  EXPECT_EQ(nearly_missed(result), nullptr);
}

// Warp 1 waits for parity 0, is answered, and asks again for the next phase of parity 0: that is a
// new wait, and phase 0 was not missed.
TEST(MissedPhase, AWaitThatSucceededIsOver) {
  const SmallKernel kernel{.body = kInit + R"(
  @%p1 bra end;
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  bra end;
waiter:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra waiter;
  setp.ne.u32 %p4, %r0, 32;
  @!%p4 mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
again:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra again;
end:)",
                           .block = {64, 1, 1}};
  const ptxsim::RunResult result = run_small(kernel);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->kind, ptxsim::ErrorKind::kDeadlock);
  EXPECT_EQ(result.error->message.find("missed"), std::string::npos) << result.error->message;
}

// The thread that comes late, but has waited for every phase so far, means the next one.
TEST(MissedPhase, AThreadThatComesLateHasMissedThePhaseItMeant) {
  const SmallKernel kernel{.body = kInit + R"(
  @%p1 bra joined;
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  bra joined;
waiter:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra waiter;
joined:
  bar.sync 0;
  @!%p1 mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  @!%p1 mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  bar.sync 0;
  @!%p3 bra end;
late:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 1;
  @!%p2 bra late;
end:)",
                           .block = {64, 1, 1}};
  const ptxsim::RunResult result = run_small(kernel);
  ASSERT_TRUE(result.error);
  EXPECT_TRUE(contains(result.error->message, "missed phase 1: it has completed"));
}

// What the released waiter knows is what the phase handed over: not the store before the second
// arrival.
TEST(MissedPhase, TheReleasedWaiterAcquiresItsOwnPhaseOnly) {
  for (const bool before_first : {true, false}) {
    const std::string store = "  st.shared.u32 [%r6], 7;\n";
    const SmallKernel kernel{
        .body = kInit + "  @%p1 bra end;\n" + (before_first ? store : "") +
                "  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];\n" + (before_first ? "" : store) +
                "  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];\n  bra end;\n" + kWait +
                "  ld.shared.u32 %r7, [%r6];\nend:",
        .block = {64, 1, 1}};
    const ptxsim::RunResult result = run_small(kernel);
    EXPECT_FALSE(result.error) << to_string(*result.error);
    EXPECT_NE(nearly_missed(result), nullptr);
    EXPECT_EQ(ptxsim_test::reports(result, 16), !before_first);
  }
}

// A first wait may mean any phase of its parity.
TEST(MissedPhase, AFirstWaitMayHaveMissedItsPhase) {
  const SmallKernel kernel{.body = R"(
  mov.u32 %r1, full;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra end;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
waiter:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra waiter;
end:)"};
  const ptxsim::RunResult result = run_small(kernel);
  ASSERT_TRUE(result.error);
  EXPECT_TRUE(
      contains(result.error->message, "tx-count 0); may have missed phase 0: it has completed"));
}

// The state form names its phase: a suspended wait for it is answered, too.
TEST(MissedPhase, AWaitByStateIsReleased) {
  const SmallKernel kernel{.body = R"(
  mov.u32 %r1, full;
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 mbarrier.init.shared::cta.b64 [%r1], 2;
  bar.sync 0;
  setp.ne.u32 %p3, %r0, 32;
  @!%p3 bra early;
  @%p1 bra end;
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1];
  mbarrier.arrive.shared::cta.b64 %rd4, [%r1], 2;
  bra end;
early:
  mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
waiter:
  mbarrier.try_wait.shared::cta.b64 %p2, [%r1], %rd5;
  @!%p2 bra waiter;
end:)",
                           .block = {64, 1, 1}};
  const ptxsim::RunResult result = run_small(kernel);
  EXPECT_FALSE(result.error) << to_string(*result.error);
  EXPECT_NE(nearly_missed(result), nullptr);
}

}  // namespace
