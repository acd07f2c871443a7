#include "tools/measure/peaks.hpp"

#include <gtest/gtest.h>

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
  }
#if defined(__x86_64__)
  EXPECT_EQ(peaks.avx2_block_gops > 0, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(peaks.vnni_zmm_gops > 0, __builtin_cpu_supports("avx512vnni") != 0);
#elif defined(__aarch64__)
  EXPECT_GT(peaks.fma_neon_gflops, 0);
#endif
}

TEST(Peaks, SkippedBandwidthIsAbsentAndNotZeroDivided) {
  EXPECT_EQ(measure_peaks(1, kShort).read_gbps, 0);
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
