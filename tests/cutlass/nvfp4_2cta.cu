// SM100, two CTAs per MMA: tile 256 x 128 x 256, cluster 4 x 2 with TMA multicast of A and B, no C,
// BF16 out.
#include "nvfp4_gemm.cuh"

using Gemm = cutlass_case::Nvfp4Gemm<
    cute::Shape<cute::_256, cute::_128, cute::_256>, cute::Shape<cute::_4, cute::_2, cute::_1>,
    cutlass::gemm::collective::StageCount<3>, cutlass::gemm::KernelTmaWarpSpecialized2SmNvf4Sm100,
    cutlass::epilogue::TmaWarpSpecialized2Sm, void, cutlass::bfloat16_t>;
using Kernel = Gemm::Kernel;

extern "C" __global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock, 1)
    cutlass_nvfp4_2cta(const __grid_constant__ Kernel::Params params) {
  extern __shared__ char shared[];
  Kernel{}(params, shared);
}

// Two clusters beside each other; half of the second lies outside of n, and the last rows of each
// outside of m.
int main(int argc, char** argv) {
  return cutlass_case::run_main(argc, argv, [](const std::filesystem::path& folder) {
    using cutlass_case::Scales;
    const auto write = [&](const char* name, const cutlass_case::Problem& problem, Scales scales) {
      cutlass_case::write_nvfp4_case<Gemm, void, cutlass::bfloat16_t>(
          folder / name, "cutlass_nvfp4_2cta", problem, scales);
    };
    write("exact", {488, 360, 544, 1, 32, 0, 8, 1.0f, 0.0f, 201}, Scales::kExact);
    write("range", {264, 136, 1312, 1, 0, 64, 0, 0.37f, 0.0f, 202}, Scales::kRange);
  });
}
