// The CUDA backend, and the one that stands for it in builds without CUDA.
#include "api/backend.hpp"

#ifndef DUALGEMM_HAS_CUDA  // 1 when src/cuda is part of the build
#define DUALGEMM_HAS_CUDA 0
#endif

#if DUALGEMM_HAS_CUDA
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/kernels/convert/quantize.hpp"
#include "cuda/kernels/experts/routing.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/pointers.hpp"
#include "cuda/strategies/strategies.hpp"
#include "dualgemm/dualgemm.hpp"
#endif

namespace dualgemm::api {
namespace {

#if DUALGEMM_HAS_CUDA

class CudaBackend final : public Backend {
 public:
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }

  const Expected<DeviceCaps>& capabilities() const override {
    static std::mutex mutex;
    static std::map<int, Expected<DeviceCaps>> known;  // under the GPU's number; elements stay put
    const int gpu = cuda::current_gpu();
    const std::lock_guard lock(mutex);
    const auto found = known.find(gpu);
    if (found != known.end()) return found->second;
    return known.emplace(gpu, cuda::current_gpu_caps()).first->second;
  }

  std::span<const Strategy* const> strategies() const override { return cuda::strategies(); }

  Status check_isa(const Plan& plan) const override {
    const Expected<DeviceCaps>& caps = capabilities();
    if (!caps) return caps.status();
    if (std::find(caps->isas.begin(), caps->isas.end(), plan.isa) != caps->isas.end())
      return cuda::check_schedulable(plan, *caps);
    return Status::unsupported("plan.isa", name_of(plan.isa),
                               caps->name + " does not offer it: plan for this GPU");
  }

  Status check_problem(const core::CheckedProblem& problem,
                       const Strategy& strategy) const override {
    const Expected<DeviceCaps>& caps = capabilities();
    return caps ? strategy.supports(problem, *caps) : caps.status();
  }

  Status check_memory(const Buffers& buffers, const void* workspace) const override {
    const PreparedView* const view = buffers.prepared_view;
    // Prepared: these four may have been freed.
    const auto weight = [&](const void* data) { return view == nullptr ? data : nullptr; };
    // Where a handle's own memory lies is known.
    const bool owned = buffers.prepared != nullptr && !buffers.prepared->empty() &&
                       buffers.prepared->impl()->memory != nullptr;
    const std::array<cuda::NamedPointer, 20> pointers{{
        {"a", buffers.a},
        {"a_scales", buffers.a_scales},
        {"a_row_scale", buffers.a_row_scale},
        {"alpha_gate_per_batch", buffers.alpha_gate_per_batch},
        {"alpha_up_per_batch", buffers.alpha_up_per_batch},
        {"expert_offsets", buffers.expert_offsets},
        {"expert_rows", buffers.expert_rows},
        {"row_experts", buffers.row_experts},
        {"a_row_index", buffers.a_row_index},
        {"gate", weight(buffers.gate)},
        {"gate_scales", weight(buffers.gate_scales)},
        {"up", weight(buffers.up)},
        {"up_scales", weight(buffers.up_scales)},
        {"bias_gate", buffers.bias_gate},
        {"bias_up", buffers.bias_up},
        {"residual", buffers.residual},
        {"d", buffers.d},
        {"d_scales", buffers.d_scales},
        {"prepared", view == nullptr || owned ? nullptr : view->memory},
        {"workspace", workspace},
    }};
    DUALGEMM_TRY(cuda::check_pointers(pointers));
    DUALGEMM_TRY(cuda::check_stream(buffers.stream));
    if (!owned) return {};
    return cuda::judge_prepared(buffers.prepared->impl()->gpu, cuda::current_gpu());
  }

  int current_device() const noexcept override { return cuda::current_gpu(); }

  Expected<void*> allocate(int64_t bytes) const override {
    Expected<cuda::DeviceMemory> memory = cuda::DeviceMemory::allocate(bytes, "workspace");
    if (!memory) return memory.status();
    return static_cast<void*>(memory->release());
  }
  void free(void* memory) const noexcept override { cuda::DeviceMemory::free(memory); }
  Expected<std::shared_ptr<void>> allocate_prepared(int64_t bytes) const override {
    Expected<cuda::DeviceMemory> memory = cuda::DeviceMemory::allocate(bytes, "prepared weights");
    if (!memory) return memory.status();
    const auto owner = std::make_shared<cuda::DeviceMemory>(*std::move(memory));
    return std::shared_ptr<void>(owner, owner->data());
  }
  Status wait(const Buffers& buffers) const override { return cuda::synchronize(buffers.stream); }

  Status check_arrays(std::span<const NamedArray> arrays, void* stream) const override {
    std::vector<cuda::NamedPointer> pointers;
    for (const NamedArray& array : arrays) pointers.push_back({array.name, array.data});
    DUALGEMM_TRY(cuda::check_pointers(pointers));
    return cuda::check_stream(stream);
  }
  int64_t quantize_workspace(const core::ResolvedQuantize& problem) const noexcept override {
    return cuda::quantize_workspace_bytes(problem);
  }
  Status quantize(const core::ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                  int) const override {
    DUALGEMM_TRY(check_gpu());
    return enqueue_all(cuda::quantize_launches(problem, buffers), buffers.stream);
  }
  Status transform_rows(const TransformProblem& problem, const TransformBuffers& buffers,
                        int) const override {
    DUALGEMM_TRY(check_gpu());
    return enqueue_all(cuda::transform_launches(problem, buffers), buffers.stream);
  }
  Status dequantize(const core::ResolvedQuantize& problem, const DequantizeBuffers& buffers,
                    int) const override {
    DUALGEMM_TRY(check_gpu());
    return enqueue_all(cuda::dequantize_launches(problem, buffers), buffers.stream);
  }
  Status convert_scales(const core::ResolvedConversion& conversion, const uint8_t* src,
                        uint8_t* dst, void* stream) const override {
    DUALGEMM_TRY(check_gpu());
    return enqueue_all(cuda::convert_scales_launches(conversion, src, dst), stream);
  }
  Status route_tokens(const RoutingProblem& problem, const RoutingBuffers& buffers) const override {
    DUALGEMM_TRY(check_gpu());
    return enqueue_all(overlapping(cuda::route_launches(problem, buffers)), buffers.stream);
  }
  Status gather_rows(const core::Gather& gather, void* stream) const override {
    return enqueue_all(overlapping(cuda::gather_launches(gather)), stream);
  }
  Status combine_tokens(const CombineProblem& problem, const CombineBuffers& buffers,
                        int) const override {
    DUALGEMM_TRY(check_gpu());
    return enqueue_all(overlapping(cuda::combine_launches(problem, buffers)), buffers.stream);
  }

 private:
  // One that these kernels run on.
  Status check_gpu() const {
    const Expected<DeviceCaps>& caps = capabilities();
    if (!caps) return caps.status();
    if (!caps->isas.empty()) return {};
    return Status::unsupported("device",
                               caps->name + " of compute capability " +
                                   std::to_string(caps->compute_capability / 10) + "." +
                                   std::to_string(caps->compute_capability % 10),
                               "needs 8.0 or later");
  }
  // Kernels that wait for the one in front by themselves, on GPUs that start them earlier.
  Expected<std::vector<cuda::KernelLaunch>> overlapping(
      Expected<std::vector<cuda::KernelLaunch>> launches) const {
    if (!launches || capabilities()->compute_capability < 90) return launches;
    for (cuda::KernelLaunch& launch : *launches) launch.overlaps_previous = true;
    return launches;
  }
  static Status enqueue_all(const Expected<std::vector<cuda::KernelLaunch>>& launches,
                            void* stream) {
    if (!launches) return launches.status();
    for (const cuda::KernelLaunch& launch : *launches)
      DUALGEMM_TRY(cuda::enqueue(launch, static_cast<cudaStream_t>(stream)));
    return {};
  }
};

#else

class CudaBackend final : public Backend {
 public:
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  const Expected<DeviceCaps>& capabilities() const override {
    static const Expected<DeviceCaps> caps = not_in_this_build();
    return caps;
  }
  std::span<const Strategy* const> strategies() const override { return {}; }
  Status check_isa(const Plan&) const override { return not_in_this_build(); }
  Status check_problem(const core::CheckedProblem&, const Strategy&) const override {
    return not_in_this_build();
  }
  Status check_memory(const Buffers&, const void*) const override { return not_in_this_build(); }
  int current_device() const noexcept override { return -1; }
  Expected<void*> allocate(int64_t) const override { return not_in_this_build(); }
  void free(void*) const noexcept override {}
  Expected<std::shared_ptr<void>> allocate_prepared(int64_t) const override {
    return not_in_this_build();
  }
  Status wait(const Buffers&) const override { return not_in_this_build(); }
  Status check_arrays(std::span<const NamedArray>, void*) const override {
    return not_in_this_build();
  }
  int64_t quantize_workspace(const core::ResolvedQuantize&) const noexcept override { return 0; }
  Status quantize(const core::ResolvedQuantize&, const QuantizeBuffers&, int) const override {
    return not_in_this_build();
  }
  Status transform_rows(const TransformProblem&, const TransformBuffers&, int) const override {
    return not_in_this_build();
  }
  Status dequantize(const core::ResolvedQuantize&, const DequantizeBuffers&, int) const override {
    return not_in_this_build();
  }
  Status convert_scales(const core::ResolvedConversion&, const uint8_t*, uint8_t*,
                        void*) const override {
    return not_in_this_build();
  }
  Status route_tokens(const RoutingProblem&, const RoutingBuffers&) const override {
    return not_in_this_build();
  }
  Status gather_rows(const core::Gather&, void*) const override { return not_in_this_build(); }
  Status combine_tokens(const CombineProblem&, const CombineBuffers&, int) const override {
    return not_in_this_build();
  }
};

#endif

}  // namespace

const Backend& cuda_backend() noexcept {
  static const CudaBackend backend;
  return backend;
}

}  // namespace dualgemm::api
