#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "core/usable_cores.hpp"
#include "cpu/arm_cores.hpp"
#include "cpu/device_caps.hpp"

namespace dualgemm::cpu {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string all;
  for (std::string line; std::getline(file, line); all += line + "\n") {
    if (line.rfind("model name", 0) == 0) {
      const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
      if (begin != std::string::npos) return line.substr(begin);
    }
  }
  const std::string cores = arm_core_names(all);
  return cores.empty() ? "unknown CPU" : cores;
}

// Bytes of core 0's cache of that level that holds data, as Linux lists them; 0: not listed. "64K"
// is how it writes a size.
int64_t listed_cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int found_level = 0;
    int64_t kilobytes = 0;
    std::string type;
    if (!(std::ifstream(folder + "level") >> found_level)) return 0;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> kilobytes;
    if (found_level == level && type != "Instruction") return kilobytes << 10;
  }
  return 0;
}

// glibc answers for x86-64 and asks nothing on Arm.
int64_t cache_bytes(int sysconf_name, int level, int64_t otherwise) {
  int64_t bytes = sysconf(sysconf_name);
  if (bytes <= 0) bytes = listed_cache_bytes(level);
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
  const bool bf16 = vnni && __builtin_cpu_supports("avx512bf16");
  const bool amx = bf16 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
                   (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0 && amx_permitted();
  std::vector<Isa> isas;
  if (amx) isas.push_back(Isa::kAmxBf16);
  if (bf16) isas.push_back(Isa::kAvx512Bf16);
  if (vnni) isas.push_back(Isa::kAvx512Vnni);
  if (avx2) isas.push_back(Isa::kAvx2);
  isas.push_back(Isa::kScalar);
  return isas;
}
#elif defined(__aarch64__)
// Best first.
std::vector<Isa> detect_isas() {
  const bool dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  const bool i8mm = dot && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  std::vector<Isa> isas;
  if (i8mm) isas.push_back(Isa::kNeonI8mm);
  if (dot) isas.push_back(Isa::kNeon);
  isas.push_back(Isa::kScalar);
  return isas;
}
#else
std::vector<Isa> detect_isas() { return {Isa::kScalar}; }
#endif

}  // namespace

DeviceCaps detect_device_caps() {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCpu;
  caps.name = cpu_name();
  caps.isas = detect_isas();
  caps.cores = core::usable_cores();
  caps.l1d_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 1, caps.l1d_bytes);
  caps.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 2, caps.l2_bytes);
  caps.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 3, caps.l3_bytes);
  return caps;
}

}  // namespace dualgemm::cpu
