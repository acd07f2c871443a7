// The fused strategy's kernels: one for each instruction set, behind the same functions.
#pragma once

#include <vector>

#include "core/problem.hpp"
#include "cuda/runtime/architectures.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// What can be done once per weight: another order in memory, by one launch.
struct WeightPacking {
  PreparedFormat (*format)(const Problem& problem);
  int64_t (*batch_bytes)(const Problem& problem);  // of Gate and Up together, without a header
  // `out`: behind the first header, at a multiple of 256.
  KernelLaunch (*launch)(const core::ResolvedProblem& problem, const Buffers& buffers,
                         uint8_t* out);
};

// The numerics of the kernels that decode to 16-bit numbers.
inline constexpr const char* kTensorCoreNumerics =
    "operands exact in fp16 or bf16, products added in FP32 in the order of the tensor cores: the "
    "bits are the same in every run";

struct FusedKernel {
  Isa isa;
  const char* numerics;  // Strategy::numerics()
  Status (*supports)(const Problem& problem);
  // Fills in what Strategy::plan_constrained() does, but workspace_bytes and prepared_bytes.
  Status (*plan)(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints);
  int64_t (*workspace_bytes)(const Plan& plan);
  // prepared: packed weights behind the first header, or null where the plan is not for them.
  // intermediate_bytes: written to and read from the workspace.
  Expected<std::vector<KernelLaunch>> (*launches)(const Plan& plan, const Buffers& buffers,
                                                  const uint8_t* prepared, void* workspace,
                                                  EncodeTiled encode_tiled,
                                                  int64_t* intermediate_bytes);
  const WeightPacking* packing = nullptr;  // null: the kernel takes unpacked weights only
};

#define DUALGEMM_DECLARE_FUSED_KERNEL(name, isa, runs) const FusedKernel& fused_kernel_##name();
DUALGEMM_CUDA_ARCHITECTURES(DUALGEMM_DECLARE_FUSED_KERNEL)
#undef DUALGEMM_DECLARE_FUSED_KERNEL

}  // namespace dualgemm::cuda
