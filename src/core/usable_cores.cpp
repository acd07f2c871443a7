#include "core/usable_cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace dualgemm::core {
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

int affinity_cores() noexcept {
  // The kernel says when the set is too small.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// The number that the variable begins with; `list`: further ones may follow after commas.
Expected<int> parse_threads(const char* variable, const char* text, bool list) {
  const char* begin = text;
  while (*begin == ' ') ++begin;
  const char* end = begin + std::strlen(begin);
  int threads = 0;
  const std::from_chars_result result = std::from_chars(begin, end, threads);
  const char* rest = result.ptr;
  while (*rest == ' ') ++rest;
  const bool complete = rest == end || (list && *rest == ',');
  const bool too_many = result.ec == std::errc::result_out_of_range && *begin != '-';
  if (complete && too_many) return INT_MAX;
  if (complete && result.ec == std::errc() && threads >= 1) return threads;
  return Status::invalid(variable, "'" + std::string(text) + "'",
                         list ? "must be a positive number, or a list that begins with one"
                              : "must be a positive number");
}

bool is_set(const char* text) { return text != nullptr && *text != '\0'; }

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

int usable_cores() noexcept {
  // Not a static that is initialised once: a child of fork() would wait for its parent's thread.
  static constinit std::atomic<int> quota{0};
  int allowed = quota.load(std::memory_order_relaxed);
  if (allowed == 0) {
    try {
      allowed = quota_cores("/proc/self/cgroup", "/sys/fs/cgroup");
    } catch (...) {  // no memory for a line of text
      allowed = INT_MAX;
    }
    quota.store(allowed, std::memory_order_relaxed);
  }
  return std::min(affinity_cores(), allowed);
}

Expected<int> bounded_threads(int cores, const char* dualgemm_num_threads,
                              const char* omp_num_threads) {
  if (is_set(dualgemm_num_threads)) {
    const Expected<int> most = parse_threads("DUALGEMM_NUM_THREADS", dualgemm_num_threads, false);
    return most ? Expected<int>(std::min(cores, *most)) : most;
  }
  if (!is_set(omp_num_threads)) return cores;
  const Expected<int> most = parse_threads("OMP_NUM_THREADS", omp_num_threads, true);
  return most ? Expected<int>(std::min(cores, *most)) : most;
}

Expected<int> default_threads() {
  return bounded_threads(usable_cores(), std::getenv("DUALGEMM_NUM_THREADS"),
                         std::getenv("OMP_NUM_THREADS"));
}

}  // namespace dualgemm::core
