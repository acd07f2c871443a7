// One call of the library on torch's memory: plan from the cache, workspace from torch's allocator,
// the current queue of the GPU.
#pragma once

#include <cstdint>

#include "plan_cache.hpp"
#include "tensors.hpp"

namespace dualgemm::python {

// The current cudaStream_t of that GPU, from torch.
void* current_cuda_stream(int32_t index);

// Whether an address that kernels read in place is a multiple of 16 bytes, as a plan for aligned
// operands wants it.
bool is_aligned(const void* address);

// Makes the GPU of `place` the current one as long as it lives, if it is none or another.
class OnDevice {
 public:
  explicit OnDevice(const Place& place);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  DeviceGuardHandle guard_ = nullptr;
};

// Packed weights as the library takes them; refuses bytes that are not those of a plan.
dualgemm_prepared_view view_of(const char* name, const Place& place, const Tensor& packed,
                               const dualgemm_prepared_descriptor& wanted);

// Runs the plan of `key` with `buffers`; sets buffers.stream. packed: prepared weights, if any; its
// bytes must be those of the plan.
void launch(const Place& place, const PlanKey& key, const Tensor* packed,
            dualgemm_buffers& buffers);

// A problem or a strategy of the library by its name; refuses an unknown one.
int32_t strategy_named(const std::string& name);
int32_t activation_named(const std::string& name);

}  // namespace dualgemm::python
