#include "launch.hpp"

#include <dlfcn.h>

#include "status.hpp"

namespace dualgemm::python {

// libtorch_cuda is not linked: then this library would not load beside a torch without it.
void* current_cuda_stream(int32_t index) {
  using Function = AOTITorchError (*)(int32_t, void**);
  static const Function function = [] {
    void* const library = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    void* const symbol =
        library == nullptr ? nullptr : dlsym(library, "aoti_torch_get_current_cuda_stream");
    return reinterpret_cast<Function>(symbol);
  }();
  if (function == nullptr) {
    refuse("unsupported", "a: on a GPU; this torch has no CUDA part that is loaded");
  }
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(function(index, &stream));
  return stream;
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

OnDevice::OnDevice(const Place& place) {
  if (!place.is_cuda) return;
  int32_t current = -1;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_device_index(&current));
  if (current != place.index) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_create_device_guard(place.index, &guard_));
  }
}

OnDevice::~OnDevice() {
  if (guard_ != nullptr) aoti_torch_delete_device_guard(guard_);
}

dualgemm_prepared_view view_of(const char* name, const Place& place, const Tensor& packed,
                               const dualgemm_prepared_descriptor& wanted) {
  void* const bytes = packed.data_ptr();
  if (packed.numel() != wanted.bytes) {
    refuse(name, std::to_string(packed.numel()) + " bytes",
           "must be the " + std::to_string(wanted.bytes) +
               " that pack_weights makes for this device, n, k and dtype of a");
  }
  if (reinterpret_cast<uintptr_t>(bytes) % static_cast<uintptr_t>(wanted.alignment)) {
    refuse(name, "an address between two blocks",
           "must start at a multiple of " + std::to_string(wanted.alignment) + " bytes");
  }
  // On a GPU its header lies there: to look at it would synchronise.
  if (place.is_cuda) return {wanted, bytes, wanted.bytes};
  dualgemm_prepared_view view;
  check(dualgemm_prepared_open(bytes, packed.numel(), &view));
  return view;
}

void launch(const Place& place, const PlanKey& key, const Tensor* packed,
            dualgemm_buffers& buffers) {
  const OnDevice on_device(place);
  const std::shared_ptr<const Plan> plan = plan_for(key);
  dualgemm_prepared_view view;
  if (packed != nullptr) {
    view = view_of("packed", place, *packed, plan->prepared);
    buffers.prepared_view = &view;
  }
  void* workspace = nullptr;
  OptionalTensor memory;
  if (plan->workspace_bytes > 0) {
    memory = new_tensor(place, dtypes().uint8, {plan->workspace_bytes});
    workspace = memory->data_ptr();
  }
  if (place.is_cuda) buffers.stream = current_cuda_stream(place.index);
  check(dualgemm_run(plan->plan, &buffers, workspace, plan->workspace_bytes, nullptr));
}

int32_t strategy_named(const std::string& name) {
  int32_t strategy = DUALGEMM_STRATEGY_AUTO;
  if (name != "auto") check(dualgemm_parse_strategy(name.c_str(), &strategy));
  return strategy;
}

int32_t activation_named(const std::string& name) {
  int32_t kind = DUALGEMM_SILU;
  if (name != "silu") check(dualgemm_parse_activation(name.c_str(), &kind));
  return kind;
}

}  // namespace dualgemm::python
