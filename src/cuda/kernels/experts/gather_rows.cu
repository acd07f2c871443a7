// Rows copied by index, a warp a row at a time, 16, 4 or 1 bytes a lane as addresses allow.
#include "cuda/kernels/experts/routing_kernels.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda {
namespace {

template <class Unit>
__device__ void copy_row(const uint8_t* from, uint8_t* to, uint32_t bytes) {
  for (uint32_t i = threadIdx.x % 32; i < bytes / sizeof(Unit); i += 32)
    reinterpret_cast<Unit*>(to)[i] = reinterpret_cast<const Unit*>(from)[i];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kGatherThreads)
    dual_gemm_gather_rows(const __grid_constant__ GatherParams p) {
#if __CUDA_ARCH__ >= 900
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
#endif
  const uint32_t warps = kGatherThreads / 32;
  for (uint32_t row = blockIdx.x * warps + threadIdx.x / 32; row < p.rows;
       row += gridDim.x * warps) {
    const uint8_t* const from = p.from + p.index(row) * p.from_row_bytes;
    uint8_t* const to = p.to + static_cast<uint64_t>(row) * p.row_bytes;
    if (p.unit == 16) {
      copy_row<uint4>(from, to, p.row_bytes);
    } else if (p.unit == 4) {
      copy_row<uint32_t>(from, to, p.row_bytes);
    } else {
      copy_row<uint8_t>(from, to, p.row_bytes);
    }
  }
}

Kernel gather_rows_kernel() {
  return {"gather_rows", "dual_gemm_gather_rows",
          reinterpret_cast<const void*>(&dual_gemm_gather_rows)};
}

}  // namespace dualgemm::cuda
