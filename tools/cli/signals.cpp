#include "tools/cli/signals.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "tools/checkpoint/mapped_file.hpp"
#include "tools/checkpoint/unfinished.hpp"
#include "tools/cli/args.hpp"

namespace dualgemm::cli {
namespace {

// Everything below runs in handlers: no allocation, no lock, no stdio.

void set_default(int signal) noexcept {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

extern "C" void end_by_signal(int signal) {
  if (!checkpoint::remove_unfinished(signal)) return;
  set_default(signal);
  raise(signal);  // takes effect when this handler returns
}

// What stderr does not take is lost: there is nowhere to say so.
void say(const char* text) noexcept {
  for (size_t left = std::strlen(text); left > 0;) {
    const ssize_t written = write(STDERR_FILENO, text, left);
    if (written <= 0) return;
    text += written;
    left -= static_cast<size_t>(written);
  }
}

// Threads read one file side by side, and all of them meet its end.
std::atomic_flag reporting_cut_file = ATOMIC_FLAG_INIT;

extern "C" void report_cut_file(int signal, siginfo_t* info, void*) {
  const char* path = checkpoint::MappedFile::path_at(info->si_addr);
  if (path == nullptr) {
    set_default(signal);  // the access is repeated, and ends the process
    return;
  }
  while (reporting_cut_file.test_and_set()) pause();  // the first one ends the process
  checkpoint::remove_unfinished(signal);
  say("dualgemm: ");
  say(path);
  say(": became shorter while it was read, or its medium failed; must stay as it is until then\n");
  _exit(kExitFailed);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction ending = {};
  ending.sa_handler = end_by_signal;
  ending.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending.sa_mask, signal);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    const bool ignored = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (!ignored) sigaction(signal, &ending, nullptr);
  }
  struct sigaction ignoring = {};
  ignoring.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignoring, nullptr);
  struct sigaction reporting = {};
  reporting.sa_sigaction = report_cut_file;
  reporting.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &reporting, nullptr);
}

}  // namespace dualgemm::cli
