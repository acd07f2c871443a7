// Sequences of a few pieces, with times computed by hand.
#include "timing/schedule.hpp"

#include <gtest/gtest.h>

#include <string>

#include "timing/critical_path.hpp"
#include "timing/round_values.hpp"

namespace {

using namespace ptxsim::timing;
using ptxsim_test::kExact;
using ptxsim_test::round_values;

Timeline time(const Work& work, double clusters = 1) {
  return schedule(work, round_values(), {.clusters = clusters});
}

TEST(Schedule, MmasOfAThreadFollowEachOtherAndLatenciesOverlap) {
  Work work;
  const uint32_t tensor = work.add_actor("tensor cores", "tensor cores", Sequence::kPipelined);
  const Demand long_one[] = {{Server::kTensor, 0, 1000}}, short_one[] = {{Server::kTensor, 0, 500}};
  work.add({.actor = tensor, .what = "mma"}, long_one, {});
  const uint32_t first =
      work.add({.actor = tensor, .what = "commit", .delay = Delay::kMma}, {}, {});
  work.add({.actor = tensor, .what = "mma"}, short_one, {});
  const uint32_t last = work.add({.actor = tensor, .what = "commit", .delay = Delay::kMma}, {}, {});
  const Timeline line = time(work);
  EXPECT_NEAR(line.pieces[first].end, 1.2, kExact);
  EXPECT_NEAR(line.pieces[last].end, 1.7, kExact);
}

TEST(Schedule, TheSlowerOfTwoServersCounts) {
  Work work;
  const uint32_t tensor = work.add_actor("tensor cores", "tensor cores", Sequence::kPipelined);
  const Demand needs[] = {{Server::kTensor, 0, 300}, {Server::kShared, 0, 700}};
  work.add({.actor = tensor, .what = "mma"}, needs, {});
  work.add({.actor = tensor, .what = "mma"}, needs, {});
  const Timeline line = time(work);
  EXPECT_NEAR(line.end, 1.4, kExact);
  EXPECT_EQ(shares_of(critical_path(work, line)).at(0).label, "shared memory");
}

// 32 lanes at 16 a clk and SM, of which a scheduler has a quarter: 8 clk.
TEST(Schedule, WarpsOfOneSchedulerShareItsFunctionUnit) {
  for (const uint32_t second : {4u, 1u}) {
    Work work;
    for (const uint32_t warp : {0u, second}) {
      const uint32_t actor = work.add_actor("warp", "warp", Sequence::kSerial);
      const Demand function[] = {{Server::kMufu, scheduler_of(0, warp), 1}};
      work.add({.actor = actor, .what = "functions"}, function, {});
    }
    EXPECT_NEAR(time(work).end, second == 4 ? 0.016 : 0.008, kExact) << second;
  }
}

// The latency covers the transfer of the first; the others come as quickly as the SM takes them in.
TEST(Schedule, LoadsOverlapTheirLatencies) {
  Work work;
  const uint32_t loads = work.add_actor("TMA", "TMA", Sequence::kFree);
  const Demand bytes[] = {{Server::kIngest, 0, 500}};
  for (int i = 0; i < 3; ++i)
    work.add({.actor = loads, .what = "load", .delay = Delay::kLoad, .delay_first = true}, bytes,
             {});
  const Timeline line = time(work);
  EXPECT_NEAR(line.pieces[0].end, 1.0, kExact);
  EXPECT_NEAR(line.pieces[1].end, 1.5, kExact);
  EXPECT_NEAR(line.pieces[2].end, 2.0, kExact);
}

TEST(Schedule, ClustersShareMemoryAndL2) {
  Work work;
  const uint32_t loads = work.add_actor("TMA", "TMA", Sequence::kFree);
  const Demand bytes[] = {{Server::kL2, 0, 4000}, {Server::kHbm, 0, 3000}};
  work.add({.actor = loads, .what = "load"}, bytes, {});
  EXPECT_NEAR(time(work, 1).end, 3, kExact);
  EXPECT_NEAR(time(work, 4).end, 12, kExact);
}

Chain clk(double clk) { return Chain{}.add(Latency::kClk, clk); }

TEST(Schedule, ADependencyCountsWithItsDelay) {
  Work work;
  const uint32_t a = work.add_actor("warp 0", "load", Sequence::kSerial);
  const uint32_t b = work.add_actor("warp 1", "mma", Sequence::kSerial);
  const uint32_t first = work.add({.actor = a, .what = "statements", .chain = clk(400)}, {}, {});
  const After when[] = {{first, Delay::kBarrierHop}};
  work.add({.actor = b, .what = "statements", .chain = clk(100)}, {}, when);
  const Timeline line = time(work);
  EXPECT_NEAR(line.end, 0.6, kExact);
  const auto waits = waits_of(work, line, 0.01);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].role + " for " + waits[0].for_role, "mma for load");
  EXPECT_NEAR(waits[0].us, 0.5, kExact);
}

TEST(Schedule, TheCriticalPathCoversEveryMicrosecond) {
  Work work;
  const uint32_t loads = work.add_actor("TMA", "TMA", Sequence::kFree);
  const uint32_t warp = work.add_actor("warp", "mma", Sequence::kSerial);
  const uint32_t tensor = work.add_actor("tensor cores", "tensor cores", Sequence::kPipelined);
  const Demand bytes[] = {{Server::kIngest, 0, 700}}, macs[] = {{Server::kTensor, 0, 250}};
  uint32_t commit = 0;
  for (int i = 0; i < 5; ++i) {
    const uint32_t load = work.add(
        {.actor = loads, .what = "load", .delay = Delay::kLoad, .delay_first = true}, bytes, {});
    const After arrived[] = {{load, Delay::kBarrierHop}};
    const uint32_t issued =
        work.add({.actor = warp, .what = "issue", .chain = clk(10)}, {}, arrived);
    const After when[] = {{issued}};
    work.add({.actor = tensor, .what = "mma"}, macs, when);
    commit = work.add({.actor = tensor, .what = "commit", .delay = Delay::kMma}, {}, when);
  }
  const Timeline line = time(work);
  // The loads' latency, four more transfers, then hop, statements, the last product and its commit.
  EXPECT_NEAR(line.pieces[commit].end, 1 + 4 * 0.7 + 0.1 + 0.01 + 0.25 + 0.2, kExact);
  double sum = 0, later = line.end;
  for (const Stretch& s : critical_path(work, line)) {
    EXPECT_NEAR(s.to, later, kExact) << s.label;
    later = s.from;
    sum += s.to - s.from;
  }
  EXPECT_NEAR(sum, line.end, kExact);
  EXPECT_EQ(shares_of(critical_path(work, line)).at(0).label, "SM ingest");
}

}  // namespace
