// How far an FP32 computation of the dual GEMM may lie from the exact result, element by element.
// The derivation is docs/numerics.md, "Error bound".
#pragma once

#include <cstdint>
#include <vector>

#include "reference/dual_gemm.hpp"

namespace dualgemm::reference {

// What is known of the order in which a backend adds the products of one element.
enum class Accumulation : int32_t {
  kBlockOrder = 0,  // ascending 16-blocks, each exact, one rounding a block
  // ascending 16-blocks: 16 fused multiply-adds of a and code in ascending k from 0, then one more
  // with the block scale: fma(partial, scale, sum)
  kBlockPartial = 1,
  kAnyOrder = 2,  // any order, at the most k roundings on the way of each product
  // ascending steps of four 16-blocks, each exact: they and the sum so far are cut off 35 bits
  // below the largest exponent among the products of scales and the sum, added, and cut to FP32
  kTensorCoreStep = 3,
  // ascending 16-blocks: in each the products of a and code in any order from 0, at the most 16
  // roundings, subnormal operands and results flushed to zero; then fma(partial, scale, sum)
  kBlockPairs = 4,
};

// What the kernels of `isa` do. AMX tiles take NVFP4 activations only, AVX-512's pairs bf16.
Accumulation accumulation_of(const Problem& problem, Isa isa) noexcept;

// Bound on |FP32 accumulator - acc.value|.
double accumulator_error(const Accumulator& acc, int64_t k, Accumulation accumulation) noexcept;

// Every FP32 result before rounding to D's type lies in lo .. hi; both are FP32 values.
struct Interval {
  float lo = 0.0f, hi = 0.0f;
};
Interval output_interval(const Element& element, const core::ResolvedActivation& act, int64_t k,
                         Accumulation accumulation) noexcept;
// The same of products that stand side by side: one, its bias, its activation (null: none) and the
// residual.
Interval side_by_side_interval(const Element& element, const core::ResolvedActivation* act,
                               int64_t k, Accumulation accumulation) noexcept;

// The one that the problem's combination asks for.
Interval interval_of(const Element& element, const core::ResolvedProblem& problem,
                     Accumulation accumulation) noexcept;

// One tile of D compared with the oracle.
struct TileCheck {
  int64_t batch = 0;         // of Gate and Up
  int64_t row = 0, col = 0;  // of the tile's first element; row counts inside A and D's batch
  int64_t rows = 0, cols = 0;
  int64_t failed = 0;  // elements (NVFP4 D: or their block's scale) outside the bound
  // The worst element: a failed one if there is any, else the one that uses most of its bound.
  double worst_share = 0.0;  // |actual - expected| / the bound on that side; > 1 only if failed
  int64_t worst_row = 0, worst_col = 0;
  double actual = 0.0, expected = 0.0;
  double lowest = 0.0, highest = 0.0;  // what would have been accepted
};

TileCheck check_tile(const core::ResolvedProblem& problem, const Buffers& buffers,
                     const core::RowGroup& group, int64_t row_begin, int64_t rows,
                     int64_t col_begin, int64_t cols, Accumulation accumulation);

// All tiles of D, in order of group, row, column. tile_cols: a multiple of 16.
std::vector<TileCheck> check_output(const Problem& problem, const Buffers& buffers,
                                    Accumulation accumulation, int64_t tile_rows = 64,
                                    int64_t tile_cols = 64);

}  // namespace dualgemm::reference
