// Everything that the CPU backend offers to the rest of the library.
#pragma once

#include <span>

#include "plan/strategy.hpp"

namespace dualgemm::cpu {

// In the order of the documentation's table. The objects live as long as the program.
std::span<const Strategy* const> strategies();

}  // namespace dualgemm::cpu
