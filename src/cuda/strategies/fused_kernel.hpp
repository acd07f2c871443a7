// The fused strategy's kernels: one for each instruction set, behind the same four functions.
#pragma once

#include <vector>

#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::cuda {

struct FusedKernel {
  Isa isa;
  Status (*supports)(const Problem& problem);
  // Fills in what Strategy::plan_as_wished() does, but workspace_bytes.
  Status (*plan)(Plan& plan, const DeviceCaps& caps, const PlanWishes& wishes);
  int64_t (*workspace_bytes)(const Plan& plan);
  // intermediate_bytes: written to and read from the workspace.
  Expected<std::vector<KernelLaunch>> (*launches)(const Plan& plan, const Buffers& buffers,
                                                  void* workspace, EncodeTiled encode_tiled,
                                                  int64_t* intermediate_bytes);
};

const FusedKernel& fused_kernel_sm100a();
const FusedKernel& fused_kernel_sm90a();
const FusedKernel& fused_kernel_sm80();

}  // namespace dualgemm::cuda
