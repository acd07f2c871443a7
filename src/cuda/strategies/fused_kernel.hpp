// What the fused strategy says of an instruction set; its kernels are families (cuda/families.hpp).
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/runtime/architectures.hpp"
#include "cuda/runtime/kernel_launch.hpp"
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

// That of all kernels that decode to 16 bits and multiply by mma.sync or wgmma: what one GPU
// prepared another may use.
extern const WeightPacking kPackingFor16Bits;

// The numerics of the kernels that decode to 16-bit numbers.
inline constexpr const char* kTensorCoreNumerics =
    "operands exact in fp16 or bf16, products added in FP32 in the order of the tensor cores: the "
    "bits are the same in every run";

struct FusedKernel {
  Isa isa;
  const char* numerics;  // Strategy::numerics()
  Status (*supports)(const Problem& problem);
  // Why no family of this GPU has what the plan asks for, if that can be said more exactly than by
  // a list of the others; null: it cannot.
  Status (*check)(const Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints);
  const WeightPacking* packing = nullptr;  // null: the kernels take unpacked weights only
};

#define DUALGEMM_DECLARE_FUSED_KERNEL(name, isa, runs) const FusedKernel& fused_kernel_##name();
DUALGEMM_CUDA_ARCHITECTURES(DUALGEMM_DECLARE_FUSED_KERNEL)
#undef DUALGEMM_DECLARE_FUSED_KERNEL

}  // namespace dualgemm::cuda
