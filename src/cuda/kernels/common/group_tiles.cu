// The table of tiles of groups, for kernels behind: by one CTA.
#include "cuda/kernels/common/group_tiles_kernel.hpp"
#include "cuda/kernels/common/make_group_tiles.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda {
namespace {

// With one, and all others left to the warp, a call of 8192 rows of 128 experts in tiles of 64 took
// 182.4 us, where all threads looked for the owners of tiles 180.1 (H200).
constexpr uint32_t kTilesOfAThread = 8;

}  // namespace

extern "C" __global__ void __launch_bounds__(kGroupTilesThreads)
    dual_gemm_group_tiles(const __grid_constant__ GroupTilesParams p) {
  __shared__ GroupTilesScratch scratch;
#if __CUDA_ARCH__ >= 900
  ptx::griddepcontrol_wait();  // offsets may be the work of the grid in front, and the table in use
  ptx::griddepcontrol_launch_dependents();
#endif
  const uint32_t tiles =
      make_group_tiles<kGroupTilesThreads, kTilesOfAThread>(p.rows, scratch, p.table + 1);
  if (threadIdx.x == 0) p.table[0] = {tiles, 0, 0, 0, 0};
}

Kernel group_tiles_kernel() {
  return {"group_tiles", "dual_gemm_group_tiles",
          reinterpret_cast<const void*>(&dual_gemm_group_tiles)};
}

}  // namespace dualgemm::cuda
