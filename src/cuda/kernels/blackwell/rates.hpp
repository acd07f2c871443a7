// The machine as the models of choice have it: a clock of an SM is their unit of time where they
// count clocks. A means to rank kernels, not a promise.
#pragma once

#include "cuda/machine/b200.hpp"

namespace dualgemm::cuda::blackwell {

inline constexpr double kClocksPerUs = machine::kB200.clocks_per_us.value;

// Down to a multiple of `step`, as docs/kernels/sm100a_pair.md has the rates.
constexpr double rounded_down(double value, int step) {
  const int whole = static_cast<int>(value);
  return static_cast<double>(whole - whole % step);
}

// A clock, of all SMs together; into one SM; out of the L2 cache.
inline constexpr double kHbmBytesPerClock = machine::kB200.hbm_bytes_per_us.value / kClocksPerUs;
inline constexpr double kPortBytesPerClock =
    rounded_down(machine::kB200.ingest_bytes_per_us.value / kClocksPerUs, 1);
inline constexpr double kL2BytesPerClock =
    rounded_down(machine::kB200.l2_bytes_per_us.value / kClocksPerUs, 100);
static_assert(kHbmBytesPerClock == 3750 && kPortBytesPerClock == 112 && kL2BytesPerClock == 12'600);

inline constexpr double kSharedBytesPerClock = machine::kB200.shared_bytes_per_clock.value;
inline constexpr double kMmaReadBytes = 128 * 32;  // of A, by an MMA of 128 rows and K = 64

// One turn of a ring of stages in which 64 KB are in flight: on each of 148 SMs that gives 6.3
// TB/s.
inline constexpr double kTurnUs = 1.5;

}  // namespace dualgemm::cuda::blackwell
