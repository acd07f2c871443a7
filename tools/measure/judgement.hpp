// What a measured time may be used for: pure rules, shared by `dualgemm bench` and bench_cpu.
#pragma once

#include <string>

#include "tools/measure/quiet_runner.hpp"

namespace dualgemm::measure {

// Quiet samples that a time needs before it is compared with another one. Two cannot say which of
// them is the odd one; a quartile of fewer than three is one of the samples themselves.
inline constexpr int kEnoughSamples = 3;

// Whether `result` may be ranked, divided by another time, or held against a bar.
bool is_settled(const QuietResult& result) noexcept;

// "1.3", in per cent; "n/a (1)": too few samples for a spread, and how many there are.
std::string noise_text(const QuietResult& result);

// "2 quiet samples; 3 are needed"; empty when the result is settled.
std::string why_unsettled(const QuietResult& result);

// Nothing is faster than the machine: a share above 1 says that the peak was measured wrongly (on
// a disturbed machine, or for another kind of work), not that the work is good.
bool is_defect(double share) noexcept;

// "87.3", in per cent; "-" when unknown (0); "> 100 ?" for a defect.
std::string share_text(double share);

// Whether two times lie closer together than the larger of their relative spreads.
struct SpreadTime {
  double seconds, relative_spread;
};
bool within_noise(const SpreadTime& x, const SpreadTime& y) noexcept;

}  // namespace dualgemm::measure
