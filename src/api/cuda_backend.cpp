#include "api/cuda_backend.hpp"

#include "dualgemm/dualgemm.hpp"

#if DUALGEMM_HAS_CUDA
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/strategies/strategies.hpp"
#endif

namespace dualgemm::api {

Status not_in_this_build() {
  return Status::unsupported("device", "cuda", "this build of dualgemm has no CUDA part");
}

#if DUALGEMM_HAS_CUDA

std::span<const Strategy* const> cuda_strategies() { return cuda::strategies(); }

const Expected<DeviceCaps>& cuda_device_caps() {
  static const Expected<DeviceCaps> caps = cuda::detect_device_caps();
  return caps;
}

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

Status run_in_device_workspace(const Plan&, const Buffers&, RunInfo*) {
  return not_in_this_build();
}

#endif

}  // namespace dualgemm::api
