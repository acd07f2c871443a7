#include "tools/measure/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dualgemm::measure {

std::vector<double> round_ratios(const CaseTimes& x, const CaseTimes& y) {
  std::vector<double> ratios;
  for (size_t round = 0; round < std::min(x.rounds.size(), y.rounds.size()); ++round) {
    if (x.rounds[round] > 0 && y.rounds[round] > 0)
      ratios.push_back(x.rounds[round] / y.rounds[round]);
  }
  return ratios;
}

Comparison compare(const Interval& ratio) noexcept {
  if (!ratio.known()) return Comparison::kTied;
  if (ratio.low > 1 + kResolution) return Comparison::kSlower;
  return ratio.high < 1 / (1 + kResolution) ? Comparison::kFaster : Comparison::kTied;
}

std::string noise_text(const CaseTimes& times) {
  if (times.samples < kSamplesOfASpread) return fmt::format("n/a ({})", times.samples);
  return fmt::format("{:.1f}", 100 * times.relative_spread);
}

std::string interval_text(const Interval& interval) {
  return interval.known() ? fmt::format("{:.2f} .. {:.2f}", interval.low, interval.high) : "?";
}

bool is_defect(double share) noexcept { return share > 1; }

std::string share_text(double share) {
  if (is_defect(share)) return "> 100 ?";
  return share > 0 ? fmt::format("{:.1f}", 100 * share) : "-";
}

}  // namespace dualgemm::measure
