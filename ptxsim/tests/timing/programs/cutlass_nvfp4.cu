// CUTLASS's GEMM for RTX 50 and DGX Spark: NVFP4 operands, sums in FP32, D in half precision; tiles
// of 128 x 128 x 128 and whatever else its builders choose, as xinyang-zhou/sm120_nvfp4_ops
// measured it (docs/PERFORMANCE.md there).
//   M N K
// Launches it once below `ptxsim exec`; results are not looked at (sm120_nvfp4.cu of the programs
// does).
#include "cutlass/cutlass.h"
#include "cutlass/detail/sm100_blockscaled_layout.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"
#include "program.cuh"

namespace {

using Pair = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using Half = cutlass::half_t;
using RowMajor = cutlass::layout::RowMajor;
using Tile = cute::Shape<cute::_128, cute::_128, cute::_128>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, RowMajor, 8, Half,
    RowMajor, 8, cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Pair, RowMajor, 32, Pair,
    cutlass::layout::ColumnMajor, 32, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
        sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Kernel =
    cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, void>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

void check(cutlass::Status status, const char* what) {
  if (status == cutlass::Status::kSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cutlass::cutlassGetStatusString(status));
  std::exit(1);
}

size_t scales_of(size_t rows, size_t k) { return (rows + 127) / 128 * 128 * k / 16; }

void launch(int m, int n, int k) {
  using Scales = Mainloop::Sm1xxBlkScaledConfig;
  const auto shape = cute::make_shape(m, n, k, 1);
  Gemm::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = shape;
  auto& mainloop = arguments.mainloop;
  mainloop.ptr_A = program::room_for<cutlass::float_e2m1_t>(size_t{1} * m * k / 2);
  mainloop.ptr_B = program::room_for<cutlass::float_e2m1_t>(size_t{1} * n * k / 2);
  mainloop.dA = cutlass::make_cute_packed_stride(Kernel::StrideA{}, {m, k, 1});
  mainloop.dB = cutlass::make_cute_packed_stride(Kernel::StrideB{}, {n, k, 1});
  mainloop.ptr_SFA = program::room_for<cutlass::float_ue4m3_t>(scales_of(m, k));
  mainloop.ptr_SFB = program::room_for<cutlass::float_ue4m3_t>(scales_of(n, k));
  mainloop.layout_SFA = Scales::tile_atom_to_shape_SFA(shape);
  mainloop.layout_SFB = Scales::tile_atom_to_shape_SFB(shape);
  arguments.epilogue.thread.alpha = 1;
  arguments.epilogue.ptr_D = program::room_for<Half>(size_t{1} * m * n);
  arguments.epilogue.dD = cutlass::make_cute_packed_stride(Kernel::StrideD{}, {m, n, 1});
  program::check(
      cudaDeviceGetAttribute(&arguments.hw_info.sm_count, cudaDevAttrMultiProcessorCount, 0),
      "cudaDeviceGetAttribute");
  Gemm gemm;
  check(gemm.can_implement(arguments), "can_implement");
  check(gemm.initialize(arguments), "initialize");
  check(gemm.run(), "run");
  program::check(cudaDeviceSynchronize(), "the kernel");
}

}  // namespace

int main(int argc, char** argv) {
  const char* usage = "M N K";
  const program::Options options = program::parse(argc, argv, 3, usage);
  if (options.time) {
    std::fprintf(stderr, "%s %s: only one launch, no times\n", argv[0], usage);
    return 2;
  }
  launch(options.sizes[0], options.sizes[1], options.sizes[2]);
  return 0;
}
