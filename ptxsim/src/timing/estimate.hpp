// How long a launch takes: the gap before it, its waves of clusters, its exit; with an interval
// from drawing the parameters within what is known of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timing/critical_path.hpp"
#include "timing/parameters.hpp"
#include "timing/work.hpp"

namespace ptxsim::timing {

// Clusters that do the same amount of work, and the work of one of them.
struct TileClass {
  std::string name;
  Work work;
};

struct LaunchWork {
  std::string name;
  std::vector<TileClass> classes;  // at least one
  double clusters = 1;             // of the grid
  double ctas_per_cluster = 1;
  double ctas_per_sm = 1;
  bool dependent_launch = false;  // programmatic: the gap is kPdlGap
  bool in_graph = false;          // the launches before and after are of the same graph
  bool is_recorded = false;       // of a kernel that was run, not described
  bool is_narrow = false;         // its tensor cores multiply 4-bit operands
  bool has_roles = false;         // its warps issue bulk copies or asynchronous MMAs
  // What L2 can hold of it is there from the launch before; else nothing is.
  bool is_warm = false;
  double footprint_bytes = 0;    // of the buffers that it uses
  double atomics_of_a_line = 0;  // of the line of memory with the most of them, one after another
  double unknown_part = 0;       // of its instructions: the clock does not know what they take
  double other_us = 0;           // added to the total
};

// us.
struct LaunchTime {
  double total = 0;  // from one launch to the next in a stream
  double gap = 0, exit = 0, other = 0;
  double atomics = 0;  // that one line of memory takes longer than all else
  double power = 0;    // that the multiplications take longer at the GPU's power limit
  double first_wave = 0, later_waves = 0;
  uint32_t waves = 0;
  size_t slowest = 0;  // of the classes
  Timeline timeline;   // of that class, first wave
};
LaunchTime time_of(const LaunchWork& work, const Values& values);

struct Interval {
  double low = 0, median = 0, high = 0;  // 5, 50 and 95 % of the draws
  uint32_t draws = 0;
};
// What the clock does not know of the launch: the part of its instructions that it has no numbers
// for, and the part of the critical path whose numbers are assumed ones.
struct Doubt {
  double unknown_part = 0, assumed_part = 0;
  // Too much of it is unknown for a single number.
  bool is_too_much() const { return unknown_part > kMostUnknown; }
  static constexpr double kMostUnknown = 0.25;
};
Doubt doubt_of(const LaunchWork& work, const GpuParameters& gpu, const std::vector<Share>& path);

// Half of the unknown part is taken from the lower end, and twice of it added to the upper one.
// Every parameter uniformly from its range, independent of the others; the same draws for the same
// seed.
Interval interval_of(const LaunchWork& work, const GpuParameters& gpu, uint32_t draws,
                     uint64_t seed);

}  // namespace ptxsim::timing
