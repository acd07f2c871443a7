// Rows that CTAs take one after the other, or divide: what the quantisers of rows share.
#pragma once

#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/kernels/convert/tensor_rows.cuh"

namespace dualgemm::cuda {

// The largest of all threads' numbers, in every thread. Before the next call: a barrier.
DUALGEMM_DEVICE uint32_t max_of_row(uint32_t value) {
  __shared__ uint32_t of_warp[kMaxRowThreads / 32];
  const uint32_t warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const uint32_t largest = __reduce_max_sync(0xFFFFFFFFu, value);
  if (lane == 0) of_warp[threadIdx.x / 32] = largest;
  __syncthreads();
  return __reduce_max_sync(0xFFFFFFFFu, lane < warps ? of_warp[lane] : 0u);
}

// What is not x: padded columns of swizzled tiles, and the rows below. `wants`: which blocks.
template <class Wants>
DUALGEMM_DEVICE void clear_padding(const TensorParams& p, const RowPlace& at, const Wants& wants) {
  // Most rows have none.
  if (p.scale_ld != 0 || (p.row_units.value == p.blocks && !has_rows_below(p, at))) return;
  for (uint32_t block = threadIdx.x; block < p.row_units.value; block += blockDim.x) {
    if (!wants(block)) continue;
    if (block >= p.blocks && at.has_scales) *scale_at(p, at, at.scale_row, block) = 0;
    clear_rows_below(p, at, block);
  }
}

DUALGEMM_DEVICE void store_found_scale(const QuantizeParams& p, const RowPlace& at, float scale) {
  p.found_scale[static_cast<int64_t>(at.batch) * p.tensor.rows.value + at.row] = scale;
}

// The CTAs that divide a row, and this one's part of it: every so many-th 32 blocks.
struct RowPart {
  uint32_t mask, index;
  DUALGEMM_DEVICE explicit RowPart(const QuantizeParams& p)
      : mask((1u << p.row_shift) - 1), index(blockIdx.x & mask) {}
  DUALGEMM_DEVICE bool has(uint32_t block) const { return (block / 32 & mask) == index; }
};

DUALGEMM_DEVICE RowPlace place_of(const TensorParams& p, uint32_t index) {
  ExpertCursor cursor(p.groups, p.rows.value);
  if (p.groups.expert_offsets != nullptr) cursor.seek(p.row_begin + index);
  return place_of_row(p, cursor, index);
}

}  // namespace dualgemm::cuda
