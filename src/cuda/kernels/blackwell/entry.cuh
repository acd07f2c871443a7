// From a Config to a kernel and to what is known of it: what the kernels of this architecture have
// in common. For the files that compile their lists.
#pragma once

#include "cuda/kernels/blackwell/instance.hpp"
#include "cuda/kernels/blackwell/storage.cuh"
#include "cuda/kernels/common/entry.cuh"

// The kernel `entry`, whose name says how many stages it has: body<config>(params). The rest of the
// arguments is the Config, of which a Budget is in sight.
#define DUALGEMM_SM100A_KERNEL(entry, stages, body, ...)                                      \
  static_assert(Budget<__VA_ARGS__>::kStages == stages,                                       \
                "the name says how many stages there are");                                   \
  DUALGEMM_ENTRY(DUALGEMM_TARGET_SM100, entry, Params, (Budget<__VA_ARGS__>::kThreads), body, \
                 __VA_ARGS__)

// Its row in a list of instances. storage: a template of a Config, what lies in shared memory.
#define DUALGEMM_SM100A_INSTANCE(entry, storage, ...) \
  DUALGEMM_SM100A_INSTANCE_OF_NAME(entry, storage, __VA_ARGS__)
#define DUALGEMM_SM100A_INSTANCE_OF_NAME(entry, storage, ...)          \
  blackwell::instance_with<Budget<__VA_ARGS__>, storage<__VA_ARGS__>>( \
      __VA_ARGS__, #entry, reinterpret_cast<const void*>(&entry)),

namespace dualgemm::cuda::blackwell {

template <class Budget, class Storage, class Config>
constexpr InstanceOf<Config> instance_with(const Config& config, const char* entry,
                                           const void* kernel) {
  return {
      config, Budget::kStages, Budget::kStageBytes, Budget::kThreads, dynamic_smem_bytes<Storage>(),
      entry,  kernel};
}

}  // namespace dualgemm::cuda::blackwell
