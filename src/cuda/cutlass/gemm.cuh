// From CUTLASS's parts to a kernel, and from a Gemm to its launch. Included by the files that
// compile one kernel each: a minute or two for the compiler.
#pragma once

// CUTLASS calls the function that is linked; here that is ours (tensor_map_encoder.hpp).
#include <cuda.h>
#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1
#define cuTensorMapEncodeTiled ::dualgemm::cuda::gated::encode_in_scope

#include <cstring>
#include <type_traits>

#include "cuda/cutlass/tensor_map_encoder.hpp"
// The builders and kernels of CUTLASS that are used, in this order: the umbrella headers
// bring those of every architecture.
#include <cutlass/cutlass.h>
//
#include <cutlass/gemm/kernel/gemm_universal_decl.h>
//
#include <cutlass/gemm/kernel/tile_scheduler.hpp>
//
#include <cutlass/gemm/collective/collective_builder_decl.hpp>
#include <cutlass/gemm/collective/collective_mma_decl.hpp>
#include <cutlass/gemm/collective/sm100_blockscaled_mma_warpspecialized.hpp>
//
#include <cutlass/gemm/collective/builders/sm100_blockscaled_umma_builder.inl>
#include <cutlass/gemm/kernel/sm100_gemm_tma_warpspecialized.hpp>

#include "cuda/cutlass/gated_store.cuh"
#include "cuda/cutlass/instances.hpp"

namespace dualgemm::cuda::gated {

// kSms: 1, or 2 that share each MMA and stand side by side along m. The shared memory that the
// epilogue takes none of goes to stages.
template <int kSms, class EpilogueOp>
struct GatedGemm {
  using Pair = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
  using Tile =
      cute::Shape<cute::Int<kHalfTile * kSms>, cute::Int<2 * kHalfTile>, cute::Int<kTileK>>;
  using Cluster = cute::Shape<cute::Int<kSms>, cute::_1, cute::_1>;
  using Schedule =
      std::conditional_t<kSms == 1, cutlass::gemm::KernelTmaWarpSpecialized1SmNvf4Sm100,
                         cutlass::gemm::KernelTmaWarpSpecialized2SmNvf4Sm100>;
  static constexpr int kAlignment = 32;  // of codes: 16 bytes
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, Pair,
      cutlass::layout::RowMajor, kAlignment, Pair, cutlass::layout::ColumnMajor, kAlignment, float,
      Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename EpilogueOp::SharedStorage))>,
      Schedule>::CollectiveOp;
  using Epilogue =
      cutlass::epilogue::collective::detail::Sm100TmaWarpSpecializedAdapter<EpilogueOp>;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
  using ScaleConfig = typename Mainloop::Sm1xxBlkScaledConfig;
};

template <class Stride>
Stride strides_of(const Operand& operand) {
  Stride stride{};
  cute::get<0>(stride) = 2 * operand.row_bytes;
  cute::get<2>(stride) = 2 * operand.batch_bytes;
  return stride;
}

// `layout`: of tight batches.
template <class Layout>
Layout with_batches_apart(const Layout& layout, int64_t bytes) {
  auto stride = layout.stride();
  cute::get<1>(cute::get<2>(stride)) = static_cast<int32_t>(bytes);
  return Layout(layout.shape(), stride);
}

// CUTLASS's parameters, and the grid that its scheduler takes them to.
template <class Types>
Expected<GridLaunch> launch_of(const Kernel& kernel, const Gemm& gemm,
                               const typename Types::Kernel::EpilogueArguments& epilogue,
                               EncodeTiled encode_tiled) {
  using Gemm4 = typename Types::Kernel;
  using Code = typename Types::Mainloop::ArrayElementA;
  using Scale = cutlass::float_ue4m3_t;
  typename Gemm4::Arguments arguments{};
  const auto shape = cute::make_shape(int{gemm.m}, int{gemm.weight_rows}, int{gemm.k}, int{gemm.l});
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = shape;
  arguments.mainloop.ptr_A = reinterpret_cast<const Code*>(gemm.a.codes);
  arguments.mainloop.ptr_B = reinterpret_cast<const Code*>(gemm.weights.codes);
  arguments.mainloop.ptr_SFA = reinterpret_cast<const Scale*>(gemm.a.scales);
  arguments.mainloop.ptr_SFB = reinterpret_cast<const Scale*>(gemm.weights.scales);
  arguments.mainloop.dA = strides_of<typename Gemm4::StrideA>(gemm.a);
  arguments.mainloop.dB = strides_of<typename Gemm4::StrideB>(gemm.weights);
  arguments.mainloop.layout_SFA = with_batches_apart(
      Types::ScaleConfig::tile_atom_to_shape_SFA(shape), gemm.a.scale_batch_bytes);
  arguments.mainloop.layout_SFB = with_batches_apart(
      Types::ScaleConfig::tile_atom_to_shape_SFB(shape), gemm.weights.scale_batch_bytes);
  arguments.epilogue = epilogue;
  // Its scheduler asks the hardware for tiles (CLC) and not how many SMs there are; any number
  // keeps CUTLASS from asking the driver.
  arguments.hw_info.sm_count = 1;

  using Params = typename Gemm4::Params;
  Params params;
  std::memset(static_cast<void*>(&params), 0,
              sizeof params);  // padding, too, is the same each time
  {
    const EncodeScope scope(encode_tiled);
    params = Gemm4::to_underlying_arguments(arguments, nullptr);
    DUALGEMM_TRY(scope.status());
  }
  const dim3 grid = Gemm4::get_grid_shape(params);
  static_assert(sizeof(Params) <= GridLaunch::kMaxParamBytes);
  GridLaunch launch{.kernel = kernel,
                    .grid = {grid.x, grid.y, grid.z},
                    .cluster_ctas = cute::size<0>(typename Types::Cluster{}),
                    .threads = Gemm4::MaxThreadsPerBlock,
                    .dynamic_smem_bytes = Gemm4::SharedStorageSize};
  launch.param_bytes = sizeof(Params);
  std::memcpy(launch.params.data(), static_cast<const void*>(&params), sizeof params);
  return launch;
}

}  // namespace dualgemm::cuda::gated
