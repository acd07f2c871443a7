// The wgmma kernels as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"
#include "cuda/kernels/sm90a/launch.hpp"

namespace dualgemm::cuda::sm90a {

extern const KernelFamily kFamily;

KernelShape shape_of(const Instance& instance);

}  // namespace dualgemm::cuda::sm90a
