// e2m1 * e4m3 * global scale, rounded to FP32 and then to the type of x.
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/e2m1.cuh"
#include "cuda/kernels/common/encode.cuh"
#include "cuda/kernels/convert/block_values.cuh"
#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/kernels/convert/tensor_rows.cuh"
#include "cuda/kernels/convert/wide_block.cuh"

namespace dualgemm::cuda {
namespace {

// Values that a thread writes as 16 bytes: a chunk, the unit of work.
template <WideType kType>
constexpr int kWrite = 16 / bytes_of(kType);

struct RawValues {
  uint32_t codes;
  uint8_t scale;
  float global;
};

template <WideType kType>
__device__ uint32_t load_codes(const uint8_t* from, bool aligned) {
  if constexpr (kWrite<kType> == 8) {
    return aligned ? *reinterpret_cast<const uint32_t*>(from) : load_word(from);
  } else {
    if (aligned) return *reinterpret_cast<const uint16_t*>(from);
    return from[0] | static_cast<uint32_t>(from[1]) << 8;
  }
}
// Whether an address or a stride suits a chunk's codes.
template <WideType kType>
__device__ bool suits_codes(uintptr_t number) {
  return number % (kWrite<kType> / 2) == 0;
}

template <WideType kType>
__device__ RawValues load_values(const TensorParams& p, const RowPlace& at, uint32_t chunk) {
  const uint8_t* const codes = codes_at(p, at) + chunk * (kWrite<kType> / 2);
  RawValues raw{load_codes<kType>(codes, suits_codes<kType>(reinterpret_cast<uintptr_t>(codes))),
                *scale_at(p, at, at.scale_row, chunk * kWrite<kType> / kBlock), 0.0f};
  const int64_t row = static_cast<int64_t>(at.batch) * p.rows.value + at.row;
  raw.global = p.global_scale[p.factors == Factors::kPerRow      ? row
                              : p.factors == Factors::kPerExpert ? at.expert
                                                                 : 0];
  return raw;
}

// zero: 0 * raw.global.
template <WideType kType>
__device__ void decode(const RawValues& raw, float zero, uint32_t (&words)[4]) {
  if constexpr (kType == WideType::kF32) {
    float all[kChunk];
    decode_chunk(raw.codes, decode_scale(raw.scale), all);
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = __float_as_uint(__fmul_rn(all[i], raw.global));
  } else {
    BlockValues<kType>(raw.scale, raw.global, zero).look_up(raw.codes, words);
  }
  // Only these make a NaN: codes are none, and their product with a scale is finite.
  const bool nan_scale = (raw.scale & 0x7F) == 0x7F;
  if (nan_scale || !(fabsf(raw.global) <= kLargestFloat)) {
#pragma unroll
    for (uint32_t& word : words) word = canonical<kType>(nan_scale ? 0x7FFF7FFFu : word);
  }
}

template <WideType kType>
__device__ void store_values(uint8_t* to, const RawValues& raw) {
  uint32_t words[4];
  decode<kType>(raw, __fmul_rn(0.0f, raw.global), words);
  store_words<kType, kWrite<kType>>(to, words, kWrite<kType>);
}

template <WideType kType>
__device__ void dequantize_all(const TensorParams& p) {
  constexpr int kUnroll = dequantize_unroll(kType);
  const uint32_t first = blockIdx.x * (kDequantizeThreads * kUnroll) + threadIdx.x;
  RowPlace places[kUnroll];
  uint32_t chunks[kUnroll];
  RawValues raw[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const uint32_t index = first + i * kDequantizeThreads, row = quotient(index, p.row_units);
    ExpertCursor cursor(p.groups, p.rows.value);
    if (p.groups.expert_offsets != nullptr) {
      const uint32_t of_warp = quotient(index - threadIdx.x % 32, p.row_units);
      cursor.seek(p.row_begin + min(of_warp, p.count - 1));
    }
    places[i].wanted = false;
    if (row < p.count) places[i] = place_of_row(p, cursor, row);
    chunks[i] = index - row * p.row_units.value;
    if (places[i].wanted) raw[i] = load_values<kType>(p, places[i], chunks[i]);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (places[i].wanted) store_values<kType>(x_at(p, places[i]) + int64_t{chunks[i]} * 16, raw[i]);
  }
}

// The chunks of a thread in neighbouring rows of one matrix.
template <WideType kType>
struct RowChunks {
  const uint8_t *codes, *scales;
  const float* globals;
  uint8_t* x;
  int64_t code_step, scale_step, x_step;
  float one;         // the global scale of all
  bool has_globals;  // or one for each row

  __device__ RawValues load(int i, bool aligned) const {
    return {load_codes<kType>(codes + i * code_step, aligned), scales[i * scale_step],
            has_globals ? globals[i] : one};
  }
};

template <WideType kType>
__device__ RowChunks<kType> chunks_of_rows(const TensorParams& p, int64_t row, uint32_t chunk) {
  const uint32_t block = chunk * kWrite<kType> / kBlock;
  const bool has_globals = p.factors == Factors::kPerRow;
  // Rows that a thread has are neighbours in a swizzled tile, too: their first one is a multiple of
  // their number, which divides 32.
  return {p.codes + row * p.code_row_bytes + chunk * (kWrite<kType> / 2),
          p.scales + scale_offset(p.scale_ld, p.scale_tile_cols, row, block),
          p.global_scale + (has_globals ? row : 0),
          p.x + row * p.x_row_bytes + int64_t{chunk} * 16,
          p.code_row_bytes,
          p.scale_ld == 0 ? 16 : p.scale_ld,
          p.x_row_bytes,
          *p.global_scale,
          has_globals};
}

// The same for one matrix whose rows are all wanted: a thread takes the same chunk of neighbouring
// rows, so that places and alignment are found once for them.
template <WideType kType>
__device__ void dequantize_matrix(const TensorParams& p) {
  constexpr int kRows = dequantize_unroll(kType);
  const uint32_t unit = blockIdx.x * kDequantizeThreads + threadIdx.x;
  const uint32_t group = quotient(unit, p.row_units), chunk = unit - group * p.row_units.value;
  const uint32_t index = group * kRows;
  if (index >= p.count) return;
  const uint32_t rows = min(p.count - index, static_cast<uint32_t>(kRows));
  const RowChunks<kType> of_rows =
      chunks_of_rows<kType>(p, static_cast<int64_t>(p.row_begin) + index, chunk);
  const bool aligned =
      suits_codes<kType>(reinterpret_cast<uintptr_t>(p.codes) | p.code_row_bytes) &&
      (reinterpret_cast<uintptr_t>(p.x) | p.x_row_bytes) % 16 == 0;
  if (rows != kRows || !aligned) {
#pragma unroll 1
    for (int i = 0; i < rows; ++i)
      store_values<kType>(of_rows.x + i * of_rows.x_step, of_rows.load(i, false));
    return;
  }
  RawValues raw[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) raw[i] = of_rows.load(i, true);
  const float zero = __fmul_rn(0.0f, of_rows.one);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    uint32_t words[4];
    decode<kType>(raw[i], of_rows.has_globals ? __fmul_rn(0.0f, raw[i].global) : zero, words);
    *reinterpret_cast<uint4*>(of_rows.x + i * of_rows.x_step) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

}  // namespace

#define DUALGEMM_DEQUANTIZE(name, kType)                                                    \
  extern "C" __global__ void __launch_bounds__(kDequantizeThreads)                          \
      dual_gemm_dequantize_tensor_##name(const __grid_constant__ TensorParams p) {          \
    dequantize_all<WideType::kType>(p);                                                     \
  }                                                                                         \
  extern "C" __global__ void __launch_bounds__(kDequantizeThreads)                          \
      dual_gemm_dequantize_tensor_##name##_matrix(const __grid_constant__ TensorParams p) { \
    dequantize_matrix<WideType::kType>(p);                                                  \
  }
DUALGEMM_DEQUANTIZE(f16, kF16)
DUALGEMM_DEQUANTIZE(bf16, kBF16)
DUALGEMM_DEQUANTIZE(f32, kF32)
#undef DUALGEMM_DEQUANTIZE

Kernel dequantize_tensor_kernel(WideType type, bool matrix) {
#define DUALGEMM_KERNEL(name) \
  { "dequantize_tensor", #name, reinterpret_cast<const void*>(&name) }
  static const Kernel kernels[2][3] = {{DUALGEMM_KERNEL(dual_gemm_dequantize_tensor_f16),
                                        DUALGEMM_KERNEL(dual_gemm_dequantize_tensor_bf16),
                                        DUALGEMM_KERNEL(dual_gemm_dequantize_tensor_f32)},
                                       {DUALGEMM_KERNEL(dual_gemm_dequantize_tensor_f16_matrix),
                                        DUALGEMM_KERNEL(dual_gemm_dequantize_tensor_bf16_matrix),
                                        DUALGEMM_KERNEL(dual_gemm_dequantize_tensor_f32_matrix)}};
#undef DUALGEMM_KERNEL
  return kernels[matrix ? 1 : 0][static_cast<int>(type)];
}

}  // namespace dualgemm::cuda
