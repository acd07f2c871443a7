#include "cpu/arm_cores.hpp"

#include <cstdlib>
#include <vector>

namespace dualgemm::cpu {
namespace {

// Arm's own cores for servers, workstations and boards since FEAT_DotProd, and some before it: the
// part numbers of MIDR_EL1 (Linux, arch/arm64/include/asm/cputype.h).
constexpr long kArmLimited = 0x41;
struct Core {
  long part;
  const char* name;
};
constexpr Core kCores[] = {
    {0xD03, "Cortex-A53"},  {0xD05, "Cortex-A55"},  {0xD07, "Cortex-A57"},  {0xD08, "Cortex-A72"},
    {0xD0B, "Cortex-A76"},  {0xD0C, "Neoverse N1"}, {0xD40, "Neoverse V1"}, {0xD49, "Neoverse N2"},
    {0xD4F, "Neoverse V2"}, {0xD84, "Neoverse V3"}, {0xD85, "Cortex-X925"}, {0xD87, "Cortex-A725"},
    {0xD8E, "Neoverse N3"},
};

std::string name_of_core(const std::string& implementer, const std::string& part) {
  if (std::strtol(implementer.c_str(), nullptr, 0) == kArmLimited) {
    for (const Core& core : kCores) {
      if (std::strtol(part.c_str(), nullptr, 0) == core.part) return core.name;
    }
  }
  return "Arm CPU, implementer " + implementer + ", part " + part;
}

}  // namespace

std::string arm_core_names(std::string_view cpuinfo) {
  std::string names, implementer;
  std::vector<std::string> seen;
  while (!cpuinfo.empty()) {
    const size_t end = cpuinfo.find('\n');
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(end == std::string_view::npos ? cpuinfo.size() : end + 1);
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string value(line.substr(colon + 2));
    if (line.substr(0, 15) == "CPU implementer") implementer = value;
    if (line.substr(0, 8) != "CPU part") continue;
    const std::string name = name_of_core(implementer, value);
    bool known = false;
    for (const std::string& one : seen) known = known || one == name;
    if (known) continue;
    seen.push_back(name);
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace dualgemm::cpu
