#include "fake_cuda/host_poll.hpp"

#include <utility>

#include "machine/memory/addresses.hpp"

namespace ptxsim::cuda {

namespace {
// Loads with nothing between them. A launch that is left too early costs time and changes nothing.
constexpr uint32_t kMostPolls = 4096;
}  // namespace

struct HostPoll::State {
  explicit State(const DeviceMemory& of) : memory(of) {}
  const DeviceMemory& memory;
  bool has_written = false;
  uint32_t polls = 0;
  std::atomic<bool> found = false;
};

namespace {

bool is_of_host(const DeviceMemory& memory, uint64_t address) {
  Location location;
  return memory.locate(reinterpret_cast<const void*>(address), 1, location) == kSuccess &&
         location.allocation != nullptr && location.allocation->host != nullptr;
}

class Watch : public Observer {
 public:
  explicit Watch(std::shared_ptr<HostPoll::State> state) : state_(std::move(state)) {}
  bool wants_global_accesses() const override { return true; }

  void global_access(const Execution&, int, const MemoryAt& at, uint32_t,
                     AccessKind kind) override {
    if (kind != AccessKind::kRead) note_write();
    if (at.scope == Scope::kNone) state_->polls = 0;
  }
  void strong_read(const Execution&, int, const MemoryAt& at, bool) override {
    if (state_->has_written || at.space != Space::kGlobal) return;
    state_->polls = is_of_host(state_->memory, at.offset) ? state_->polls + 1 : 0;
    if (state_->polls >= kMostPolls) state_->found = true;
  }
  void async_global_range(AsyncOp, const Execution&, uint64_t, uint64_t, AccessKind kind) override {
    if (kind != AccessKind::kRead) note_write();
  }

 private:
  // Told before it is done: a run that was about to stop goes on.
  void note_write() {
    state_->has_written = true;
    state_->found = false;
  }
  std::shared_ptr<HostPoll::State> state_;
};

}  // namespace

HostPoll::HostPoll(const DeviceMemory& memory) : state_(std::make_shared<State>(memory)) {}

MakeObserver HostPoll::observer() const {
  return [state = state_](Cluster&) { return std::make_unique<Watch>(state); };
}

const std::atomic<bool>* HostPoll::found() const { return &state_->found; }

}  // namespace ptxsim::cuda
