#include "cli/program_process.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace ptxsim::cli {
namespace {

constexpr int kEndingSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

std::atomic<pid_t> running{0};  // the program; 0: not yet, or no more
std::atomic<int> waiting{0};    // a signal that came before the program was there
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A signal of the terminal's (si_code above 0) has gone to the program, too, which is in the same
// process group.
void pass_on(int number, siginfo_t* info, void*) {
  if (info->si_code > 0) return;
  const int before = errno;
  if (const pid_t program = running; program > 0)
    kill(program, number);
  else
    waiting = number;
  errno = before;
}

void pass_signals_on() {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int number : kEndingSignals) sigaction(number, &action, nullptr);
}

}  // namespace

int run_program(const std::vector<std::string>& program) {
  std::vector<char*> argv;
  for (const std::string& argument : program) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int number : kEndingSignals) sigaddset(&defaults, number);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pass_signals_on();
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], nullptr, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    errno = failed;
    return -1;
  }
  running = child;
  if (const int number = waiting.exchange(0); number != 0) kill(child, number);
  // Not reaped at once: while it is not, its number is no other process's.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  running = 0;
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

}  // namespace ptxsim::cli
