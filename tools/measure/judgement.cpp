#include "tools/measure/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dualgemm::measure {

bool is_settled(const QuietResult& result) noexcept {
  return result.median_seconds > 0 && result.quiet_samples >= kEnoughSamples;
}

std::string noise_text(const QuietResult& result) {
  if (result.samples < kEnoughSamples) return fmt::format("n/a ({})", result.samples);
  return fmt::format("{:.1f}", 100 * result.relative_spread);
}

std::string why_unsettled(const QuietResult& result) {
  if (is_settled(result)) return {};
  return fmt::format("{} quiet sample{}; {} are needed", result.quiet_samples,
                     result.quiet_samples == 1 ? "" : "s", kEnoughSamples);
}

bool is_defect(double share) noexcept { return share > 1; }

std::string share_text(double share) {
  if (is_defect(share)) return "> 100 ?";
  return share > 0 ? fmt::format("{:.1f}", 100 * share) : "-";
}

bool within_noise(const SpreadTime& x, const SpreadTime& y) noexcept {
  const double apart = std::abs(x.seconds - y.seconds);
  return apart <= std::min(x.seconds, y.seconds) * std::max(x.relative_spread, y.relative_spread);
}

}  // namespace dualgemm::measure
