#include "timing/launch_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "insn/register_need.hpp"

namespace ptxsim::timing {
namespace {

// Limits of an SM of sm_90 and sm_100 (CUDA C++ Programming Guide, "Compute Capabilities").
constexpr uint64_t kSharedOfSm = 228 * 1024, kReservedOfCta = 1024, kThreadsOfSm = 2048,
                   kMostCtas = 32, kRegistersOfSm = 65536, kRegisterStep = 8;

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

double ctas_per_sm(const Program& program, const Launch& launch) {
  const uint64_t shared =
      program.static_shared_bytes + launch.dynamic_shared_bytes + kReservedOfCta;
  const uint64_t threads = (volume(launch.block) + kWarpSize - 1) / kWarpSize * kWarpSize;
  const uint64_t registers =
      (registers_needed(program) + kRegisterStep - 1) / kRegisterStep * kRegisterStep * threads;
  return static_cast<double>(
      std::max<uint64_t>(1, std::min({kSharedOfSm / shared, kThreadsOfSm / threads,
                                      kRegistersOfSm / registers, kMostCtas})));
}

LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   Recording& recording) {
  const uint64_t whole_clusters = volume(launch.grid) / volume(launch.cluster);
  const auto clusters = static_cast<double>(whole_clusters);
  LaunchWork work;
  work.footprint_bytes = count_memory_once(recording, memory, clusters);
  work.atomics_of_a_line = busiest_line(recording, clusters);
  work.is_recorded = true;
  work.name = program.entry->name;
  work.clusters = clusters;
  work.ctas_per_cluster = static_cast<double>(volume(launch.cluster));
  work.ctas_per_sm = ctas_per_sm(program, launch);
  double slots = 0, unknown = 0;
  for (RecordedCluster& cluster : recording.clusters) {
    slots += cluster.slots;
    unknown += cluster.unknown_slots;
    work.classes.push_back({fmt::format("cluster {}", cluster.index), std::move(cluster.work)});
  }
  work.unknown_part = slots > 0 ? unknown / slots : 0;
  return work;
}

}  // namespace ptxsim::timing
