// Quantising with factors that are known before the first block: given ones, or one for the tensor,
// whose largest magnitude a launch before has found.
#include "cuda/kernels/convert/quantize_kernels.hpp"

#include "cuda/kernels/convert/tensor_rows.cuh"
#include "cuda/kernels/convert/wide_block.cuh"

namespace dualgemm::cuda {
namespace {

// The unit of work that thread `index` of the launch has: a block of 16 of one row.
struct BlockPlace {
  RowPlace at;
  uint32_t block;
  bool exists;
};
__device__ BlockPlace place_of_block(const TensorParams& p, ExpertCursor& cursor, uint32_t index) {
  const uint32_t row = quotient(index, p.row_units);
  BlockPlace place{{}, index - row * p.row_units.value, row < p.count};
  if (place.exists) place.at = place_of_row(p, cursor, row);
  return place;
}

// Seeks the first row of the warp; `first` is a lane's own unit.
__device__ void seek_row_of_warp(const TensorParams& p, ExpertCursor& cursor, uint32_t first) {
  if (p.groups.expert_offsets == nullptr) return;
  const uint32_t row = quotient(first - threadIdx.x % 32, p.row_units);
  cursor.seek(p.row_begin + min(row, p.count - 1));
}

// The largest of all threads' numbers, in every thread.
template <int kThreads>
__device__ uint32_t max_of_cta(uint32_t value) {
  __shared__ uint32_t of_warp[kThreads / 32];
  const uint32_t largest = __reduce_max_sync(0xFFFFFFFFu, value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = largest;
  __syncthreads();
  return __reduce_max_sync(0xFFFFFFFFu, of_warp[threadIdx.x % (kThreads / 32)]);
}

template <int kThreads>
__device__ float factor_of_partials(const QuantizeParams& p) {
  uint32_t largest = 0;
  for (uint32_t i = threadIdx.x; i < p.num_partials; i += kThreads)
    largest = max(largest, p.partials[i]);
  const GlobalFactor factor = factor_of_amax(max_of_cta<kThreads>(largest));
  if (blockIdx.x == 0 && threadIdx.x == 0 && p.found_scale != nullptr)
    *p.found_scale = factor.dequantize;
  return factor.quantize;
}

// The factor that all of a launch's values share.
template <int kThreads>
__device__ float factor_of_all(const QuantizeParams& p) {
  return p.tensor.factors == Factors::kFromPartials ? factor_of_partials<kThreads>(p)
         : p.tensor.factors == Factors::kOne        ? factor_of_given(*p.tensor.global_scale)
                                                    : 0.0f;
}

template <WideType kType, bool kFourOverSix>
__device__ void quantize_block(const TensorParams& p, const BlockPlace& place,
                               const WideBlock<kType>& raw, float factor) {
  if (!place.exists) return;
  const bool is_padding = place.block >= p.blocks;
  if (is_padding && place.at.has_scales)
    *scale_at(p, place.at, place.at.scale_row, place.block) = 0;
  clear_rows_below(p, place.at, place.block);
  if (is_padding || !place.at.wanted) return;
  float x[kBlock];
  uint32_t signs[2];
  raw.values(x);
  raw.signs(signs);
  const EncodedBlock encoded = encode_block<kFourOverSix>(x, signs, raw.amax(), factor);
  store_codes(codes_at(p, place.at) + place.block * (kBlock / 2), encoded.words);
  *scale_at(p, place.at, place.at.scale_row, place.block) = static_cast<uint8_t>(encoded.scale);
}

template <WideType kType>
__device__ void load_block(const TensorParams& p, const BlockPlace& place, WideBlock<kType>& raw) {
  if (!place.exists || !place.at.wanted || place.block >= p.blocks) return;
  raw.load(x_at(p, place.at) + static_cast<int64_t>(place.block) * WideBlock<kType>::kBytes);
}

// Threads take neighbouring blocks; a thread's own are kThreads apart, and all of them are loaded
// before the first is used.
template <WideType kType, bool kFourOverSix, int kThreads, int kUnroll>
__device__ void quantize_all(const QuantizeParams& p) {
  const uint32_t first = blockIdx.x * (kThreads * kUnroll) + threadIdx.x;
  BlockPlace places[kUnroll];
  WideBlock<kType> raw[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    ExpertCursor cursor(p.tensor.groups, p.tensor.rows.value);
    seek_row_of_warp(p.tensor, cursor, first + i * kThreads);
    places[i] = place_of_block(p.tensor, cursor, first + i * kThreads);
    load_block(p.tensor, places[i], raw[i]);
  }
  const float factor = factor_of_all<kThreads>(p);
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    float own = factor;
    if (p.tensor.factors == Factors::kPerExpert && places[i].exists && places[i].at.wanted)
      own = factor_of_given(p.tensor.global_scale[places[i].at.expert]);
    quantize_block<kType, kFourOverSix>(p.tensor, places[i], raw[i], own);
  }
}

// The same for one matrix whose rows are all wanted: a thread takes the same block of p.thread_rows
// neighbouring rows, so that it counts once, and loads kRows of them at a time.
template <WideType kType, bool kFourOverSix, int kThreads, int kRows>
__device__ void quantize_matrix(const QuantizeParams& p) {
  const TensorParams& t = p.tensor;
  const uint32_t unit = blockIdx.x * kThreads + threadIdx.x;
  const uint32_t group = quotient(unit, t.row_units), block = unit - group * t.row_units.value;
  const uint32_t index = group * p.thread_rows;
  const uint32_t rows = index < t.count ? min(t.count - index, p.thread_rows) : 0u;
  const bool is_padding = block >= t.blocks;
  const int64_t row = static_cast<int64_t>(t.row_begin) + index;
  const uint8_t* x =
      t.x + row * t.x_row_bytes + static_cast<int64_t>(block) * WideBlock<kType>::kBytes;
  // What is the same of every row is asked once (16384 x 7168 in bf16 on an H200: linear 92.1 to
  // 90.2 us, swizzled 98.3 to 91.8; 16 rows take 0.04 to 0.1 more).
  const bool wide_x = (reinterpret_cast<uintptr_t>(t.x) | t.x_row_bytes) % 16 == 0;
  WideBlock<kType> raw[kRows];
  const auto load = [&](uint32_t first) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first + i < rows && !is_padding) raw[i].load(x + i * t.x_row_bytes, wide_x);
    }
  };
  load(0);
  const float factor = factor_of_all<kThreads>(p);
  uint8_t* codes = t.codes + row * t.code_row_bytes + block * (kBlock / 2);
  const bool wide_codes = (reinterpret_cast<uintptr_t>(t.codes) | t.code_row_bytes) % 8 == 0;
  // Rows that a thread has are neighbours in a swizzled tile, too: their first one is a multiple of
  // their number, which divides 32.
  uint8_t* scale = t.scales + scale_offset(t.scale_ld, t.scale_tile_cols, row, block);
  const int64_t next_scale = t.scale_ld == 0 ? 16 : t.scale_ld;
  if (t.scale_ld == 0 && t.rows.value % kTileRows != 0) {
#pragma unroll 1
    for (uint32_t i = 0; i < rows; ++i) {
      const auto at = static_cast<uint32_t>(row + i);
      clear_rows_below(t, {0, at, 0, row + i, t.rows.value, at, true, true}, block);
    }
  }
  if (is_padding) {
    for (uint32_t i = 0; i < rows; ++i, scale += next_scale) *scale = 0;
    return;
  }
#pragma unroll 1
  for (uint32_t first = 0; first < rows;) {
#pragma unroll
    for (int i = 0; i < kRows; ++i, scale += next_scale) {
      if (first + i >= rows) return;
      float values[kBlock];
      uint32_t signs[2];
      raw[i].values(values);
      raw[i].signs(signs);
      const EncodedBlock encoded = encode_block<kFourOverSix>(values, signs, raw[i].amax(), factor);
      store_codes(codes + i * t.code_row_bytes, encoded.words, wide_codes);
      *scale = static_cast<uint8_t>(encoded.scale);
    }
    first += kRows;
    x += kRows * t.x_row_bytes;
    codes += kRows * t.code_row_bytes;
    load(first);
  }
}

// Bits of the largest magnitude of what a CTA has seen.
template <WideType kType>
__device__ void amax_of_all(const AmaxParams& p) {
  constexpr int kUnroll = kAmaxBytes / WideBlock<kType>::kBytes;
  const uint32_t units = p.tensor.count * p.tensor.row_units.value;
  const uint32_t stride = gridDim.x * (kAmaxThreads * kUnroll);
  float amax = 0.0f;
  for (uint32_t begin = blockIdx.x * (kAmaxThreads * kUnroll); begin < units;) {
    const uint32_t first = begin + threadIdx.x;
    WideBlock<kType> raw[kUnroll];
    bool has[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      ExpertCursor cursor(p.tensor.groups, p.tensor.rows.value);
      seek_row_of_warp(p.tensor, cursor, first + i * kAmaxThreads);
      const BlockPlace place = place_of_block(p.tensor, cursor, first + i * kAmaxThreads);
      has[i] = place.exists && place.at.wanted && place.block < p.tensor.blocks;
      load_block(p.tensor, place, raw[i]);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (has[i]) amax = ptx::max_nan(amax, raw[i].amax());
    }
    if (units - begin <= stride) break;
    begin += stride;
  }
  const uint32_t largest = max_of_cta<kAmaxThreads>(__float_as_uint(amax));
  if (threadIdx.x == 0) p.partials[blockIdx.x] = largest;
}

}  // namespace

#define DUALGEMM_QUANTIZE(name, body, threads, ...)                         \
  extern "C" __global__ void __launch_bounds__(threads)                     \
      dual_gemm_quantize_##name(const __grid_constant__ QuantizeParams p) { \
    body<__VA_ARGS__>(p);                                                   \
  }
#define DUALGEMM_QUANTIZE_WAY(name, kType, four_over_six)                                        \
  DUALGEMM_QUANTIZE(name##_few, quantize_all, kFewThreads, WideType::kType, four_over_six,       \
                    kFewThreads, 1)                                                              \
  DUALGEMM_QUANTIZE(name##_many, quantize_all, kQuantizeThreads, WideType::kType, four_over_six, \
                    kQuantizeThreads, kManyUnroll)                                               \
  DUALGEMM_QUANTIZE(name##_matrix_few, quantize_matrix, kFewThreads, WideType::kType,            \
                    four_over_six, kFewThreads, 1)                                               \
  DUALGEMM_QUANTIZE(name##_matrix_many, quantize_matrix, kQuantizeThreads, WideType::kType,      \
                    four_over_six, kQuantizeThreads, kLoadedRows)
#define DUALGEMM_QUANTIZE_TYPE(name, kType)                         \
  DUALGEMM_QUANTIZE_WAY(name, kType, false)                         \
  DUALGEMM_QUANTIZE_WAY(name##_four_over_six, kType, true)          \
  extern "C" __global__ void __launch_bounds__(kAmaxThreads)        \
      dual_gemm_amax_##name(const __grid_constant__ AmaxParams p) { \
    amax_of_all<WideType::kType>(p);                                \
  }
DUALGEMM_QUANTIZE_TYPE(f16, kF16)
DUALGEMM_QUANTIZE_TYPE(bf16, kBF16)
DUALGEMM_QUANTIZE_TYPE(f32, kF32)
#undef DUALGEMM_QUANTIZE_TYPE
#undef DUALGEMM_QUANTIZE_WAY
#undef DUALGEMM_QUANTIZE

#define DUALGEMM_KERNEL(name) \
  { "quantize", #name, reinterpret_cast<const void*>(&name) }
Kernel quantize_kernel(WideType type, bool four_over_six, bool matrix, bool many) {
#define DUALGEMM_KERNELS(name)                                   \
  {                                                              \
    DUALGEMM_KERNEL(dual_gemm_quantize_##name##_few),            \
        DUALGEMM_KERNEL(dual_gemm_quantize_##name##_many),       \
        DUALGEMM_KERNEL(dual_gemm_quantize_##name##_matrix_few), \
        DUALGEMM_KERNEL(dual_gemm_quantize_##name##_matrix_many) \
  }
  static const Kernel kernels[2][3][4] = {
      {DUALGEMM_KERNELS(f16), DUALGEMM_KERNELS(bf16), DUALGEMM_KERNELS(f32)},
      {DUALGEMM_KERNELS(f16_four_over_six), DUALGEMM_KERNELS(bf16_four_over_six),
       DUALGEMM_KERNELS(f32_four_over_six)}};
#undef DUALGEMM_KERNELS
  return kernels[four_over_six ? 1 : 0][static_cast<int>(type)]
                [2 * (matrix ? 1 : 0) + (many ? 1 : 0)];
}

Kernel amax_kernel(WideType type) {
  static const Kernel kernels[3] = {DUALGEMM_KERNEL(dual_gemm_amax_f16),
                                    DUALGEMM_KERNEL(dual_gemm_amax_bf16),
                                    DUALGEMM_KERNEL(dual_gemm_amax_f32)};
  return kernels[static_cast<int>(type)];
}
#undef DUALGEMM_KERNEL

}  // namespace dualgemm::cuda
