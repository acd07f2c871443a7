#include "timing/launch_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "ir/register_need.hpp"

namespace ptxsim::timing {
namespace {

// CTAs of an SM read much in common: each finds what it uses again as if so many had L1 in turns.
constexpr double kShareL1 = 2;
constexpr double kReservedOfCta = 1024, kRegistersOfSm = 65536, kRegisterStep = 8;

// The line of atomics that takes longest when the whole grid does as the recorded clusters: one
// that several of them use is taken for one that all use.
double busiest_line(const Recording& recording, double clusters) {
  std::unordered_map<uint64_t, std::pair<double, int>> lines;
  for (const RecordedCluster& cluster : recording.clusters)
    for (const auto& [line, atomics] : cluster.atomics) {
      lines[line].first += atomics;
      ++lines[line].second;
    }
  double longest = 0;
  for (const auto& [line, sum] : lines) {
    const auto& [atomics, users] = sum;
    const double all = users > 1 || clusters == 1
                           ? atomics / static_cast<double>(recording.clusters.size()) * clusters
                           : atomics;
    longest = std::max(longest, all);
  }
  return longest;
}

}  // namespace

SmShare share_of(const Program& program, const Launch& launch, const Values& gpu) {
  const auto shared =
      static_cast<double>(program.static_shared_bytes + launch.dynamic_shared_bytes);
  const uint64_t whole_warps = (volume(launch.block) + kWarpSize - 1) / kWarpSize * kWarpSize;
  const auto threads = static_cast<double>(whole_warps);
  const double registers =
      std::ceil(registers_needed(program) / kRegisterStep) * kRegisterStep * threads;
  SmShare share;
  share.ctas_per_sm = std::max(
      1.0, std::floor(std::min({at(gpu, Parameter::kSharedOfSm) * 1024 / (shared + kReservedOfCta),
                                at(gpu, Parameter::kThreadsOfSm) / threads,
                                kRegistersOfSm / registers, at(gpu, Parameter::kCtasOfSm)})));
  share.l1_bytes = std::max(
      0.0, at(gpu, Parameter::kL1Bytes) * 1024 / std::min(share.ctas_per_sm, kShareL1) - shared);
  return share;
}

LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   double ctas_per_sm, Recording& recording) {
  const uint64_t whole_clusters = volume(launch.grid) / volume(launch.cluster);
  const auto clusters = static_cast<double>(whole_clusters);
  LaunchWork work;
  work.footprint_bytes = count_memory_once(recording, memory, clusters);
  work.atomics_of_a_line = busiest_line(recording, clusters);
  work.is_recorded = true;
  work.name = program.entry->name;
  work.clusters = clusters;
  work.ctas_per_cluster = static_cast<double>(volume(launch.cluster));
  work.ctas_per_sm = ctas_per_sm;
  double slots = 0, unknown = 0;
  for (RecordedCluster& cluster : recording.clusters) {
    slots += cluster.slots;
    work.has_roles |= cluster.has_roles;
    work.is_narrow |= cluster.is_narrow;
    unknown += cluster.unknown_slots;
    work.classes.push_back({fmt::format("cluster {}", cluster.index), std::move(cluster.work)});
  }
  work.unknown_part = slots > 0 ? unknown / slots : 0;
  return work;
}

}  // namespace ptxsim::timing
