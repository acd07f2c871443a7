// What the machine offers, asked from the operating system and the processor.
#pragma once

#include <string>

#include "dualgemm/types.hpp"

namespace dualgemm::cpu {

// Never fails: what cannot be found out keeps DeviceCaps' careful defaults.
DeviceCaps detect_device_caps();

// Cores that the CPU bandwidth limits of the process's control groups allow, rounded down but at
// least 1; INT_MAX without a limit. Both versions of control groups are read, with all ancestors:
//   v2  <cgroup_root>/<path>/cpu.max           "<quota|max> <period>"
//   v1  <cgroup_root>/cpu/<path>/cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us
// cgroup_file: /proc/self/cgroup, cgroup_root: /sys/fs/cgroup; parameters for the tests' sake.
int quota_cores(const std::string& cgroup_file, const std::string& cgroup_root);

}  // namespace dualgemm::cpu
