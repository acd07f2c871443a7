#include "timing/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <utility>

namespace ptxsim::timing {
namespace {

double slots_of(const LaunchWork& work, const Values& values) {
  const double ctas = at(values, Parameter::kNumSms) * work.ctas_per_sm;
  return std::max(1.0, std::floor(ctas / work.ctas_per_cluster));
}

// The class that takes longest when `clusters` run at the same time.
std::pair<size_t, Timeline> slowest(const LaunchWork& work, const Values& values, double clusters) {
  std::pair<size_t, Timeline> longest;
  for (size_t i = 0; i < work.classes.size(); ++i) {
    Timeline line = schedule(work.classes[i].work, values, clusters);
    if (i == 0 || line.end > longest.second.end) longest = {i, std::move(line)};
  }
  return longest;
}

}  // namespace

LaunchTime time_of(const LaunchWork& work, const Values& values) {
  LaunchTime time;
  const double slots = slots_of(work, values);
  time.waves = static_cast<uint32_t>(std::ceil(work.clusters / slots));
  std::tie(time.slowest, time.timeline) = slowest(work, values, std::min(work.clusters, slots));
  time.first_wave = time.timeline.end;
  // Later waves begin where others end: no start of a grid, a switch between tiles instead.
  Values later = values;
  at(later, Parameter::kSetup) = at(later, Parameter::kFirstLoadExtra) = 0;
  const double rest = work.clusters - (time.waves - 1) * slots;
  if (time.waves > 2)
    time.later_waves = (time.waves - 2) * (slowest(work, later, slots).second.end +
                                           at(values, Parameter::kTileSwitch));
  if (time.waves > 1)
    time.later_waves += slowest(work, later, rest).second.end + at(values, Parameter::kTileSwitch);
  time.gap = at(values, work.dependent_launch ? Parameter::kPdlGap : Parameter::kLaunchGap);
  time.exit = at(values, Parameter::kExit);
  time.other = work.other_us;
  time.total = time.gap + time.first_wave + time.later_waves + time.exit + time.other;
  return time;
}

Interval interval_of(const LaunchWork& work, const GpuParameters& gpu, uint32_t draws,
                     uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> totals;
  for (uint32_t i = 0; i < draws; ++i) {
    Values values{};
    for (size_t p = 0; p < kNumParameters; ++p) {
      // 53 bits, by hand: the standard's distributions differ between libraries.
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      values[p] = gpu.known[p].low + part * (gpu.known[p].high - gpu.known[p].low);
    }
    at(values, Parameter::kNumSms) = std::round(at(values, Parameter::kNumSms));
    totals.push_back(time_of(work, values).total);
  }
  if (totals.empty()) return {};
  std::sort(totals.begin(), totals.end());
  const auto quantile = [&](double part) {
    return totals[static_cast<size_t>(std::lround(part * static_cast<double>(totals.size() - 1)))];
  };
  return {quantile(0.05), quantile(0.5), quantile(0.95), draws};
}

}  // namespace ptxsim::timing
