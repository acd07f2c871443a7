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

// Detected at the first call, then cached; thread-safe.
const Expected<DeviceCaps>& cuda_device_caps();

// A workspace for one run on `stream`, freed when the run is done.
Status run_in_device_workspace(const Plan& plan, const Buffers& buffers, RunInfo* info);

}  // namespace dualgemm::api
