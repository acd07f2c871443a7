// From memory to a stage by cp.async: rows of 64 bytes of codes, then 8 bytes of scales a row.
//
// Piece p of 16 bytes of row r stands at p ^ (r / 2 % 4): the 8 rows that ldmatrix reads a piece of
// then lie in different banks. What lies at or after n, m or k is zero, scales included: 0 * NaN
// would be NaN.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm120a/place.cuh"
#include "cuda/kernels/sm120a/ring.cuh"
#include "cuda/ptx/cp_async.cuh"

namespace dualgemm::cuda::sm120a {

DUALGEMM_DEVICE uint32_t piece_place(uint32_t row, uint32_t piece) {
  return row * kRowBytes + (piece ^ (row / 2 % kPieces)) * kPieceBytes;
}

DUALGEMM_DEVICE void store_shared_16(uint32_t to, uint4 value) {
  *reinterpret_cast<uint4*>(__cvta_shared_to_generic(to)) = value;
}

// A piece from anywhere.
__device__ __noinline__ void copy_bytes_of_piece(uint32_t to, const uint8_t* from, uint32_t bytes) {
  uint32_t words[4] = {};
#pragma unroll
  for (uint32_t i = 0; i < kPieceBytes; ++i)
    if (i < bytes) words[i / 4] |= static_cast<uint32_t>(from[i]) << (8 * (i % 4));
  store_shared_16(to, make_uint4(words[0], words[1], words[2], words[3]));
}

// The copies of a thread: the same rows in every stage, found once. Rows that do not exist are
// copied from anywhere, 0 bytes of them.
template <Config kCfg>
class Copies {
 public:
  DUALGEMM_DEVICE Copies(const Params& params, const Place& place) {
    code_place_ = piece_place(threadIdx.x / kPieces, piece());
#pragma unroll
    for (int turn = 0; turn < kCodeTurns; ++turn) {
      const uint32_t row = turn * kTurnRows + threadIdx.x / kPieces;
      const uint8_t* const codes = turn < kWeightTurns ? row_of_weights(params, place, row).codes
                                   : row < rows_of(kCfg)
                                       ? row_of_a(params, place, row - kWeightRows).codes
                                       : nullptr;
      codes_[turn] = codes == nullptr ? params.a.rows : codes + piece() * kPieceBytes;
      code_bytes_[turn] = codes == nullptr ? 0 : kPieceBytes;
    }
#pragma unroll
    for (int turn = 0; turn < kScaleTurns; ++turn) {
      const uint32_t row = turn * kThreads + threadIdx.x;
      StageRow of{};
      if (row < kWeightRows) {
        of = row_of_weights(params, place, row);
      } else if (row < rows_of(kCfg)) {
        of = row_of_a(params, place, row - kWeightRows);
      }
      scale_bytes_[turn] = of.scales == nullptr ? 0 : kScaleBytes;
      if (of.scales == nullptr) of = {nullptr, params.a.scales.bytes, 0, 0};
      scales_[turn] = of;
    }
  }

  // Starts the copies of stage number `stage` of k to the stage at `to`, and arrives at `full` when
  // they are complete. One branch for each way to copy, not one for each piece.
  DUALGEMM_DEVICE void start(const Params& params, uint32_t stage, uint32_t to,
                             ptx::Barrier* full) const {
    const uint32_t codes = to + code_place_;
    const uint32_t scales = to + rows_of(kCfg) * kRowBytes + threadIdx.x * kScaleBytes;
    if (params.codes_aligned == 16) {
      copy_codes<16>(params, stage, codes);
    } else if (params.codes_aligned == 8) {
      copy_codes<8>(params, stage, codes);
    } else {
      copy_codes<1>(params, stage, codes);
    }
    if (params.scales_aligned == 8) {
      copy_scales<8>(params, stage, scales);
    } else if (params.scales_aligned == 4) {
      copy_scales<4>(params, stage, scales);
    } else {
      copy_scales<1>(params, stage, scales);
    }
    if (params.codes_aligned == 1 || params.scales_aligned == 1) {
      ptx::cp_async_wait_all();
      ptx::mbarrier_arrive(full);  // for what the thread stored itself, too
    } else {
      ptx::cp_async_mbarrier_arrive(full);
    }
  }

 private:
  static constexpr int kThreads = threads_of(kCfg);
  static constexpr int kTurnRows = kThreads / kPieces;  // whose codes are copied in a turn
  static constexpr int kCodeTurns = (rows_of(kCfg) + kTurnRows - 1) / kTurnRows;
  static constexpr int kWeightTurns = kWeightRows / kTurnRows;
  static constexpr int kScaleTurns = (rows_of(kCfg) + kThreads - 1) / kThreads;
  static_assert(kThreads % kPieces == 0, "a thread has the same piece of all its rows");
  static_assert(kTurnRows % (2 * kPieces) == 0, "and at the same place of a row of banks");

  static DUALGEMM_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
  static DUALGEMM_DEVICE uint32_t piece() { return threadIdx.x % kPieces; }

  template <int kAligned>
  DUALGEMM_DEVICE void copy_codes(const Params& params, uint32_t stage, uint32_t to) const {
    const uint32_t of_a = stage * kRowBytes, first = of_a + piece() * kPieceBytes;
    const uint32_t end = params.k16 * 8, left = first < end ? end - first : 0;
    const int64_t of_weights =
        params.packed.units == nullptr ? of_a : stage * params.packed.chunk_bytes;
#pragma unroll
    for (int turn = 0; turn < kCodeTurns; ++turn) {
      constexpr int kWhole = rows_of(kCfg) / kTurnRows;  // turns in which every thread has a row
      if (turn >= kWhole && thread() >= (rows_of(kCfg) - kWhole * kTurnRows) * kPieces) continue;
      copy_piece<kAligned>(to + turn * kTurnRows * kRowBytes,
                           codes_[turn] + (turn < kWeightTurns ? of_weights : of_a),
                           min(code_bytes_[turn], left));
    }
  }

  // bytes: those that exist; where there are none `from` is not read.
  template <int kAligned>
  static DUALGEMM_DEVICE void copy_piece(uint32_t to, const uint8_t* from, uint32_t bytes) {
    if constexpr (kAligned == 16) {
      ptx::cp_async_16(to, from, bytes);
    } else if constexpr (kAligned == 8) {
      const uint32_t low = min(bytes, 8u);
      ptx::cp_async_8(to, from, low);
      ptx::cp_async_8(to + 8, from + low, bytes - low);
    } else {
      copy_bytes_of_piece(to, from, bytes);
    }
  }

  template <int kAligned>
  DUALGEMM_DEVICE void copy_scales(const Params& params, uint32_t stage, uint32_t to) const {
    const uint32_t first = stage * kStageK16;  // below k / 16
    const uint32_t left = params.k16 - first;
#pragma unroll
    for (int turn = 0; turn < kScaleTurns; ++turn) {
      constexpr int kWhole = rows_of(kCfg) / kThreads;
      if (turn >= kWhole && thread() >= rows_of(kCfg) - kWhole * kThreads) continue;
      const StageRow& of = scales_[turn];
      const uint8_t* const from = of.scales + stage * of.scale_stage;
      const uint32_t at = to + turn * kThreads * kScaleBytes, count = min(scale_bytes_[turn], left);
      if constexpr (kAligned == 8) {
        ptx::cp_async_8(at, from, count);
      } else {
        const uint32_t low = min(count, 4u);
        copy_word<kAligned>(at, from, low);
        copy_word<kAligned>(at + 4, from + of.scale_word, count - low);
      }
    }
  }

  template <int kAligned>
  static DUALGEMM_DEVICE void copy_word(uint32_t to, const uint8_t* from, uint32_t count) {
    if constexpr (kAligned == 4) return ptx::cp_async_4(to, from, count);
    uint32_t four = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < count; ++i) four |= static_cast<uint32_t>(from[i]) << (8 * i);
    *reinterpret_cast<uint32_t*>(__cvta_shared_to_generic(to)) = four;
  }

  uint32_t code_place_;
  const uint8_t* codes_[kCodeTurns];
  uint32_t code_bytes_[kCodeTurns];
  StageRow scales_[kScaleTurns];
  uint32_t scale_bytes_[kScaleTurns];
};

}  // namespace dualgemm::cuda::sm120a
