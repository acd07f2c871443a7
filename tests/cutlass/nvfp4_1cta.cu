// SM100, one CTA per MMA: tile 128 x 128 x 256, no cluster, C read and scaled, FP32 out.
#include "nvfp4_gemm.cuh"

using Gemm = cutlass_case::Nvfp4Gemm<
    cute::Shape<cute::_128, cute::_128, cute::_256>, cute::Shape<cute::_1, cute::_1, cute::_1>,
    cutlass::gemm::collective::StageCount<3>, cutlass::gemm::KernelTmaWarpSpecialized1SmNvf4Sm100,
    cutlass::epilogue::TmaWarpSpecialized1Sm, float, float>;
using Kernel = Gemm::Kernel;

extern "C" __global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock, 1)
    cutlass_nvfp4_1cta(const __grid_constant__ Kernel::Params params) {
  extern __shared__ char shared[];
  Kernel{}(params, shared);
}

// m, n and k are no multiples of the tile; k = 32 mod 64 leaves half of the last MMA to zero fill.
// A CTA that does all tiles goes around in every ring: 5 k-tiles begin with another of the 3
// stages in each tile, and an odd number of tiles ends with the first of two accumulators and
// responses. With one k-tile the epilogue does not wait for MMAs but for its source.
int main(int argc, char** argv) {
  return cutlass_case::run_main(argc, argv, [](const std::filesystem::path& folder) {
    using cutlass_case::Scales;
    const auto write = [&](const char* name, const cutlass_case::Problem& problem, Scales scales) {
      cutlass_case::write_nvfp4_case<Gemm, float, float>(folder / name, "cutlass_nvfp4_1cta",
                                                         problem, scales);
    };
    write("exact", {328, 264, 1056, 1, 0, 32, 0, 1.0f, 2.0f, 101}, Scales::kExact);
    write("range", {136, 132, 1344, 2, 64, 0, 8, 0.37f, -1.25f, 102}, Scales::kRange);
    write("short", {72, 840, 224, 1, 0, 0, 0, 1.0f, 2.0f, 103}, Scales::kExact);
  });
}
