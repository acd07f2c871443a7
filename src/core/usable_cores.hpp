// How many threads a call should use: what the operating system allows and the user asks for.
#pragma once

#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::core {

// Cores that the calling thread may run on (its affinity mask) within the CPU bandwidth limits of
// the process's control groups, which are read once.
int usable_cores() noexcept;

// The default number of threads: usable_cores(), or fewer if DUALGEMM_NUM_THREADS or, where that is
// not set, OMP_NUM_THREADS says so.
Expected<int> default_threads();

// The same for given values of the two variables; null or empty: not set. OpenMP allows a list, one
// number for each level of nesting; the first one counts.
Expected<int> bounded_threads(int cores, const char* dualgemm_num_threads,
                              const char* omp_num_threads);

// Cores that the CPU bandwidth limits of the process's control groups allow, rounded down but at
// least 1; INT_MAX without a limit. Both versions of control groups are read, with all ancestors:
//   v2  <cgroup_root>/<path>/cpu.max           "<quota|max> <period>"
//   v1  <cgroup_root>/cpu/<path>/cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us
// Rounded down, because a team that exceeds its quota is stopped as a whole until the period ends.
// cgroup_file: /proc/self/cgroup, cgroup_root: /sys/fs/cgroup; parameters for the tests' sake.
int quota_cores(const std::string& cgroup_file, const std::string& cgroup_root);

}  // namespace dualgemm::core
