// What measured times say about each other: pure rules, shared by `dualgemm bench` and bench_cpu.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/rounds.hpp"

namespace dualgemm::measure {

// The time of x over that of y in each round that both were in.
std::vector<double> round_ratios(const CaseTimes& x, const CaseTimes& y);

// A difference that is smaller is not said to be one, however sure it is: where operands happen to
// lie in memory makes as much.
inline constexpr double kResolution = 0.005;

enum class Comparison { kFaster, kSlower, kTied };

// How two cases compare, from the interval of the first one's time over the second one's. Tied: the
// interval holds 1, or a value within kResolution of it, or is not known.
Comparison compare(const Interval& ratio) noexcept;

// Samples that a spread needs: a quartile of fewer is one of the samples themselves.
inline constexpr int kSamplesOfASpread = 3;

// "1.3", in per cent; "n/a (1)": too few samples for a spread, and how many there are.
std::string noise_text(const CaseTimes& times);

// "1.93 .. 2.06"; "?": not known.
std::string interval_text(const Interval& interval);

// Nothing is faster than the machine: a share above 1 says that the peak was measured wrongly (on
// a disturbed machine, or for another kind of work), not that the work is good.
bool is_defect(double share) noexcept;

// "87.3", in per cent; "-" when unknown (0); "> 100 ?" for a defect.
std::string share_text(double share);

}  // namespace dualgemm::measure
