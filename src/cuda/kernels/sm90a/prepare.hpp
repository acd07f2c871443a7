// The first kernel of a call: a in the type and order in which the main kernel multiplies it.
#pragma once

#include "cuda/kernels/sm90a/params.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda::sm90a {

KernelLaunch prepare_launch(const PrepareParams& params);

}  // namespace dualgemm::cuda::sm90a
