// All strategies of this build, of all backends.
#pragma once

#include <span>

#include "plan/strategy.hpp"

namespace dualgemm::api {

// In the order of the documentation's table; made once, thread-safe.
std::span<const Strategy* const> registry();

}  // namespace dualgemm::api
