// Calls of the runtime remember the last error of their thread.
#pragma once

#include "fake_cuda/abi.hpp"
#include "fake_cuda/call.hpp"

namespace ptxsim::cuda::runtime {

int remember(Status status);  // as the last error, unless it is kSuccess; returns it

// While one lives, the thread's calls are the driver's: they leave the runtime's last error alone.
class DriverCall {
 public:
  DriverCall() { ++depth(); }
  ~DriverCall() { --depth(); }
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
  static int& depth();
};

template <class F>
int call(F&& f) {
  return remember(guarded_unless_sticky(f));
}

}  // namespace ptxsim::cuda::runtime
