// The entry of a kernel that only some images can hold.
#pragma once

#include "cuda/ptx/target.hpp"

// The kernel `entry` of a struct `parameters`, one CTA of `threads` threads an SM:
// body<config>(params) in images of `target`, a macro of target.hpp. The rest of the arguments is
// the Config.
#define DUALGEMM_ENTRY(target, entry, parameters, threads, body, ...)                 \
  extern "C" __global__ void __launch_bounds__(threads, 1)                            \
      entry(const __grid_constant__ parameters params) {                              \
    run_or_trap<target>(params, [](const auto& given) { body<__VA_ARGS__>(given); }); \
  }

namespace dualgemm::cuda {

// body(params) in images that have its instructions (kHolds); any other traps, and the host refuses
// before it comes to that. A body that takes `auto` is compiled for the former alone.
template <bool kHolds, class Params, class Body>
DUALGEMM_DEVICE void run_or_trap([[maybe_unused]] const Params& params,
                                 [[maybe_unused]] const Body& body) {
  if constexpr (kHolds) {
    body(params);
  } else {
    __trap();
  }
}

}  // namespace dualgemm::cuda
