// AVX-512 for 16- and 32-bit activations (W4A16): weights stay in 4 bits until they are in
// registers.
//
// Per 16-block: partial = sum over ascending k of a_k * e2m1_k, one FMA each, from 0; then
// accumulator = fma(partial, scale, accumulator). 17 roundings a block, whose chains are short.
// The ceiling is 16/17 of the FP32 FMA peak; decoding is amortised over the rows (multiply) or
// costs a shift and a permute a value (gemv).
#include <immintrin.h>

#include "cpu/isa/avx512.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/generic/rows-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"

// 12 sums of a block and 12 of all blocks in registers. Eight chains of FMAs, four rows, just hide
// the latency of 4 cycles on two ports: 91 % of the ceiling in L1; six rows 99 %.
constexpr int kMr = 6;
constexpr int kBlocksAhead = 4;  // how far ahead the activation is asked for, into L1

constexpr int kRowFloatsBytes = 64;  // of the activation, per block and row

// Decoded k-tile, per block: 16 k x (16 values of P, 16 of Q), then the FP32 scales of P and Q.
constexpr int64_t kDecodedBlockBytes = 16 * 128 + 128;
constexpr int64_t kScalesAt = 16 * 128;

alignas(64) constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                           -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Column lane c of `dwords` holds 8 nibbles; value k of them. vpermps looks at four index bits
// only.
inline __m512 value_at(__m512i dwords, int k, __m512 table) {
  return _mm512_permutexvar_ps(_mm512_srli_epi32(dwords, static_cast<unsigned>(4 * k)), table);
}

inline void decode_panel_block(const uint8_t* group, int block, const FourScales& scales,
                               uint8_t* values, uint8_t* scales_out) {
  const __m512 table = _mm512_load_ps(kValues);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512i dwords = _mm512_loadu_si512(group + block * kBlockCodeBytes + 64 * half);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k)
      _mm512_store_ps(values + (8 * half + k) * 128, value_at(dwords, k, table));
  }
  _mm512_store_ps(scales_out, scales.block[block]);
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  for (int block = 0; block < blocks; block += kGroupBlocks) {
    const int here = blocks - block < kGroupBlocks ? blocks - block : kGroupBlocks;
    const FourScales sp = group_scales(p);
    const FourScales sq = group_scales(q);
    for (int b = 0; b < here; ++b, decoded += kDecodedBlockBytes) {
      decode_panel_block(p, b, sp, decoded, decoded + kScalesAt);
      decode_panel_block(q, b, sq, decoded + 64, decoded + kScalesAt + 64);
    }
    p += kPackedGroupBytes;
    q += kPackedGroupBytes;
  }
}

inline __m512 load_16(const ActivationSource& source, const uint8_t* at) {
  switch (source.type) {
    case DataType::kF16:
      return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    case DataType::kBF16:
      return _mm512_castsi512_ps(_mm512_slli_epi32(
          _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))), 16));
    default:
      return _mm512_loadu_ps(at);
  }
}

// Per block and row: 16 floats in the order of k.
void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  const int64_t block_input_bytes = source.type == DataType::kF32 ? 64 : 32;
  for (int block = 0; block < blocks; ++block) {
    for (int r = 0; r < height; ++r, packed += kRowFloatsBytes) {
      const __m512 values =
          r < rows ? load_16(source, source.row(r) + (block_begin + block) * block_input_bytes)
                   : _mm512_setzero_ps();
      _mm512_storeu_ps(packed, values);
    }
  }
}

template <int kRows>
inline void multiply_rows(const uint8_t* activation, int height, const uint8_t* decoded, int blocks,
                          bool accumulate, float* c) {
  __m512 acc_p[kRows], acc_q[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    acc_p[r] = accumulate ? _mm512_loadu_ps(c + r * kCTileN) : _mm512_setzero_ps();
    acc_q[r] = accumulate ? _mm512_loadu_ps(c + r * kCTileN + kPanelN) : _mm512_setzero_ps();
  }
  // What follows of the activation, the next tile at the end, from L2.
  const uint8_t* next = activation + int64_t{kBlocksAhead} * height * kRowFloatsBytes;
  for (int block = 0; block < blocks; ++block) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      _mm_prefetch(reinterpret_cast<const char*>(next) + r * kRowFloatsBytes, _MM_HINT_T0);
    next += height * kRowFloatsBytes;
    const float* a = reinterpret_cast<const float*>(activation);
    __m512 sum_p[kRows], sum_q[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum_p[r] = sum_q[r] = _mm512_setzero_ps();
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) {
      const __m512 w_p = _mm512_load_ps(decoded + 128 * k);
      const __m512 w_q = _mm512_load_ps(decoded + 128 * k + 64);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 a_r = _mm512_set1_ps(a[r * 16 + k]);
        sum_p[r] = _mm512_fmadd_ps(a_r, w_p, sum_p[r]);
        sum_q[r] = _mm512_fmadd_ps(a_r, w_q, sum_q[r]);
      }
    }
    const __m512 s_p = _mm512_load_ps(decoded + kScalesAt);
    const __m512 s_q = _mm512_load_ps(decoded + kScalesAt + 64);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      acc_p[r] = _mm512_fmadd_ps(sum_p[r], s_p, acc_p[r]);
      acc_q[r] = _mm512_fmadd_ps(sum_q[r], s_q, acc_q[r]);
    }
    activation += int64_t{kRowFloatsBytes} * height;
    decoded += kDecodedBlockBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * kCTileN, acc_p[r]);
    _mm512_storeu_ps(c + r * kCTileN + kPanelN, acc_q[r]);
  }
}

void multiply(const uint8_t* activation, int height, const uint8_t* decoded, int blocks, int rows,
              bool accumulate, float* c) {
  with_rows<kMr>(rows, [&]<int kRows>() {
    multiply_rows<kRows>(activation, height, decoded, blocks, accumulate, c);
  });
}

// A pair over all of k: a code becomes a value in registers, for all kRows rows. height: of the
// activation's tile.
// Blocks stay a loop: 1.22, 1.57, 3.1, 9.0 ms for M = 1, 2, 5, 16 where four at a time took 1.33,
// 1.91, 3.4, 10.1 (Zen 5, one core, N = 4096, K = 7168, packed, cold, in turn, 2026-11-29).
template <int kRows, bool kPacked>
void gemv_rows(const uint8_t* activation, int height, const PanelPair& pair, Ahead ahead,
               float* c) {
  const __m512 table = _mm512_load_ps(kValues);
  __m512 acc_p[kRows], acc_q[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc_p[r] = acc_q[r] = _mm512_setzero_ps();
  for_pair_blocks<kPacked, false>(
      pair, ahead,
      [&](const uint8_t* p, const uint8_t* q, __m512 s_p, __m512 s_q)
          __attribute__((always_inline)) {
            const float* const a = reinterpret_cast<const float*>(activation);
            __m512 sum_p[kRows], sum_q[kRows];
#pragma GCC unroll 8
            for (int r = 0; r < kRows; ++r) sum_p[r] = sum_q[r] = _mm512_setzero_ps();
#pragma GCC unroll 2
            for (int half = 0; half < 2; ++half) {
              const __m512i codes_p = _mm512_loadu_si512(p + 64 * half);
              const __m512i codes_q = _mm512_loadu_si512(q + 64 * half);
#pragma GCC unroll 8
              for (int k = 0; k < 8; ++k) {
                const __m512 w_p = value_at(codes_p, k, table), w_q = value_at(codes_q, k, table);
#pragma GCC unroll 8
                for (int r = 0; r < kRows; ++r) {
                  const __m512 a_r = _mm512_set1_ps(a[r * 16 + 8 * half + k]);
                  sum_p[r] = _mm512_fmadd_ps(a_r, w_p, sum_p[r]);
                  sum_q[r] = _mm512_fmadd_ps(a_r, w_q, sum_q[r]);
                }
              }
            }
#pragma GCC unroll 8
            for (int r = 0; r < kRows; ++r) {
              acc_p[r] = _mm512_fmadd_ps(sum_p[r], s_p, acc_p[r]);
              acc_q[r] = _mm512_fmadd_ps(sum_q[r], s_q, acc_q[r]);
            }
            activation += int64_t{kRowFloatsBytes} * height;
          });
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * kCTileN, acc_p[r]);
    _mm512_storeu_ps(c + r * kCTileN + kPanelN, acc_q[r]);
  }
}

void gemv_f32(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
              float* c) {
  gemv_in_runs<kMr>(pair, next, rows, [&]<int kRows, bool kPacked>(int first, Ahead ahead) {
    gemv_rows<kRows, kPacked>(activation + first * kRowFloatsBytes, rows, pair, ahead,
                              c + first * kCTileN);
  });
}

}  // namespace

constexpr Engine kF32Engine = {
    .mr = kMr,
    .tile_k_blocks = 8,
    .block_step = 1,
    .decoded_block_bytes = kDecodedBlockBytes,
    .activation_bytes = kRowFloatsBytes,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = gemv_f32,
    .gemv_rows = 16,
};

}  // namespace dualgemm::cpu::avx512
