// Workspaces that free themselves.
#include <cstdint>
#include <string>
#include <utility>

#include "api/backend.hpp"
#include "core/enum_table.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

void Workspace::Free::operator()(void* memory) const noexcept {
  api::backend_of(device).free(memory);
}

Workspace::Workspace() noexcept : memory_(nullptr, Free{DeviceKind::kCpu}) {}

Workspace::Workspace(void* memory, int64_t bytes, DeviceKind device) noexcept
    : memory_(memory, Free{device}), size_bytes_(bytes), device_(device) {}

Workspace::Workspace(Workspace&& other) noexcept
    : memory_(std::move(other.memory_)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      device_(other.device_) {}

Workspace& Workspace::operator=(Workspace&& other) noexcept {
  memory_ = std::move(other.memory_);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  device_ = other.device_;
  return *this;
}

Expected<Workspace> Workspace::allocate(int64_t bytes, DeviceKind device) {
  DUALGEMM_TRY(core::check_enumerator("device", device));
  if (bytes < 0) {
    return Status::invalid("bytes", std::to_string(bytes), "must not be negative");
  }
  const DeviceKind where = device == DeviceKind::kAuto ? DeviceKind::kCpu : device;
  if (bytes == 0) return Workspace(nullptr, 0, where);
  if (bytes > INT64_MAX - kAlignment) {
    return Status::error(StatusCode::kOverflow, "bytes", std::to_string(bytes),
                         "must fit in 64 bits when rounded up to 64");
  }
  const Expected<void*> memory = api::backend_of(where).allocate(bytes);
  if (!memory) return memory.status();
  return Workspace(*memory, bytes, where);
}

Expected<Workspace> Workspace::allocate(const Plan& plan) {
  return allocate(plan.workspace_bytes, plan.device);
}

Status run(const Plan& plan, const Buffers& buffers, const Workspace& workspace, RunInfo* info) {
  const bool same = workspace.device() == plan.device || workspace.size_bytes() == 0;
  if (same) return run(plan, buffers, workspace.data(), workspace.size_bytes(), info);
  return Status::invalid("workspace", std::string("allocated on ") + name_of(workspace.device()),
                         std::string("must be on the plan's device, ") + name_of(plan.device));
}

}  // namespace dualgemm
