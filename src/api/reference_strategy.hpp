// The oracle as one of the strategies.
#pragma once

#include "plan/strategy.hpp"

namespace dualgemm::api {

const Strategy& reference_strategy() noexcept;

}  // namespace dualgemm::api
