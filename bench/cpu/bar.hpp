// A figure that the benchmark holds against a bound, and when it may not be judged.
#pragma once

#include <string>

#include "tools/measure/judgement.hpp"

namespace dualgemm::bench {

enum class Verdict { kMet, kNotMet, kNotJudged };

struct Bar {
  std::string what;         // "M=512: share of VNNI peak"
  measure::Estimate value;  // over the rounds
  double bound;
  bool at_least;          // false: at most
  bool is_share = false;  // of a measured peak: above 1 it is a defect of the measurement

  bool is_defect() const { return is_share && measure::is_defect(value.value); }
  // Judged where the whole interval lies on one side of the bound.
  Verdict verdict() const {
    if (is_defect() || !value.interval.known()) return Verdict::kNotJudged;
    const auto is_right = [&](double figure) {
      return at_least ? figure >= bound : figure <= bound;
    };
    const bool low_is_right = is_right(value.interval.low);
    if (low_is_right != is_right(value.interval.high)) return Verdict::kNotJudged;
    return low_is_right ? Verdict::kMet : Verdict::kNotMet;
  }
  // Why there is no verdict.
  std::string why() const {
    if (verdict() != Verdict::kNotJudged) return {};
    if (is_defect()) return "above 100 % of a peak: a defect of the measurement";
    return value.interval.known() ? "the interval holds the bound" : "one round has no interval";
  }
};

inline const char* name_of(Verdict verdict) {
  return verdict == Verdict::kMet ? "yes" : verdict == Verdict::kNotMet ? "no" : "not judged";
}

}  // namespace dualgemm::bench
