#include "api/cuda_backend.hpp"

#include "dualgemm/dualgemm.hpp"

#if DUALGEMM_HAS_CUDA
#include <array>
#include <map>
#include <mutex>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/pointers.hpp"
#include "cuda/strategies/strategies.hpp"
#endif

namespace dualgemm::api {

Status not_in_this_build() {
  return Status::unsupported("device", "cuda", "this build of dualgemm has no CUDA part");
}

#if DUALGEMM_HAS_CUDA

std::span<const Strategy* const> cuda_strategies() { return cuda::strategies(); }

const Expected<DeviceCaps>& cuda_device_caps() {
  static std::mutex mutex;
  static std::map<int, Expected<DeviceCaps>> known;  // under the GPU's number; elements stay put
  const int gpu = cuda::current_gpu();
  const std::lock_guard lock(mutex);
  const auto found = known.find(gpu);
  if (found != known.end()) return found->second;
  return known.emplace(gpu, cuda::detect_device_caps()).first->second;
}

Status check_on_current_gpu(const Buffers& buffers, const void* workspace) {
  const bool own_weights = buffers.prepared == nullptr;  // else these four may have been freed
  const auto weight = [&](const void* data) { return own_weights ? data : nullptr; };
  const std::array<cuda::NamedPointer, 12> pointers{{
      {"a", buffers.a},
      {"a_scales", buffers.a_scales},
      {"a_row_scale", buffers.a_row_scale},
      {"alpha_gate_per_batch", buffers.alpha_gate_per_batch},
      {"alpha_up_per_batch", buffers.alpha_up_per_batch},
      {"gate", weight(buffers.gate)},
      {"gate_scales", weight(buffers.gate_scales)},
      {"up", weight(buffers.up)},
      {"up_scales", weight(buffers.up_scales)},
      {"d", buffers.d},
      {"d_scales", buffers.d_scales},
      {"workspace", workspace},
  }};
  DUALGEMM_TRY(cuda::check_pointers(pointers));
  DUALGEMM_TRY(cuda::check_stream(buffers.stream));
  if (own_weights || buffers.prepared->empty()) return {};
  return cuda::judge_prepared(buffers.prepared->impl()->gpu, cuda::current_gpu());
}

int current_gpu() { return cuda::current_gpu(); }

Expected<void*> allocate_on_gpu(int64_t bytes) {
  Expected<cuda::DeviceMemory> memory = cuda::DeviceMemory::allocate(bytes, "workspace");
  if (!memory) return memory.status();
  return static_cast<void*>(memory->release());
}

void free_on_gpu(void* memory) noexcept { cuda::DeviceMemory::free(memory); }

Status run_in_device_workspace(const Plan& plan, const Buffers& buffers, RunInfo* info) {
  Expected<cuda::DeviceMemory> workspace =
      cuda::DeviceMemory::allocate(plan.workspace_bytes, "workspace");
  if (!workspace) return workspace.status();
  DUALGEMM_TRY(run(plan, buffers, workspace->data(), workspace->size(), info));
  if (workspace->size() == 0) return {};
  return cuda::synchronize(buffers.stream);  // before the workspace goes
}

#else

std::span<const Strategy* const> cuda_strategies() { return {}; }

const Expected<DeviceCaps>& cuda_device_caps() {
  static const Expected<DeviceCaps> caps = not_in_this_build();
  return caps;
}

Status check_on_current_gpu(const Buffers&, const void*) { return not_in_this_build(); }

int current_gpu() { return -1; }

Expected<void*> allocate_on_gpu(int64_t) { return not_in_this_build(); }

void free_on_gpu(void*) noexcept {}

Status run_in_device_workspace(const Plan&, const Buffers&, RunInfo*) {
  return not_in_this_build();
}

#endif

}  // namespace dualgemm::api
