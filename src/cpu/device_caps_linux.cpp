#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cpu/device_caps.hpp"

namespace dualgemm::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int whole_cores(double quota, double period) {
  if (!(quota > 0.0) || !(period > 0.0)) return INT_MAX;
  return static_cast<int>(std::clamp(quota / period, 1.0, 1.0 * INT_MAX));
}

int cores_v2(const std::string& directory) {
  std::istringstream line(first_line(directory + "/cpu.max"));
  std::string quota;
  double period = 0.0;
  if (!(line >> quota >> period) || quota == "max") return INT_MAX;
  return whole_cores(std::strtod(quota.c_str(), nullptr), period);
}

int cores_v1(const std::string& directory) {
  const std::string quota = first_line(directory + "/cpu.cfs_quota_us");
  const std::string period = first_line(directory + "/cpu.cfs_period_us");
  return whole_cores(std::strtod(quota.c_str(), nullptr), std::strtod(period.c_str(), nullptr));
}

// The least that `cores` says of root + path and of each directory above it up to root. In a
// container the path may name a directory that is not visible; root itself still counts then.
template <class Cores>
int least_of_ancestors(const std::string& root, std::string path, Cores cores) {
  int least = cores(root);
  while (!path.empty() && path != "/") {
    least = std::min(least, cores(root + path));
    path.erase(path.find_last_of('/'));
  }
  return least;
}

int affinity_cores() {
  for (int cpus = 1024; cpus <= (1 << 20);
       cpus *= 2) {  // the kernel says when the set is too small
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
      if (begin != std::string::npos) return line.substr(begin);
    }
  }
  return "unknown CPU";
}

int64_t cache_bytes(int sysconf_name, int64_t otherwise) {
  const long bytes = sysconf(sysconf_name);
  return bytes > 0 ? bytes : otherwise;
}

#if defined(__x86_64__)
// AMX state is large, so the kernel saves it only for processes that have asked
// (Documentation/arch/x86/xstate.rst). Also asks.
bool amx_permitted() {
  constexpr long kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

// Best first. __builtin_cpu_supports also checks that the operating system saves the registers.
std::vector<Isa> detect_isas() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __builtin_cpu_init();
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  const bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool vnni = avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;  // leaf 7, EDX
  const bool amx = vnni && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
                   (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0 &&
                   __builtin_cpu_supports("avx512bf16") && amx_permitted();
  std::vector<Isa> isas;
  if (amx) isas.push_back(Isa::kAmxBf16);
  if (vnni) isas.push_back(Isa::kAvx512Vnni);
  if (avx2) isas.push_back(Isa::kAvx2);
  isas.push_back(Isa::kScalar);
  return isas;
}
#else
std::vector<Isa> detect_isas() { return {Isa::kScalar}; }
#endif

}  // namespace

int quota_cores(const std::string& cgroup_file, const std::string& cgroup_root) {
  int least = std::min(cores_v2(cgroup_root), cores_v1(cgroup_root + "/cpu"));
  std::ifstream file(cgroup_file);
  for (std::string line; std::getline(file, line);) {  // "<id>:<controllers>:<path>"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, least_of_ancestors(cgroup_root, path, cores_v2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      least = std::min(least, least_of_ancestors(cgroup_root + "/cpu", path, cores_v1));
    }
  }
  return least;
}

DeviceCaps detect_device_caps() {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCpu;
  caps.name = cpu_name();
  caps.isas = detect_isas();
  caps.cores = std::min(affinity_cores(), quota_cores("/proc/self/cgroup", "/sys/fs/cgroup"));
  caps.l1d_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, caps.l1d_bytes);
  caps.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, caps.l2_bytes);
  caps.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, caps.l3_bytes);
  return caps;
}

}  // namespace dualgemm::cpu
