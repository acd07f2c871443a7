#include "tools/cli/signals.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "checkpoint/mapped_file.hpp"
#include "checkpoint/unfinished.hpp"
#include "tools/cli/exit_codes.hpp"

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

void say(const char* text) noexcept {
  // A name from the command line or from a folder: what moves a cursor is shown as '?'.
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    const char shown = byte < 0x20 || byte >= 0x7F ? '?' : *text;
    if (write(STDERR_FILENO, &shown, 1) != 1) return;
  }
}

extern "C" void report_cut_file(int signal, siginfo_t* info, void*) {
  const char* path = checkpoint::MappedFile::path_at(info->si_addr);
  if (path == nullptr) {
    set_default(signal);  // the access is repeated, and ends the process
    return;
  }
  checkpoint::remove_unfinished(signal);
  say("dualgemm: ");
  say(path);
  say(": became shorter while it was read, or its medium failed; must stay as it is until then");
  if (write(STDERR_FILENO, "\n", 1) != 1) _exit(kExitFailed);
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
