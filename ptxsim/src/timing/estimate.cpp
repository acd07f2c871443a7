#include "timing/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

namespace ptxsim::timing {
namespace {

double slots_of(const LaunchWork& work, const Values& values) {
  const double ctas = at(values, Parameter::kNumSms) * work.ctas_per_sm;
  return std::max(1.0, std::floor(ctas / work.ctas_per_cluster));
}

// Bytes that a cluster of the class takes of what all share.
double shared_bytes_of(const TileClass& c) {
  double sum = 0;
  for (const Demand& d : c.work.demands)
    if (d.server == Server::kHbm || d.server == Server::kL2 || d.server == Server::kL2Access)
      sum += d.amount;
  return sum;
}

// For the clusters of one class: they share with others that take more or less than they do.
Sharing sharing_of(const LaunchWork& work, size_t number, Sharing sharing) {
  double sum = 0;
  for (const TileClass& c : work.classes) sum += shared_bytes_of(c);
  const double own = shared_bytes_of(work.classes[number]);
  if (own > 0) sharing.clusters *= sum / static_cast<double>(work.classes.size()) / own;
  return sharing;
}

// The class that takes longest.
std::pair<size_t, Timeline> slowest(const LaunchWork& work, const Values& values,
                                    const Sharing& sharing) {
  std::pair<size_t, Timeline> longest;
  for (size_t i = 0; i < work.classes.size(); ++i) {
    Timeline line = schedule(work.classes[i].work, values, sharing_of(work, i, sharing));
    if (i == 0 || line.end > longest.second.end) longest = {i, std::move(line)};
  }
  return longest;
}

double mean_end(const LaunchWork& work, const Values& values, const Sharing& sharing) {
  double sum = 0;
  for (size_t i = 0; i < work.classes.size(); ++i)
    sum += schedule(work.classes[i].work, values, sharing_of(work, i, sharing)).end;
  return sum / static_cast<double>(work.classes.size());
}

constexpr double kLost = 0.3;

// The part of what a launch uses that has left L2 since the launch before: nothing up to what L2
// keeps, all of it from a third more on.
double part_from_memory(const LaunchWork& work, const Values& values) {
  if (!work.is_warm) return 1;
  const double kept = at(values, Parameter::kL2Bytes) * 0x1p20;
  return std::clamp((work.footprint_bytes / kept - 1) / kLost, 0.0, 1.0);
}

// What takes long by itself hides the rest, but not all of it: the third root of the sum of cubes.
double together(std::initializer_list<double> times) {
  double sum = 0;
  for (const double us : times) sum += us * us * us;
  return std::cbrt(sum);
}

// Times at which the warp that has the most waits for others.
double waits_of_a_warp(const Work& work) {
  std::vector<double> waits(work.actors.size());
  for (const Piece& piece : work.pieces)
    if (work.actors[piece.actor].sequence == Sequence::kSerial && piece.num_after > 0)
      ++waits[piece.actor];
  return *std::max_element(waits.begin(), waits.end());
}

// CTAs of one SM that are not in step: while one waits, others use its servers. So each takes as
// long as alone, or as long as all of them keep the busiest server; the more of them there are, the
// less of what they would take in step.
double later_wave(const LaunchWork& work, const Values& later, const Sharing& sharing,
                  double& alone) {
  const double c = sharing.ctas_per_sm, start = at(later, Parameter::kCtaStart);
  const double in_step = mean_end(work, later, sharing);
  alone = mean_end(work, later, {1, 1, sharing.from_memory}) + start;
  double busiest = 0;
  for (const TileClass& k : work.classes) busiest += busiest_server(k.work, later, sharing);
  busiest /= static_cast<double>(work.classes.size());
  const double steady = together({alone, busiest, c * start});
  return steady + std::max(0.0, in_step - steady) / c;
}

// CTAs of an SM begin in step, but for the time that each takes to start, and fall out of it at
// every wait; then it is as in later waves.
double first_wave(const LaunchWork& work, const Values& values, const Sharing& sharing,
                  const LaunchTime& in_step) {
  const double c = sharing.ctas_per_sm;
  const double alone = mean_end(work, values, {1, 1, sharing.from_memory});
  const Work& slowest = work.classes[in_step.slowest].work;
  const double steady = together({alone, busiest_server(slowest, values, sharing)});
  const double begun = 1 / (1 + waits_of_a_warp(slowest));  // of the time, in step
  const double in_step_part = begun + (1 - begun) / c;
  return std::max(steady + std::max(0.0, in_step.timeline.end - steady) * in_step_part,
                  alone + (c - 1) * at(values, Parameter::kCtaStart));
}

// Later waves begin where others end: no start of a grid, a switch between tiles instead.
double later_waves(const LaunchWork& work, const Values& values, const Sharing& sharing,
                   double slots, uint32_t waves) {
  Values later = values;
  at(later, Parameter::kSetup) = at(later, Parameter::kFirstLoadExtra) =
      at(later, Parameter::kStart) = 0;
  if (sharing.ctas_per_sm > 1) {
    double alone = 0;
    const double wave = later_wave(work, later, sharing, alone);
    return std::max(alone, (work.clusters / slots - 1) * wave);
  }
  const double change =
      at(values,
         work.is_recorded && work.ctas_per_sm > 1 ? Parameter::kCtaStart : Parameter::kTileSwitch);
  Sharing last = sharing;
  last.clusters = work.clusters - (waves - 1) * slots;
  return (waves - 2) * (slowest(work, later, sharing).second.end + change) +
         slowest(work, later, last).second.end + change;
}

// Multiply-adds of 16 bits of the whole launch. A pair's stand in its first CTA, for each SM.
double macs_of(const LaunchWork& work) {
  double sum = 0;
  for (const TileClass& c : work.classes) {
    double of_first = 0, of_others = 0;
    for (const Demand& d : c.work.demands)
      if (d.server == Server::kTensor || d.server == Server::kMmaSync)
        (d.unit == 0 ? of_first : of_others) += d.amount;
    sum += of_others > 0 ? of_first + of_others : of_first * work.ctas_per_cluster;
  }
  return sum / static_cast<double>(work.classes.size()) * work.clusters;
}

// Bytes of memory of the whole launch.
double memory_of(const LaunchWork& work) {
  double sum = 0;
  for (const TileClass& c : work.classes)
    for (const Demand& d : c.work.demands)
      if (d.server == Server::kHbm) sum += d.amount;
  return sum / static_cast<double>(work.classes.size()) * work.clusters;
}

// us that the GPU needs at its power limit: no more multiplications a second than were seen, and of
// multiplications and memory together no more than takes all of the power.
double least_at_power_limit(const LaunchWork& work, const Values& values, double from_memory) {
  const double macs = macs_of(work) * 1e-6;
  if (!work.is_narrow) return macs / at(values, Parameter::kSustained);
  const double both = macs / at(values, Parameter::kPowerNarrow) +
                      memory_of(work) * from_memory * 1e-6 / at(values, Parameter::kPowerMemory);
  return std::max(macs / at(values, Parameter::kSustainedNarrow), both);
}

}  // namespace

LaunchTime time_of(const LaunchWork& work, const Values& values) {
  LaunchTime time;
  const double slots = slots_of(work, values), sms = at(values, Parameter::kNumSms);
  time.waves = static_cast<uint32_t>(std::ceil(work.clusters / slots));
  Sharing sharing;
  sharing.clusters = std::min(work.clusters, slots);
  // A description has its SM for itself: its numbers are those of all CTAs of one.
  if (work.is_recorded)
    sharing.ctas_per_sm = std::max(1.0, std::ceil(sharing.clusters * work.ctas_per_cluster / sms));
  sharing.from_memory = part_from_memory(work, values);
  std::tie(time.slowest, time.timeline) = slowest(work, values, sharing);
  time.first_wave = time.timeline.end;
  if (sharing.ctas_per_sm > 1) time.first_wave = first_wave(work, values, sharing, time);
  if (time.waves > 1) time.later_waves = later_waves(work, values, sharing, slots, time.waves);
  const double inside = time.first_wave + time.later_waves;
  time.atomics =
      std::max(0.0, work.atomics_of_a_line * at(values, Parameter::kAtomicAddress) * 1e-3 - inside);
  time.power = std::max(
      0.0, least_at_power_limit(work, values, sharing.from_memory) - inside - time.atomics);
  time.gap = at(values, work.dependent_launch ? Parameter::kPdlGap
                        : work.in_graph       ? Parameter::kGraphGap
                                              : Parameter::kLaunchGap);
  time.exit = at(values, Parameter::kExit);
  time.other = work.other_us;
  const double model = !work.is_recorded ? 1
                       : work.has_roles  ? at(values, Parameter::kRoleError)
                                         : at(values, Parameter::kModelError);
  time.total = time.gap + (inside + time.atomics + time.power) * model + time.exit + time.other;
  return time;
}

Doubt doubt_of(const LaunchWork& work, const GpuParameters& gpu, const std::vector<Share>& path) {
  Doubt doubt{.unknown_part = work.unknown_part};
  double all = 0, assumed = 0;
  for (const Share& share : path) {
    all += share.us;
    const std::optional<Parameter> parameter = parameter_of(share.label);
    if (parameter && gpu.known[static_cast<size_t>(*parameter)].kind == "assumed")
      assumed += share.us;
  }
  doubt.assumed_part = all > 0 ? assumed / all : 0;
  return doubt;
}

Interval interval_of(const LaunchWork& work, const GpuParameters& gpu, uint32_t draws,
                     uint64_t seed) {
  std::mt19937_64 first(seed), later(seed + 1);
  std::vector<double> totals;
  for (uint32_t i = 0; i < draws; ++i) {
    Values values{};
    for (size_t p = 0; p < kNumParameters; ++p) {
      // 53 bits, by hand: the standard's distributions differ between libraries.
      const bool is_later = p >= static_cast<size_t>(kFirstOfLater);
      const double part = static_cast<double>((is_later ? later : first)() >> 11) * 0x1p-53;
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
  return {quantile(0.05) * (1 - work.unknown_part / 2), quantile(0.5),
          quantile(0.95) * (1 + 2 * work.unknown_part), draws};
}

}  // namespace ptxsim::timing
