// The epilogue as one of CUTLASS's visitor trees, in which the second product is a node.
// Included behind gemm.cuh.
#pragma once

#include <cutlass/epilogue/thread/activation.h>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/epilogue/fusion/sm90_visitor_compute_tma_warpspecialized.hpp>
#include <cutlass/epilogue/fusion/sm90_visitor_load_tma_warpspecialized.hpp>
#include <cutlass/epilogue/fusion/sm90_visitor_tma_warpspecialized.hpp>

#include "cuda/cutlass/gated_store.cuh"

namespace dualgemm::cuda::gated {

namespace fusion = cutlass::epilogue::fusion;

// A leaf: the product of Up, as Sm90AccFetch is that of Gate. VisitorStore hands it over in the
// place where the trees of CUTLASS find a loaded source matrix (C), which these kernels have not.
struct UpAccFetch : fusion::Sm90VisitorImpl<> {
  using fusion::Sm90VisitorImpl<>::Sm90VisitorImpl;

  template <class Registers>
  struct ConsumerStoreCallbacks : fusion::EmptyConsumerStoreCallbacks {
    const Registers& up;
    CUTLASS_DEVICE explicit ConsumerStoreCallbacks(const Registers& registers) : up(registers) {}

    template <class ElementAccumulator, int kCount>
    CUTLASS_DEVICE cutlass::Array<float, kCount> visit(
        const cutlass::Array<ElementAccumulator, kCount>&, int epi_v, int, int) {
      return cute::recast<cutlass::Array<float, kCount>>(up)(epi_v);
    }
  };

  template <bool kReferenceSource, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(const fusion::ConsumerStoreArgs<Args...>& args) {
    using Registers = cute::remove_cvref_t<decltype(args.tCrC)>;
    return ConsumerStoreCallbacks<Registers>(args.tCrC);
  }
};

inline constexpr auto kRounding = cutlass::FloatRoundStyle::round_to_nearest;
using ScalarOfBatch = fusion::Sm90ScalarBroadcast<float, cute::Stride<cute::_0, cute::_0, int64_t>>;
template <class Product>
using Scaled =
    fusion::Sm90TreeVisitor<fusion::Sm90Compute<cutlass::multiplies, float, float, kRounding>,
                            ScalarOfBatch, Product>;
template <template <class> class Activation, class Product>
using Activated =
    fusion::Sm90TreeVisitor<fusion::Sm90Compute<Activation, float, float, kRounding>, Product>;
// The notes' multiplies(SiLU(acc0), acc1), with both global scales.
template <template <class> class Activation, class Output>
using GatedTree =
    fusion::Sm90TreeVisitor<fusion::Sm90Compute<cutlass::multiplies, Output, float, kRounding>,
                            Activated<Activation, Scaled<fusion::Sm90AccFetch>>,
                            Scaled<UpAccFetch>>;

// Stores what a tree makes of two products: `Tree`, whose leaves are Sm90AccFetch for Gate and
// UpAccFetch for Up. Output: a 16-bit type, which kOutput names.
template <class Tree, OutputType kOutput>
class VisitorStore {
 public:
  using Output =
      std::conditional_t<kOutput == OutputType::kF16, cutlass::half_t, cutlass::bfloat16_t>;
  using EpilogueTile = cute::Shape<cute::Int<kHalfTile>, cute::Int<kOverlapCols>>;
  using CopyOpT2R = cute::SM100_TMEM_LOAD_32dp32b32x;
  using ElementC = void;
  using ElementD = Output;
  using StrideC = cute::Stride<int64_t, cute::_1, int64_t>;
  using StrideD = StrideC;
  struct SharedStorage {
    typename Tree::SharedStorage tree;
  };
  struct Arguments {
    typename Tree::Arguments tree{};
    EpilogueParams place{};  // where D lies; the tree has the rest
  };
  struct Params {
    typename Tree::Params tree{};
    EpilogueParams place{};
  };
  static constexpr int ThreadCount = 128;
  static constexpr uint32_t TmaTransactionBytes = 0;

  CUTLASS_DEVICE VisitorStore(const Params& params, SharedStorage& shared)
      : tree_(params.tree, shared.tree), place_(params.place) {}

  template <class ProblemShape>
  static Params to_underlying_arguments(const ProblemShape& shape, const Arguments& arguments,
                                        void* workspace) {
    return {Tree::to_underlying_arguments(shape, arguments.tree, workspace), arguments.place};
  }
  template <class ProblemShape>
  static size_t get_workspace_size(const ProblemShape& shape, const Arguments& arguments) {
    return Tree::get_workspace_size(shape, arguments.tree);
  }
  template <class ProblemShape>
  static bool can_implement(const ProblemShape& shape, const Arguments& arguments) {
    return Tree::can_implement(shape, arguments.tree);
  }

  // Called by Sm100TmaWarpSpecializedAdapter once the accumulator is full.
  template <bool kSharedMiddle, class AccPipeline, class AccState, class ProblemShape, class Tile,
            class TileCoord, class Accumulator>
  CUTLASS_DEVICE auto operator()(AccPipeline acc_pipeline, AccState acc_state,
                                 const ProblemShape& problem_shape, const Tile& tile,
                                 const TileCoord& coord, const Accumulator& accumulator,
                                 SharedStorage&) {
    using namespace cute;
    const int thread = static_cast<int>(threadIdx.x % kHalfTile);
    // D's shape and tile, where CUTLASS has those of the interleaved weights.
    const auto shape = make_shape(static_cast<int>(place_.m), static_cast<int>(place_.n),
                                  get<2>(problem_shape), get<3>(problem_shape));
    const auto d_tile = make_shape(Int<kHalfTile>{}, Int<kHalfTile>{}, get<2>(tile));
    const auto step_tile = Shape<Int<kHalfTile>, Int<kStepCols>>{};

    float gate[kStepCols], up[kStepCols];
    const auto registers = make_layout(Shape<Shape<Int<kStepCols>, _1>, _1, _1>{});
    Tensor gate_registers = make_tensor(make_rmem_ptr(gate), registers);
    Tensor up_registers = make_tensor(make_rmem_ptr(up), registers);

    Tensor columns = flat_divide(accumulator(make_coord(_, _), _0{}, _0{}), step_tile);
    const auto tiled_copy = make_tmem_copy(CopyOpT2R{}, columns(_, _, _0{}, _0{}));
    Tensor coords = local_tile(make_identity_tensor(select<0, 1, 3>(shape)), take<0, 2>(d_tile),
                               select<0, 1, 3>(coord));
    Tensor thread_coords = tiled_copy.get_slice(thread).partition_D(flat_divide(coords, step_tile));
    const auto extents = make_coord(get<0>(shape), get<1>(shape));
    const auto residue = extents - coords(_0{});
    const auto thread_residue = extents - thread_coords(_0{});
    Tensor relative_coords = make_coord_tensor(coords.layout());
    Tensor relative_thread_coords = make_coord_tensor(thread_coords.layout());
    auto callbacks = tree_.template get_consumer_store_callbacks<false>(fusion::ConsumerStoreArgs{
        shape, d_tile, coord, 0, step_tile, tiled_copy, relative_coords, residue,
        relative_thread_coords, thread_residue, up_registers, thread});

    callbacks.begin();
    const auto row = static_cast<uint32_t>(get<0>(coord) * kHalfTile + thread);
    const auto n_begin = static_cast<uint32_t>(get<1>(coord) * kHalfTile);
    const auto batch = static_cast<uint32_t>(get<3>(coord));
    const AccState next = for_each_step<kSharedMiddle>(
        acc_pipeline, acc_state, accumulator,
        [&](int step, auto& copy_step, const auto& gate_columns, const auto& up_columns,
            const auto& release) {
          callbacks.begin_loop(0, step);
          copy(copy_step, gate_columns, gate_registers);
          copy(copy_step, up_columns, up_registers);
          cutlass::arch::fence_view_async_tmem_load();
          release();
          const auto outputs = callbacks.visit(
              recast<cutlass::Array<float, kStepCols>>(gate_registers)(0), 0, 0, step);
          callbacks.end_loop(0, step);
          store(batch, row, n_begin + static_cast<uint32_t>(step) * kStepCols, outputs);
        });
    callbacks.end();
    return make_tuple(next);
  }

 private:
  Tree tree_;
  const EpilogueParams& place_;

  CUTLASS_DEVICE void store(uint32_t batch, uint32_t row, uint32_t col,
                            const cutlass::Array<Output, kStepCols>& outputs) const {
    if (row >= place_.m || col >= place_.n) return;
    uint32_t words[kStepCols / 2];
#pragma unroll
    for (int i = 0; i < kStepCols / 2; ++i) {
      const Output low = outputs[2 * i], high = outputs[2 * i + 1];
      words[i] = low.raw() | static_cast<uint32_t>(high.raw()) << 16;
    }
    store_words<kOutput, kStepCols>(
        place_.d + batch * place_.d_batch_bytes + row * place_.d_row_bytes + int64_t{2} * col,
        words, static_cast<int>(place_.n - col));
  }
};

}  // namespace dualgemm::cuda::gated
