// Two CTAs a tile of 256 x 128 of D: each has an accumulator of 128 x 256, and loads half of the
// weights.
#include "cuda/cutlass/gemm.cuh"

namespace dualgemm::cuda::gated {
namespace {

using Types = GatedGemm<2, GatedStore>;

}  // namespace

extern "C" __global__ void __launch_bounds__(Types::Kernel::MaxThreadsPerBlock, 1)
    dual_gemm_cutlass_2sm(const __grid_constant__ Types::Kernel::Params params) {
  extern __shared__ char dynamic_smem[];
  Types::Kernel{}(params, dynamic_smem);
}

const Instance& instance_2sm() {
  static constexpr const char* kEntry = "dual_gemm_cutlass_2sm";
  static const Instance instance{
      KernelId::kCutlass,
      kEntry,
      true,
      2 * kHalfTile,
      Types::Mainloop::DispatchPolicy::Stages,
      [](const Gemm& gemm, EncodeTiled encode_tiled) {
        const Kernel kernel{"gated_2sm", kEntry,
                            reinterpret_cast<const void*>(&dual_gemm_cutlass_2sm)};
        return launch_of<Types>(kernel, gemm, gemm.epilogue, encode_tiled);
      }};
  return instance;
}

}  // namespace dualgemm::cuda::gated
