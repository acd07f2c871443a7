// The strategies of the CUDA backend.
#pragma once

#include <span>

#include "plan/strategy.hpp"

namespace dualgemm::cuda {

std::span<const Strategy* const> strategies();

}  // namespace dualgemm::cuda
