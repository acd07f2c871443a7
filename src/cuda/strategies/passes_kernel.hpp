// The kernels of fused_epilogue and fused_sequential, for one instruction set each, behind the same
// functions.
#pragma once

#include <vector>

#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// How Gate's product reaches the epilogue of Up's: R1 in memory, or one launch keeps it.
enum class GateProduct { kInMemory, kKept };

struct PassesKernel {
  Isa isa;
  Status (*supports)(const Problem& problem, GateProduct gate);
  // Fills in what Strategy::plan_constrained() does, but workspace_bytes.
  Status (*plan)(Plan& plan, GateProduct gate, const DeviceCaps& caps,
                 const PlanConstraints& constraints);
  int64_t (*workspace_bytes)(const Plan& plan, GateProduct gate);
  // encoder: asked where there are tensor maps to make, which not every kernel has.
  Expected<std::vector<KernelLaunch>> (*launches)(const Plan& plan, GateProduct gate,
                                                  const Buffers& buffers, void* workspace,
                                                  Expected<EncodeTiled> (*encoder)());
};

const PassesKernel& passes_kernel_sm90a();
const PassesKernel& passes_kernel_sm80();

}  // namespace dualgemm::cuda
