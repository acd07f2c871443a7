#include "cli/stop_signal.hpp"

#include <csignal>

namespace ptxsim::cli {
namespace {

std::atomic<bool> stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it

void set_stop(int) { stop = true; }

}  // namespace

const std::atomic<bool>& stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = set_stop;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  return stop;
}

}  // namespace ptxsim::cli
