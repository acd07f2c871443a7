// What must not outlive the process: names of temporary files and folders, and what a program's
// signal handler does about them.
#pragma once

#include <string>
#include <utility>

#include "checkpoint/signal_safe_list.hpp"

namespace dualgemm::checkpoint {

struct TemporaryName {
  std::string path;
  bool is_folder = false;
};

// Registers a name for as long as it lives; itself it removes nothing.
class Unfinished {
 public:
  Unfinished() = default;
  explicit Unfinished(TemporaryName name);
  ~Unfinished() { finish(); }
  Unfinished(Unfinished&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Unfinished& operator=(Unfinished&& other) noexcept {
    if (this != &other) {
      finish();
      entry_ = std::exchange(other.entry_, nullptr);
    }
    return *this;
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  void finish() noexcept;

 private:
  SignalSafeList<TemporaryName>::Entry* entry_ = nullptr;
};

// While one lives, files are getting their names: the few system calls that must not be torn apart.
// remove_unfinished() then declines, and the signal is raised again by the destructor.
class Publishing {
 public:
  Publishing() noexcept;
  ~Publishing();
  Publishing(const Publishing&) = delete;
  Publishing& operator=(const Publishing&) = delete;
};

// For handlers of signals that end the process; async-signal-safe. Removes every registered name:
// files, then folders. False: names are being given right now; return from the handler, the signal
// comes again.
bool remove_unfinished(int signal) noexcept;

}  // namespace dualgemm::checkpoint
