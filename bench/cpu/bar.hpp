// A figure that the benchmark holds against a bound, and when it may not be judged.
#pragma once

#include <string>

#include "tools/measure/judgement.hpp"

namespace dualgemm::bench {

enum class Verdict { kMet, kNotMet, kNotJudged };

struct Bar {
  std::string what;  // "M=512: share of VNNI peak"
  double value, bound;
  bool at_least;          // false: at most
  bool is_share = false;  // of a measured peak: above 1 it is a defect of the measurement
  bool settled = true;    // every time behind it has enough quiet samples

  Verdict verdict() const {
    if (!settled || (is_share && measure::is_defect(value))) return Verdict::kNotJudged;
    return (at_least ? value >= bound : value <= bound) ? Verdict::kMet : Verdict::kNotMet;
  }
  // Why there is no verdict.
  std::string why() const {
    if (verdict() != Verdict::kNotJudged) return {};
    return settled ? "above 100 % of a peak: a defect of the measurement" : "too few quiet samples";
  }
};

inline const char* name_of(Verdict verdict) {
  return verdict == Verdict::kMet ? "yes" : verdict == Verdict::kNotMet ? "no" : "not judged";
}

}  // namespace dualgemm::bench
