// Sees that a launch does nothing but wait for the host: it reads the host's memory by strong loads
// again and again, and has written no global memory. A launch runs before its call returns, so
// that the host cannot store meanwhile; but such a launch can be left, and begun anew later.
#pragma once

#include <atomic>
#include <memory>

#include "fake_cuda/device_memory.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim::cuda {

class HostPoll {
 public:
  explicit HostPoll(const DeviceMemory& memory);

  MakeObserver observer() const;
  // Options::stop of the run: set when the launch waits for the host.
  const std::atomic<bool>* found() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace ptxsim::cuda
