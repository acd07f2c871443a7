#include "timing/launch_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ptxsim::timing {
namespace {

// Limits of an SM of sm_90 and sm_100 (CUDA C++ Programming Guide, "Compute Capabilities").
constexpr uint64_t kSharedOfSm = 228 * 1024, kReservedOfCta = 1024, kThreadsOfSm = 2048,
                   kMostCtas = 32;

// Registers are not known: ptxas divides them.
uint64_t ctas_per_sm(const Program& program, const Launch& launch) {
  const uint64_t shared =
      program.static_shared_bytes + launch.dynamic_shared_bytes + kReservedOfCta;
  const uint64_t threads = (volume(launch.block) + kWarpSize - 1) / kWarpSize * kWarpSize;
  return std::max<uint64_t>(1, std::min({kSharedOfSm / shared, kThreadsOfSm / threads, kMostCtas}));
}

}  // namespace

LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   Recording& recording) {
  const uint64_t whole_clusters = volume(launch.grid) / volume(launch.cluster);
  const auto clusters = static_cast<double>(whole_clusters);
  count_memory_once(recording, memory, clusters);
  LaunchWork work;
  work.name = program.entry->name;
  work.clusters = clusters;
  work.ctas_per_cluster = static_cast<double>(volume(launch.cluster));
  work.ctas_per_sm = static_cast<double>(ctas_per_sm(program, launch));
  for (RecordedCluster& cluster : recording.clusters)
    work.classes.push_back({fmt::format("cluster {}", cluster.index), std::move(cluster.work)});
  return work;
}

}  // namespace ptxsim::timing
