#include "cuda/cutlass/interleave.hpp"

#include <algorithm>

#include "cuda/device/scale_offset.cuh"
#include "cuda/device/unaligned_word.cuh"

namespace dualgemm::cuda::gated {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 65535;
constexpr int kWordBytes = 8;     // of a row, one thread's piece
constexpr int kScaleWords = 128;  // of a tile of 128 x 4, 4 bytes each

struct Place {
  const InterleaveParams::Source* source;
  int64_t row;  // of it
};

// Where a row of the interleaved operand comes from.
__device__ Place place_of(const InterleaveParams& p, int64_t row) {
  const int64_t tile = row / (2 * kHalfTile), in_tile = row % (2 * kHalfTile);
  return {in_tile < kHalfTile ? &p.gate : &p.up, tile * kHalfTile + in_tile % kHalfTile};
}

__device__ void write_codes(const InterleaveParams& p, int64_t expert, int64_t word) {
  const int64_t row_words = p.layout.row_bytes / kWordBytes;
  const int64_t row = word / row_words, byte = (word - row * row_words) * kWordBytes;
  const Place place = place_of(p, row);
  uint64_t codes = 0;
  if (place.row < p.n && byte < p.k / 2) {
    codes = load_unaligned_u64(place.source->codes + expert * place.source->batch_bytes +
                               place.row * place.source->row_bytes + byte);
  }
  reinterpret_cast<uint64_t*>(p.out + expert * p.expert_bytes)[word] = codes;
}

// Four scales of one row.
__device__ void write_scales(const InterleaveParams& p, int64_t expert, int64_t word) {
  const int64_t tile = word / kScaleWords, in_tile = word % kScaleWords;
  const int64_t tile_row = tile / p.layout.scale_cols;
  // The words of a tile: 4 * (row % 32) + row / 32.
  const int64_t row = tile_row * kHalfTile + in_tile % 4 * 32 + in_tile / 4;
  const int64_t first = (tile - tile_row * p.layout.scale_cols) * 4;
  const Place place = place_of(p, row);
  const uint8_t* const from = place.source->scales + expert * place.source->scale_batch_bytes;
  uint32_t scales = 0;
  for (int i = 0; i < 4; ++i) {
    if (place.row >= p.n || first + i >= p.k / 16) break;
    const int64_t offset =
        scale_offset(place.source->scale_ld, static_cast<uint32_t>(p.layout.scale_cols), place.row,
                     static_cast<uint32_t>(first + i));
    scales |= static_cast<uint32_t>(from[offset]) << (8 * i);
  }
  uint8_t* const out = p.out + expert * p.expert_bytes + p.layout.code_bytes();
  reinterpret_cast<uint32_t*>(out)[word] = scales;
}

}  // namespace

// One thread a word of codes or of scales.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_interleave(const __grid_constant__ InterleaveParams p) {
  const int64_t code_words = p.layout.code_bytes() / kWordBytes;
  const int64_t words = code_words + p.layout.scale_bytes() / 4;
  const int64_t stride = gridDim.x * static_cast<int64_t>(kThreads);
  for (int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; i < words * p.experts;
       i += stride) {
    const int64_t expert = i / words, word = i - expert * words;
    if (word < code_words) {
      write_codes(p, expert, word);
    } else {
      write_scales(p, expert, word - code_words);
    }
  }
}

WeightLayout weight_layout(int64_t n, int64_t k) {
  return {(n + kHalfTile - 1) / kHalfTile, (k / 2 + 15) / 16 * 16, (k + 63) / 64};
}

KernelLaunch interleave_launch(const InterleaveParams& params) {
  KernelLaunch launch{.kernel = {"interleave", "dual_gemm_interleave",
                                 reinterpret_cast<const void*>(&dual_gemm_interleave)},
                      .threads = kThreads};
  const int64_t words =
      (params.layout.code_bytes() / kWordBytes + params.layout.scale_bytes() / 4) * params.experts;
  launch.ctas =
      static_cast<uint32_t>(std::clamp<int64_t>((words + kThreads - 1) / kThreads, 1, kMaxCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::gated
