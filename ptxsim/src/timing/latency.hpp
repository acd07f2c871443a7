// How long a warp waits for results: which latencies one after the other. Kept as numbers of
// latencies, not as a time, so that one recording serves every GPU and every draw of its
// parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "timing/parameters.hpp"

namespace ptxsim::timing {

// From the issue of an instruction to that of the next one that uses its result.
enum class Latency : uint8_t {
  kAlu,       // integers, logic, comparisons, conversions to floating point
  kFma,       // FP32, and integer multiply-add
  kDouble,    // FP64
  kFunction,  // special functions, and conversions to integers
  kShared,    // loads of shared memory
  kConflict,  // each further access that a bank has to do for the same load
  kL1,        // loads that hit L1
  kShuffle,
  kVote,     // votes, matches
  kMmaSync,  // mma.sync of 16 x 8 x 16
  kBranch,   // back to the beginning of a loop
  kClk,      // one clk each: what expansions of an instruction take (expansion.hpp)
  kCount
};
inline constexpr size_t kNumLatencies = static_cast<size_t>(Latency::kCount);

struct Chain {
  std::array<float, kNumLatencies> of{};

  Chain& operator+=(const Chain& more) {
    for (size_t i = 0; i < kNumLatencies; ++i) of[i] += more.of[i];
    return *this;
  }
  Chain& add(Latency latency, double times = 1) {
    of[static_cast<size_t>(latency)] += static_cast<float>(times);
    return *this;
  }
};

double microseconds(const Chain& chain, const Values& values);
// On a GPU of no particular kind: tells which of two chains is the longer.
double nominal_clk(const Chain& chain);

}  // namespace ptxsim::timing
