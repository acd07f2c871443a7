// Ctrl-C during a command that runs kernels.
#pragma once

#include <atomic>

namespace ptxsim::cli {

inline constexpr int kExitStopped = 130;  // 128 + SIGINT, as shells have it

// From now on the first SIGINT sets the flag that is returned, for Options::stop; the second one
// ends the process at once.
const std::atomic<bool>& stop_on_interrupt();

}  // namespace ptxsim::cli
