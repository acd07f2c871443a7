// The CUDA backend as the rest of the API sees it, in builds with and without it.
// DUALGEMM_HAS_CUDA is 1 when src/cuda is part of the build.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dualgemm/types.hpp"
#include "plan/strategy.hpp"

#ifndef DUALGEMM_HAS_CUDA
#define DUALGEMM_HAS_CUDA 0
#endif

namespace dualgemm::api {

Status not_in_this_build();

std::span<const Strategy* const> cuda_strategies();  // none without CUDA

// Of the current GPU; each is looked at once. Thread-safe.
const Expected<DeviceCaps>& cuda_device_caps();

// What validate() cannot see: that every array of the call lies on the current GPU, and that the
// stream and the prepared weights belong to it. `workspace` may be null.
Status check_on_current_gpu(const Buffers& buffers, const void* workspace);

int current_gpu();  // -1: none

// Memory of the current GPU, aligned to 256.
Expected<void*> allocate_on_gpu(int64_t bytes);
void free_on_gpu(void* memory) noexcept;

// A workspace for one run on `stream`, freed when the run is done.
Status run_in_device_workspace(const Plan& plan, const Buffers& buffers, RunInfo* info);

}  // namespace dualgemm::api
