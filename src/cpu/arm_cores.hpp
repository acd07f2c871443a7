// Names of Arm's processors, which Linux gives as numbers.
#pragma once

#include <string>
#include <string_view>

namespace dualgemm::cpu {

// The kinds of cores that the text of an Arm machine's /proc/cpuinfo lists, in its order, each
// once: "Cortex-X925, Cortex-A725". A kind without a name here is given by its numbers; a text
// without "CPU part" gives "".
std::string arm_core_names(std::string_view cpuinfo);

}  // namespace dualgemm::cpu
