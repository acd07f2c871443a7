#include "checkpoint/unfinished.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace dualgemm::checkpoint {
namespace {

constinit SignalSafeList<TemporaryName> temporary_names;
std::atomic<int> publishing{0}, postponed_signal{0};

}  // namespace

Unfinished::Unfinished(TemporaryName name) : entry_(temporary_names.add(std::move(name))) {}

void Unfinished::finish() noexcept {
  if (entry_ != nullptr) temporary_names.remove(std::exchange(entry_, nullptr));
}

Publishing::Publishing() noexcept { ++publishing; }

Publishing::~Publishing() {
  if (--publishing > 0) return;
  if (const int signal = postponed_signal.exchange(0); signal != 0) raise(signal);
}

bool remove_unfinished(int signal) noexcept {
  if (publishing.load() > 0) {
    postponed_signal.store(signal);
    return false;
  }
  const auto remove_all = [](bool folders) {
    temporary_names.find([folders](const TemporaryName& name) {
      if (name.is_folder == folders) folders ? rmdir(name.path.c_str()) : unlink(name.path.c_str());
      return false;  // and the next
    });
  };
  remove_all(false);
  remove_all(true);
  return true;
}

}  // namespace dualgemm::checkpoint
