// Which instructions order the accesses of two warps, as the sanitizer sees it: R16 is a race of
// ordinary accesses.
#include <gtest/gtest.h>

#include <string>

#include "unit/small_kernel.hpp"

namespace {

using ptxsim_test::reports;
using ptxsim_test::run_small;
using ptxsim_test::SmallKernel;

constexpr int kRace = 16;

// The first lane of warp 0 writes tile and hands over; the first lane of warp 1 takes over and
// reads.
std::string handover(const std::string& give, const std::string& take) {
  return "shl.b32 %r10, %r0, 2;\n and.b32 %r10, %r10, 63;\n mov.u32 %r11, tile;\n add.u32 %r10, "
         "%r10, %r11;\n"
         "mov.u32 %r12, full;\n mov.u32 %r13, 0;\n setp.ne.u32 %p1, %r0, 0;\n"
         "@!%p1 st.shared.u32 [%r12], %r13;\n @!%p1 st.shared.u32 [tile], %r13;\n bar.sync 0;\n"
         "setp.gt.u32 %p2, %r0, 31;\n @%p2 bra TAKE;\n"
         "@%p1 ret;\n mov.u32 %r14, 5;\n st.shared.u32 [tile], %r14;\n" +
         give + "\n ret;\nTAKE:\n setp.ne.u32 %p4, %r0, 32;\n @%p4 ret;\n" + take +
         "\n ld.shared.u32 %r15, [tile];";
}

std::string poll(const std::string& load) {
  return "AGAIN:\n " + load + "\n setp.eq.u32 %p3, %r16, 0;\n @%p3 bra AGAIN;\n";
}

bool races(const std::string& give, const std::string& take) {
  bool any = false;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto result =
        run_small({handover(give, take), {64, 1, 1}, {1, 1, 1}, ptxsim::Schedule::kRandom, seed});
    EXPECT_FALSE(result.error) << to_string(*result.error);
    any = any || reports(result, kRace);
  }
  return any;
}

const char* const kOne = "mov.u32 %r14, 1;\n";

TEST(MemoryOrder, ReleaseAndAcquireOrder) {
  EXPECT_FALSE(races(std::string(kOne) + "st.release.cta.shared.u32 [full], %r14;",
                     poll("ld.acquire.cta.shared.u32 %r16, [full];")));
}

TEST(MemoryOrder, FencesAroundRelaxedAccessesOrder) {
  EXPECT_FALSE(
      races(std::string(kOne) + "fence.acq_rel.cta;\n st.relaxed.cta.shared.u32 [full], %r14;",
            poll("ld.relaxed.cta.shared.u32 %r16, [full];") + "fence.acq_rel.cta;"));
  EXPECT_FALSE(races(std::string(kOne) + "membar.cta;\n st.volatile.shared.u32 [full], %r14;",
                     poll("ld.volatile.shared.u32 %r16, [full];") + "membar.cta;"));
}

TEST(MemoryOrder, AtomicsOrderAsTheirQualifierSays) {
  const std::string exchange = "atom.acquire.cta.shared.exch.b32 %r16, [full], 0;";
  EXPECT_FALSE(races("red.release.cta.shared.add.u32 [full], 1;", poll(exchange)));
  EXPECT_TRUE(races("red.shared.add.u32 [full], 1;", poll(exchange)));
}

TEST(MemoryOrder, GlobalFlagsOrderSharedMemory) {
  EXPECT_FALSE(races(std::string(kOne) + "st.release.gpu.global.u32 [%rd1], %r14;",
                     poll("ld.acquire.gpu.global.u32 %r16, [%rd1];")));
}

TEST(MemoryOrder, WithoutReleaseThereIsARace) {
  EXPECT_TRUE(races(std::string(kOne) + "st.relaxed.cta.shared.u32 [full], %r14;",
                    poll("ld.acquire.cta.shared.u32 %r16, [full];")));
}

TEST(MemoryOrder, WithoutAcquireThereIsARace) {
  EXPECT_TRUE(races(std::string(kOne) + "st.release.cta.shared.u32 [full], %r14;",
                    poll("ld.relaxed.cta.shared.u32 %r16, [full];")));
}

TEST(MemoryOrder, AReleasingFenceDoesNotAcquire) {
  EXPECT_TRUE(races(std::string(kOne) + "st.release.cta.shared.u32 [full], %r14;",
                    poll("ld.relaxed.cta.shared.u32 %r16, [full];") + "fence.release.cta;"));
}

TEST(MemoryOrder, ARedDoesNotAcquire) {
  // "Reductions do not form acquire patterns": only the load after it, relaxed and not fenced, is
  // seen.
  EXPECT_TRUE(races(std::string(kOne) + "st.release.cta.shared.u32 [full], %r14;",
                    "fence.acq_rel.cta;\n" + poll("ld.relaxed.cta.shared.u32 %r16, [full];") +
                        "red.relaxed.cta.shared.add.u32 [full], 1;"));
}

TEST(MemoryOrder, BarriersOrder) {
  // Lanes 1 to 31 of both warps have exited: the warps still count.
  EXPECT_FALSE(races("barrier.sync 1, 64;", "barrier.sync 1, 64;"));
  EXPECT_FALSE(races("barrier.arrive 1, 64;", "barrier.sync 1, 64;"));
}

TEST(MemoryOrder, AnArrivalDoesNotAcquire) {
  // The reader arrives without waiting.
  EXPECT_TRUE(races("barrier.sync 1, 64;", "barrier.arrive 1, 64;"));
}

TEST(MemoryOrder, ClusterBarrierOrdersUnlessRelaxed) {
  const std::string wait = "\n barrier.cluster.wait;";
  EXPECT_FALSE(races("barrier.cluster.arrive;" + wait, "barrier.cluster.arrive;" + wait));
  EXPECT_TRUE(
      races("barrier.cluster.arrive.relaxed;" + wait, "barrier.cluster.arrive.relaxed;" + wait));
}

TEST(MemoryOrder, LanesOfAWarpAreOrderedByBarWarpSync) {
  const std::string write =
      "shl.b32 %r1, %r0, 2;\n and.b32 %r1, %r1, 63;\n mov.u32 %r2, tile;\n"
      "add.u32 %r3, %r1, %r2;\n setp.gt.u32 %p1, %r0, 15;\n"
      "@!%p1 st.shared.u32 [%r3], %r0;\n";
  const std::string read =
      "xor.b32 %r4, %r1, 4;\n add.u32 %r4, %r4, %r2;\n @!%p1 ld.shared.u32 %r5, [%r4];";
  EXPECT_FALSE(reports(run_small({write + "bar.warp.sync -1;\n" + read}), kRace));
  EXPECT_TRUE(reports(run_small({write + read}), kRace));
}

TEST(MemoryOrder, ALaterPhaseOfABarrierDoesNotTakeTheOrderAway) {
  // Warps 0 and 1 meet, then warps 2 and 3 at the same barrier, before warp 1 may have gone on.
  const std::string body =
      "shr.u32 %r1, %r0, 6;\n setp.eq.u32 %p1, %r1, 1;\n setp.eq.u32 %p2, %r0, 0;\n mov.u32 %r3, "
      "9;\n"
      "@%p1 bra SECOND;\n @%p2 st.shared.u32 [tile], %r3;\n bar.sync 1, 64;\n ld.shared.u32 %r2, "
      "[tile];\n"
      "bar.sync 2;\n ret;\nSECOND:\n mov.u32 %r4, 0;\nLOOP:\n add.u32 %r4, %r4, 1;\n"
      "setp.lt.u32 %p3, %r4, 2000;\n @%p3 bra LOOP;\n bar.sync 1, 64;\n bar.sync 2;";
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto result = run_small({body, {128, 1, 1}, {1, 1, 1}, ptxsim::Schedule::kRandom, seed});
    ASSERT_FALSE(result.error) << to_string(*result.error);
    EXPECT_FALSE(reports(result, kRace)) << "seed " << seed;
  }
}

}  // namespace
