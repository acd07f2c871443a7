// An epilogue of CUTLASS's SM100 kernels for two products in one accumulator: the tile's first 128
// columns are Gate's, the last 128 Up's. Both halves are read from TMEM, joined, and stored.
#pragma once

#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/detail.hpp>

#include "cuda/cutlass/params.hpp"
#include "cuda/device/activation.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/ptx/tcgen05.cuh"

namespace dualgemm::cuda::gated {

// What stands in D, in FP32: one thread's kCount neighbouring columns from `col` on.
template <int kCount>
DUALGEMM_DEVICE void join_products(const EpilogueParams& params, uint32_t batch, uint32_t row,
                                   uint32_t col, float (&gate)[kCount], float (&up)[kCount]) {
  const Alphas alphas = alphas_of(params, batch);
  const float row_scale = row < params.m ? row_scale_of(params, batch, row) : 0.0f;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    gate[i] = gate[i] * alphas.gate * row_scale;
    up[i] = up[i] * alphas.up * row_scale;
  }
  add_row_bias(params.bias, batch * params.bias.stride + col, col, params.n, gate, up);
  activate_all(params.act, gate, up);
}

template <int kCount>
DUALGEMM_DEVICE void store_columns(const EpilogueParams& params, uint32_t batch, uint32_t row,
                                   uint32_t col, const float (&values)[kCount]) {
  if (row >= params.m || col >= params.n) return;
  const auto valid = static_cast<int>(params.n - col);
  uint8_t* const to = params.d + batch * params.d_batch_bytes + row * params.d_row_bytes +
                      static_cast<uint64_t>(col) * bytes_of(params.output);
  if (params.output == OutputType::kF16) {
    store_row<OutputType::kF16>(to, values, valid);
  } else if (params.output == OutputType::kBF16) {
    store_row<OutputType::kBF16>(to, values, valid);
  } else {
    store_row<OutputType::kF32>(to, values, valid);
  }
}

// One epilogue step: columns of D, so as many of Gate and of Up.
inline constexpr int kStepCols = 32;

// Two accumulators take turns in TMEM and share their middle: the last kOverlapCols columns of the
// first are the first ones of the second, since both and the scales take more than 512 columns.
inline constexpr int kOverlapCols = 64;
static_assert(2 * 256 - kOverlapCols + 64 <= 512, "the scale factors of a stage take 64 at most");

// What is the same in every epilogue of two products: a step of 32 columns at a time, those first
// that the next tile's accumulator overwrites.
//
// `visit(step, tiled_copy, gate_columns, up_columns)` is given views of TMEM and joins what they
// hold. Runs on: the epilogue's 128 threads. Arrives: the accumulator's empty barrier.
template <bool kSharedMiddle, class AccPipeline, class AccState, class Accumulator, class Visit>
DUALGEMM_DEVICE auto for_each_step(AccPipeline& acc_pipeline, AccState acc_state,
                                   const Accumulator& accumulator, const Visit& visit) {
  using namespace cute;
  static_assert(kSharedMiddle && AccPipeline::Stages == 1,
                "tiles of 256 columns: one barrier for two accumulators that overlap");
  constexpr int kSteps = kHalfTile / kStepCols;
  Tensor columns = flat_divide(accumulator(make_coord(_, _), _0{}, _0{}),
                               Shape<Int<kHalfTile>, Int<kStepCols>>{});  // (128, 32, 1, 8)
  static_assert(decltype(size<3>(columns))::value == 2 * kSteps);
  auto tiled_copy = make_tmem_copy(SM100_TMEM_LOAD_32dp32b32x{}, columns(_, _, _0{}, _0{}));
  const auto thread_copy = tiled_copy.get_slice(threadIdx.x % kHalfTile);
  Tensor thread_columns = thread_copy.partition_S(columns);  // (T2R, T2R_M, T2R_N, 1, 8)

  ptx::tcgen05_fence_after_thread_sync();
  // The first accumulator ends where the second begins: from the back, or from the front.
  const bool from_the_back = acc_state.phase() == 0;
#pragma unroll 1
  for (int i = 0; i < kSteps; ++i) {
    const int step = from_the_back ? kSteps - 1 - i : i;
    visit(step, tiled_copy, thread_columns(_, _, _, _0{}, step),
          thread_columns(_, _, _, _0{}, kSteps + step), [&] {
            if (i != kOverlapCols / kStepCols - 1) return;
            ptx::tcgen05_fence_before_thread_sync();
            acc_pipeline.consumer_release(acc_state);
          });
  }
  ++acc_state;
  return acc_state;
}

// A store collective of our own. Any activation, both alphas, row scales, biases; D of any
// size and alignment. One accumulator is released as soon as its shared columns are read.
class GatedStore {
 public:
  using EpilogueTile = cute::Shape<cute::Int<kHalfTile>, cute::Int<kOverlapCols>>;
  using CopyOpT2R = cute::SM100_TMEM_LOAD_32dp32b32x;
  using ElementC = void;
  using ElementD = float;  // of what it computes; EpilogueParams::output says what it stores
  using StrideC = cute::Stride<int64_t, cute::_1, int64_t>;
  using StrideD = StrideC;
  using Arguments = EpilogueParams;
  using Params = EpilogueParams;
  struct SharedStorage {};
  static constexpr int ThreadCount = 128;
  static constexpr uint32_t TmaTransactionBytes = 0;

  CUTLASS_DEVICE GatedStore(const Params& params, SharedStorage&) : params_(params) {}

  template <class ProblemShape>
  static Params to_underlying_arguments(const ProblemShape&, const Arguments& arguments, void*) {
    return arguments;
  }
  template <class ProblemShape>
  static size_t get_workspace_size(const ProblemShape&, const Arguments&) {
    return 0;
  }
  template <class ProblemShape>
  static bool can_implement(const ProblemShape&, const Arguments&) {
    return true;
  }

  // Called by Sm100TmaWarpSpecializedAdapter once the accumulator is full.
  template <bool kSharedMiddle, class AccPipeline, class AccState, class ProblemShape, class Tile,
            class TileCoord, class Accumulator>
  CUTLASS_DEVICE auto operator()(AccPipeline acc_pipeline, AccState acc_state, const ProblemShape&,
                                 const Tile&, const TileCoord& coord,
                                 const Accumulator& accumulator, SharedStorage&) const {
    using namespace cute;
    const auto row = static_cast<uint32_t>(get<0>(coord) * kHalfTile + threadIdx.x % kHalfTile);
    const auto n_begin = static_cast<uint32_t>(get<1>(coord) * kHalfTile);
    const auto batch = static_cast<uint32_t>(get<3>(coord));
    return make_tuple(for_each_step<kSharedMiddle>(
        acc_pipeline, acc_state, accumulator,
        [&](int step, auto& tiled_copy, const auto& gate_columns, const auto& up_columns,
            const auto& release) {
          float gate[kStepCols], up[kStepCols];
          const auto registers = make_layout(Shape<Shape<Int<kStepCols>, _1>, _1, _1>{});
          Tensor gate_registers = make_tensor(make_rmem_ptr(gate), registers);
          Tensor up_registers = make_tensor(make_rmem_ptr(up), registers);
          copy(tiled_copy, gate_columns, gate_registers);
          copy(tiled_copy, up_columns, up_registers);
          cutlass::arch::fence_view_async_tmem_load();
          release();
          const uint32_t col = n_begin + static_cast<uint32_t>(step) * kStepCols;
          join_products(params_, batch, row, col, gate, up);
          store_columns(params_, batch, row, col, gate);
        }));
  }

 private:
  const Params& params_;
};

}  // namespace dualgemm::cuda::gated
