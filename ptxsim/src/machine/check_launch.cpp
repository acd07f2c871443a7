// What a launch must satisfy before anything is laid out for it: the limits of CUDA (CUDA C++
// Programming Guide, "Compute Capabilities"), of the entry, and of the interpreter's memory.
#include <fmt/format.h>

#include <algorithm>

#include "machine/registers/call_stack.hpp"
#include "ptxsim/error.hpp"
#include "ptxsim/ir/program.hpp"
#include "ptxsim/machine/launch.hpp"
#include "ptxsim/machine/memory.hpp"

namespace ptxsim {
namespace {

constexpr Dim3 kMaxGrid{0x7fffffff, 65535, 65535};
constexpr Dim3 kMaxBlock{1024, 1024, 64};
constexpr Dim3 kMaxCluster{16, 16, 16};
constexpr uint64_t kMaxClusters = 1u << 24;           // those that wait are kept in a list
constexpr uint64_t kMaxConstBytes = 11 * (64 << 10);  // PTX ISA, "Constant State Space"
constexpr uint64_t kMaxGlobalBytes = uint64_t{1} << 30;

[[noreturn]] void refuse(const std::string& message) { throw Fault(message, ErrorKind::kInput); }

std::string text_of(const Dim3& d) { return fmt::format("{}x{}x{}", d[0], d[1], d[2]); }

// Bounds each extent, so that no volume overflows.
void check_extents(const char* what, const Dim3& extents, const Dim3& most) {
  for (int i = 0; i < 3; ++i)
    if (extents[i] < 1 || extents[i] > most[i])
      refuse(fmt::format("{} {}; every extent must be at least 1, and at most {}", what,
                         text_of(extents), text_of(most)));
}

void check_block(const Entry& entry, const Dim3& block) {
  check_extents("block", block, kMaxBlock);
  if (volume(block) > 1024)
    refuse(fmt::format("block {}: {} threads; at most 1024", text_of(block), volume(block)));
  if (entry.reqntid[0] != 0 && block != Dim3(entry.reqntid))
    refuse(fmt::format("block {}; the entry requires {}", text_of(block), text_of(entry.reqntid)));
  if (entry.maxntid[0] == 0) return;
  uint64_t most = 1;
  for (uint32_t extent : entry.maxntid) most *= std::min<uint64_t>(extent, 1024);
  if (volume(block) > most)
    refuse(fmt::format("block {} has {} threads; .maxntid allows {}", text_of(block), volume(block),
                       most));
}

void check_cluster(const Entry& entry, Launch& launch) {
  check_extents("grid", launch.grid, kMaxGrid);
  check_extents("cluster", launch.cluster, kMaxCluster);
  if (entry.reqnctapercluster[0] != 0) {
    const Dim3 required = entry.reqnctapercluster;
    if (volume(launch.cluster) == 1) launch.cluster = required;
    if (launch.cluster != required)
      refuse(fmt::format("cluster {}; the entry requires {}", text_of(launch.cluster),
                         text_of(required)));
    check_extents("cluster", launch.cluster, kMaxCluster);
  }
  for (int i = 0; i < 3; ++i)
    if (launch.grid[i] % launch.cluster[i] != 0)
      refuse(fmt::format("grid {} is not a multiple of cluster {}", text_of(launch.grid),
                         text_of(launch.cluster)));
  if (volume(launch.cluster) > 16)
    refuse(fmt::format("cluster {} has {} CTAs; at most 16", text_of(launch.cluster),
                       volume(launch.cluster)));
  const uint64_t clusters = volume(launch.grid) / volume(launch.cluster);
  if (clusters > kMaxClusters)
    refuse(fmt::format("{} clusters; at most {}", clusters, kMaxClusters));
}

void check_memory(const Program& program, const Launch& launch) {
  const uint64_t shared = kSharedBegin + program.static_shared_bytes + launch.dynamic_shared_bytes;
  if (shared > kMaxSharedBytes)
    refuse(fmt::format("{} bytes of static and {} of dynamic shared memory; at most {} together",
                       program.static_shared_bytes, launch.dynamic_shared_bytes,
                       kMaxSharedBytes - kSharedBegin));
  if (program.entry->local_bytes > kMaxLocalBytes)
    refuse(fmt::format("{} bytes of local memory for each thread; at most {}",
                       program.entry->local_bytes, kMaxLocalBytes));
  uint64_t constant = 0, global = 0;
  for (const Variable& variable : program.entry->variables) {
    if (variable.space == Space::kConst) constant += variable.bytes;
    if (variable.space == Space::kGlobal) global += variable.bytes;
  }
  if (constant > kMaxConstBytes)
    refuse(fmt::format("{} bytes of .const variables; at most {}", constant, kMaxConstBytes));
  if (global > kMaxGlobalBytes)
    refuse(fmt::format("{} bytes of .global variables; at most {}", global, kMaxGlobalBytes));
}

}  // namespace

bool has_strong_loads(const Program& program) {
  return std::ranges::any_of(program.traits, [](const Traits& traits) {
    return traits.has(Trait::kReads) && traits.has(Trait::kStrong);
  });
}

void check_launch(const Program& program, Launch& launch) {
  const Entry& entry = *program.entry;
  check_block(entry, launch.block);
  check_cluster(entry, launch);
  if (launch.params.size() != entry.param_bytes)
    refuse(fmt::format("{} bytes of parameters; entry '{}' has {}", launch.params.size(),
                       entry.name, entry.param_bytes));
  check_memory(program, launch);
}

}  // namespace ptxsim
