#include "tools/measure/peaks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tools/measure/peaks_loops.hpp"

namespace dualgemm::measure {
namespace {

constexpr PeakOptions kShort{.repetitions = 3, .milliseconds = 1, .read_bytes = 0};

TEST(Peaks, WhatIsMeasuredIsWhatTheMachineSupports) {
  const Peaks peaks = measure_peaks(1, kShort);
  EXPECT_EQ(peaks.threads, 1);
  std::set<std::string> names;
  for (const ArithmeticLoop& loop : supported_arithmetic_loops()) {
    EXPECT_TRUE(names.insert(loop.name).second) << loop.name;
    EXPECT_GT(peaks.*loop.field, 0) << loop.name;
    EXPECT_LT(peaks.*loop.field, 1e5) << loop.name;  // 100 TOP/s on one core: the loop did nothing
  }
#if defined(__x86_64__)
  EXPECT_EQ(peaks.avx2_block_gops > 0, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(peaks.vnni_zmm_gops > 0, __builtin_cpu_supports("avx512vnni") != 0);
#endif
}

TEST(Peaks, SkippedBandwidthIsAbsentAndNotZeroDivided) {
  EXPECT_EQ(measure_peaks(1, kShort).read_gbps, 0);
}

// Arithmetic that must hold on every machine: a block does more than its dot products. Neighbours
// can only lower a peak, so the best of all attempts counts, and a busy machine needs more of them.
TEST(Peaks, CeilingsAreBelowTheirPeaks) {
  constexpr int kFewest = 8, kMost = 60;
  Peaks best;
  const auto holds = [&best] {
    return best.vnni_block_gops < best.vnni_zmm_gops &&
           best.avx2_block_gops < best.avx2_dot_gops * 1.05;
  };
  for (int attempt = 0; attempt < kFewest || (attempt < kMost && !holds()); ++attempt) {
    const Peaks peaks = measure_peaks(1, PeakOptions{.repetitions = 5, .read_bytes = 0});
    if (peaks.vnni_zmm_gops == 0) GTEST_SKIP() << "no AVX-512 VNNI";
    best.vnni_block_gops = std::max(best.vnni_block_gops, peaks.vnni_block_gops);
    best.vnni_zmm_gops = std::max(best.vnni_zmm_gops, peaks.vnni_zmm_gops);
    best.avx2_block_gops = std::max(best.avx2_block_gops, peaks.avx2_block_gops);
    best.avx2_dot_gops = std::max(best.avx2_dot_gops, peaks.avx2_dot_gops);
  }
  EXPECT_LT(best.vnni_block_gops, best.vnni_zmm_gops);
  EXPECT_LT(best.avx2_block_gops, best.avx2_dot_gops * 1.05);
}

TEST(Peaks, ReadCasesCountTheBytesOfTheirBuffer) {
  if (supported_read_loops().empty()) GTEST_SKIP() << "no read loops on this architecture";
  constexpr int64_t kBytes = int64_t{256} << 20;
  const std::vector<PeakCase> cases =
      peak_cases(2, {.repetitions = 1, .milliseconds = 1, .read_bytes = kBytes});
  int reads = 0;
  for (const PeakCase& peak : cases) {
    if (peak.field != &Peaks::read_gbps) continue;
    ++reads;
    EXPECT_NEAR(peak.giga_per_run, kBytes * 1e-9, 2e-5) << peak.name;
    peak.run();
  }
  EXPECT_TRUE(reads == 0 || reads == static_cast<int>(supported_read_loops().size()))
      << reads << " (0: the machine cannot spare the buffer)";
}

}  // namespace
}  // namespace dualgemm::measure
