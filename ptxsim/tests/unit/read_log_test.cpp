// Reads of shared memory that the shadow does not know yet.
#include "check/read_log.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ptxsim::check {
namespace {

constexpr size_t kGranules = 200;

SharedOffsets offsets_from(uint32_t first, uint32_t step) {
  SharedOffsets offsets;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) offsets.of_lane[lane] = first + step * lane;
  offsets.least = first;
  offsets.most = offsets.of_lane.back();
  return offsets;
}

ShadowEntry read_by(uint32_t warp, uint32_t lanes = kAllLanes) {
  return {.actor = warp,
          .lanes = lanes,
          .epoch = 1,
          .statement = 2,
          .bytes = 0,
          .kind = AccessKind::kRead,
          .is_async = false};
}

std::vector<uint32_t> warps_in(ReadLog& log) {
  std::vector<uint32_t> warps;
  log.hand_over([&](const LoggedRead& read) { warps.push_back(read.entry.actor); });
  return warps;
}

TEST(GranuleSet, RangesBeginAndEndAnywhere) {
  for (const uint32_t first : {0u, 1u, 62u, 63u, 64u, 65u, 127u, 128u})
    for (const uint32_t last : {63u, 64u, 126u, 127u, 128u, 191u, 199u}) {
      if (last < first) continue;
      GranuleSet set;
      set.reset(kGranules);
      set.add(first, last);
      for (uint32_t i = 0; i < kGranules; ++i)
        ASSERT_EQ(set.has(i), i >= first && i <= last) << first << " to " << last << ", " << i;
      EXPECT_TRUE(set.has_any(last, kGranules - 1));
      if (last + 1 < kGranules) {
        EXPECT_FALSE(set.has_any(last + 1, kGranules - 1));
      }
      if (first > 0) {
        EXPECT_FALSE(set.has_any(0, first - 1));
      }
    }
}

TEST(ReadLog, ConcernsWhatWasReadAndHandsItOverInOrder) {
  ReadLog log;
  log.begin(0, kGranules);
  EXPECT_FALSE(log.concerns(64));
  ASSERT_TRUE(log.take(read_by(3), offsets_from(1024, 4), 4));
  ASSERT_TRUE(log.take(read_by(1), offsets_from(1024, 0), 16));
  for (const uint32_t granule : {64u, 67u, 71u}) EXPECT_TRUE(log.concerns(granule));
  EXPECT_FALSE(log.concerns(63));
  EXPECT_FALSE(log.concerns(72));
  EXPECT_EQ(warps_in(log), (std::vector<uint32_t>{3, 1}));
  EXPECT_FALSE(log.concerns(64));
  EXPECT_TRUE(warps_in(log).empty());
}

TEST(ReadLog, TakesNoReadOfWhatWasWritten) {
  ReadLog log;
  log.begin(0, kGranules);
  log.note_write(70);
  EXPECT_FALSE(log.take(read_by(0), offsets_from(1024, 4), 4));
  EXPECT_FALSE(log.concerns(64)) << "a read that was not taken";
  // Granules 64, 68, 72 and so on: the written one lies between, and is not read.
  ASSERT_TRUE(log.take(read_by(0), offsets_from(1024, 64), 4));
  EXPECT_TRUE(log.concerns(72));
  EXPECT_FALSE(log.concerns(70));
  EXPECT_FALSE(log.concerns(71));
  // Lanes that do not read do not matter.
  EXPECT_TRUE(log.take(read_by(0, 0x00ffffff), offsets_from(1024, 4), 4));
}

TEST(ReadLog, AnotherGenerationForgetsReadsAndWrites) {
  ReadLog log;
  log.begin(0, kGranules);
  ASSERT_TRUE(log.take(read_by(0), offsets_from(1024, 4), 4));
  log.note_write(80);
  log.begin(0, kGranules);
  EXPECT_TRUE(log.concerns(64));
  log.begin(1, kGranules);
  EXPECT_FALSE(log.concerns(64));
  EXPECT_TRUE(log.take(read_by(0), offsets_from(1280, 4), 4));
  EXPECT_EQ(warps_in(log).size(), 1u);
}

TEST(ReadLog, IsFullAtSomeTime) {
  ReadLog log;
  log.begin(0, kGranules);
  size_t taken = 0;
  while (taken < 1'000'000 && log.take(read_by(0), offsets_from(1024, 4), 4)) ++taken;
  EXPECT_LT(taken, 1'000'000u);
  EXPECT_EQ(warps_in(log).size(), taken);
  EXPECT_TRUE(log.take(read_by(0), offsets_from(1024, 4), 4));
}

}  // namespace
}  // namespace ptxsim::check
