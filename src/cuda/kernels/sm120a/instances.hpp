// The compiled Configs of the sm_120a kernel. The same list feeds the choice of a plan and the
// tests.
#pragma once

#include <span>

#include "cuda/kernels/sm120a/config.hpp"

// X(groups of 8 rows a warp, warps_m), in the order of rows.
#define DUALGEMM_SM120A_INSTANCES(X) X(1, 1) X(2, 1) X(4, 1) X(8, 1) X(8, 2) X(8, 4)

namespace dualgemm::cuda::sm120a {

struct Instance {
  Config config;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm120a
