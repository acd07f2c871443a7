// A kernel launch as the interpreter takes it, and how it is to be run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"
#include "ptxsim/machine/grid_trail.hpp"

namespace ptxsim {

using Dim3 = std::array<uint32_t, 3>;  // x y z
inline uint64_t volume(const Dim3& d) { return uint64_t{d[0]} * d[1] * d[2]; }

// A grid that runs before this one and overlaps it (programmatic dependent launch): until
// griddepcontrol.wait it may still write and read these buffers, given by name.
struct PreviousGrid {
  std::vector<std::string> writes, reads;
};

struct Launch {
  Dim3 grid{1, 1, 1};     // CTAs
  Dim3 block{1, 1, 1};    // threads of a CTA, by CUDA's name for it
  Dim3 cluster{1, 1, 1};  // CTAs
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> params;   // laid out as the kernel's parameters are
  PreviousGrid previous_grid;    // nothing: the launch waits for whatever was before
  EarlierGrids earlier_grids{};  // the same, as they were interpreted
};

// The %tid of a thread, from its number in the CTA.
inline Dim3 thread_index(const Launch& launch, uint32_t thread) {
  const Dim3& b = launch.block;
  return {thread % b[0], thread / b[0] % b[1], thread / b[0] / b[1]};
}

struct Program;
// Throws Fault (kInput) for what cannot be launched. An entry with .reqnctapercluster sets the
// cluster when the launch has none.
void check_launch(const Program& program, Launch& launch);
// Loads that are volatile, relaxed or acquire: without one a kernel cannot wait for a store.
bool has_strong_loads(const Program& program);

// When an asynchronous operation completes, and which warp goes on.
enum class Schedule : uint8_t {
  kEager,   // asynchronous operations complete at once; warps in turn
  kLazy,    // they complete only when no warp can go on, in a random order
  kRandom,  // both at random
};

enum class MmaMode : uint8_t {
  kExact,    // the model of the hardware's alignment and truncation
  kRounded,  // FP32 products and sums: for exploring schedules, where values matter less
};

struct Suppression;

// What an SM holds at once; by default Hopper's and datacenter Blackwell's.
struct SmLimits {
  uint32_t threads = 2048, ctas = 32;
  uint32_t shared_bytes = 228 * 1024;  // 1 KiB of it reserved for each CTA
};

// How far a launch has come.
struct Progress {
  uint64_t warp_instructions = 0;
  Place place;  // of a warp that has not ended
};

struct Options {
  Schedule schedule = Schedule::kEager;
  uint64_t seed = 1;
  bool sanitize = true;      // run() attaches the sanitizer; handlers warn of what is doubtful
  bool check_global = true;  // the sanitizer follows global memory too (R17 .. R22)
  bool strict = false;       // advisories and warnings count as errors
  bool check_uninitialized = true;  // reads of unwritten shared and global memory are errors
  MmaMode mma = MmaMode::kExact;
  uint64_t max_warp_instructions = 2'000'000'000;
  double max_seconds = 0;          // of a launch; 0: no limit
  uint32_t resident_clusters = 4;  // how many run at the same time
  // More of them, up to what the SMs hold, start where those that run do not end: CTAs of a grid
  // that a GPU holds at once may wait for each other.
  bool admits_more = false;
  SmLimits sm = {};
  uint32_t most_clusters = UINT32_MAX;  // at once, however many fit
  // No more clusters of a launch than these are run, spread evenly over it; the others never are,
  // and nothing is written in their place. 0: all.
  uint32_t sample = 0;
  uint32_t num_sms = 148;  // %nsmid
  // clusterlaunchcontrol finds no cluster that waits, as on a GPU that has room for all of them.
  bool all_clusters_started = false;
  // Another thread or a signal handler sets it: the run ends within a few turns of its warps, with
  // ErrorKind::kStopped and all reports so far.
  const std::atomic<bool>* stop = nullptr;
  // Called at the start of the main loop and about every million warp instructions from then on;
  // nothing: not called.
  std::function<void(const Progress&)> on_progress = {};
  bool keep_trail = false;        // for the grids that may overlap this one; needs the sanitizer
  uint64_t heap_bytes = 8 << 20;  // of malloc in kernels (CUDA: cudaLimitMallocHeapSize)
  // Findings that are known and no news: run() puts them aside (suppressions.hpp).
  std::shared_ptr<const std::vector<Suppression>> suppressions = {};
};

}  // namespace ptxsim
