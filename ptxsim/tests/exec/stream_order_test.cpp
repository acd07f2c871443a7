// Work of several streams on the same memory (R23).
#include "fake_cuda/stream_order.hpp"

#include <gtest/gtest.h>

#include "fake_cuda/streams.hpp"

namespace ptxsim_test {
namespace {

using namespace ptxsim::cuda;
using ptxsim::GridTrail;
using ptxsim::Report;

std::shared_ptr<GridTrail> trail_of(const char* kernel, bool writes, bool is_strong = false,
                                    uint64_t begin = 0x100) {
  auto trail = std::make_shared<GridTrail>();
  trail->kernel = kernel;
  trail->accesses = {
      "'st.global.u32 [%rd1], %r1;' at k.ptx:9:3 (k.cu:4), by CTA (0,0,0), warp 0, lane 3"};
  (writes ? trail->writes : trail->reads).push_back({begin, begin + 16, 0, is_strong});
  return trail;
}

class StreamWork : public testing::Test {
 protected:
  std::vector<Report> issue(Stream* stream, const std::shared_ptr<const GridTrail>& trail) {
    std::vector<Report> reports;
    EXPECT_EQ(streams.issue_grid(
                  stream,
                  [&](ptxsim::GridChain&) {
                    reports = streams.touched(trail);
                    return kSuccess;
                  },
                  nullptr),
              kSuccess);
    return reports;
  }
  Streams streams;
  Stream *a = streams.create(1, 0), *b = streams.create(1, 0);  // cudaStreamNonBlocking
};

TEST_F(StreamWork, RacesWithoutAnEvent) {
  EXPECT_TRUE(issue(a, trail_of("first", true)).empty());
  const std::vector<Report> reports = issue(b, trail_of("second", false));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].rule, 23);
  EXPECT_EQ(to_string(reports[0].place), "k.ptx:9:3 (k.cu:4)");
  EXPECT_EQ(
      reports[0].message,
      "'second' reads global memory 0x100, which 'first' in another stream writes, and nothing "
      "orders the two");
}

TEST_F(StreamWork, WritesAfterReadsRaceToo) {
  EXPECT_TRUE(issue(a, trail_of("first", false)).empty());
  EXPECT_EQ(issue(b, trail_of("second", true)).size(), 1u);
}

TEST_F(StreamWork, ReadsOtherPlacesAndAtomicsDoNotRace) {
  EXPECT_TRUE(issue(a, trail_of("first", false)).empty());
  EXPECT_TRUE(issue(b, trail_of("second", false)).empty());
  EXPECT_TRUE(issue(a, trail_of("first", true, false, 0x200)).empty());
  EXPECT_TRUE(issue(b, trail_of("second", true, false, 0x210)).empty());
  EXPECT_TRUE(issue(a, trail_of("first", true, true, 0x300)).empty());
  EXPECT_TRUE(issue(b, trail_of("second", true, true, 0x300)).empty());
  EXPECT_EQ(issue(b, trail_of("third", true, false, 0x300)).size(), 1u);
}

TEST_F(StreamWork, AnEventOrdersWhatCameBeforeIt) {
  Event* event = streams.create_event(0);
  issue(a, trail_of("first", true));
  EXPECT_EQ(streams.record(event, a), kSuccess);
  issue(a, trail_of("late", true, false, 0x200));
  EXPECT_EQ(streams.wait(b, event), kSuccess);
  EXPECT_TRUE(issue(b, trail_of("second", false)).empty());
  EXPECT_EQ(issue(b, trail_of("third", false, false, 0x200)).size(), 1u);
}

TEST_F(StreamWork, EventsCarryWhatOtherEventsBrought) {
  Stream* c = streams.create(1, 0);
  Event *first = streams.create_event(0), *second = streams.create_event(0);
  issue(a, trail_of("first", true));
  streams.record(first, a);
  streams.wait(b, first);
  streams.record(second, b);
  streams.wait(c, second);
  EXPECT_TRUE(issue(c, trail_of("second", false)).empty());
}

TEST_F(StreamWork, AHostThatWaitsOrders) {
  issue(a, trail_of("first", true));
  EXPECT_EQ(streams.synchronize(a), kSuccess);
  EXPECT_TRUE(issue(b, trail_of("second", true)).empty());
  EXPECT_EQ(streams.synchronize_all(), kSuccess);
  EXPECT_TRUE(issue(a, trail_of("third", true)).empty());
}

TEST_F(StreamWork, WaitingForTheWrongStreamDoesNot) {
  issue(a, trail_of("first", true));
  EXPECT_EQ(streams.synchronize(b), kSuccess);
  EXPECT_EQ(issue(b, trail_of("second", true)).size(), 1u);
}

TEST_F(StreamWork, TheLegacyStreamOrdersBlockingStreamsAlone) {
  Stream *blocking = streams.create(0, 0), *other = streams.create(0, 0);
  issue(blocking, trail_of("first", true));
  issue(nullptr, trail_of("between", false, false, 0x900));
  EXPECT_TRUE(issue(other, trail_of("second", true)).empty());
  EXPECT_EQ(issue(a, trail_of("third", true)).size(), 2u);
}

}  // namespace
}  // namespace ptxsim_test
