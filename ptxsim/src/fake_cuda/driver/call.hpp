// Calls of the driver.
#pragma once

#include "fake_cuda/abi.hpp"
#include "fake_cuda/call.hpp"
#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::driver {

template <class F>
int call(F&& f) {
  const runtime::DriverCall scope;
  return guarded_unless_sticky(f);
}

// What the runtime does too: f() calls it.
template <class F>
int as_runtime(F&& f) {
  const runtime::DriverCall scope;
  return f();
}

}  // namespace ptxsim::cuda::driver
