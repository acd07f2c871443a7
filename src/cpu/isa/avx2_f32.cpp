// AVX2 for 16- and 32-bit activations (W4A16); avx512_f32.cpp has the arithmetic.
#include <immintrin.h>

#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx2 {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/avx2-inl.hpp"

constexpr int kMr = 4;
constexpr int kTileKBlocks = 8;

// Decoded k-tile: first all blocks of columns 0-7 of P and Q, then those of columns 8-15. One
// block: 16 k x (8 values of P, 8 of Q), then the FP32 scales of P and Q.
constexpr int64_t kHalfBlockBytes = 16 * 64 + 64;
constexpr int64_t kHalfBytes = kTileKBlocks * kHalfBlockBytes;

// Twice the value is a small integer: table lookup in bytes, exact conversion, exact halving.
constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void decode_panel(const uint8_t* packed, int blocks, uint8_t* out) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kDoubled)));
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const uint8_t* codes = group + block % kGroupBlocks * kBlockCodeBytes;
    for (int half = 0; half < 2; ++half) {
      uint8_t* at = out + half * kHalfBytes + block * kHalfBlockBytes;
      for (int j = 0; j < 2; ++j) {
        const __m256i x =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 64 * j + 32 * half));
        for (int k = 0; k < 8; ++k) {
          const __m256i index = _mm256_and_si256(_mm256_srl_epi32(x, _mm_cvtsi32_si128(4 * k)),
                                                 _mm256_set1_epi32(0x0F));
          const __m256i byte = _mm256_shuffle_epi8(table, index);  // upper bytes: table[0] = 0
          const __m256i value = _mm256_srai_epi32(_mm256_slli_epi32(byte, 24), 24);
          _mm256_store_ps(reinterpret_cast<float*>(at + (8 * j + k) * 64),
                          _mm256_mul_ps(_mm256_cvtepi32_ps(value), _mm256_set1_ps(0.5f)));
        }
      }
      _mm256_store_ps(
          reinterpret_cast<float*>(at + 16 * 64),
          decode_scales(group + kGroupBlocks * kBlockCodeBytes + 32 * half, block % kGroupBlocks));
    }
  }
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  decode_panel(p, blocks, decoded);
  decode_panel(q, blocks, decoded + 32);
}

inline __m256 load_8(DataType type, const uint8_t* at) {
  switch (type) {
    case DataType::kF16:
      return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    case DataType::kBF16:
      return _mm256_castsi256_ps(_mm256_slli_epi32(
          _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))), 16));
    default:
      return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
}

// Per block: 16 k x height floats.
void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  const int64_t value_bytes = source.type == DataType::kF32 ? 4 : 2;
  for (int block = 0; block < blocks; ++block, packed += int64_t{64} * height) {
    for (int r = 0; r < height; ++r) {
      alignas(32) float values[16] = {};
      if (r < rows) {
        const uint8_t* at = source.row(r) + (block_begin + block) * 16 * value_bytes;
        _mm256_store_ps(values, load_8(source.type, at));
        _mm256_store_ps(values + 8, load_8(source.type, at + 8 * value_bytes));
      }
      for (int k = 0; k < 16; ++k) copy_bytes<4>(&values[k], packed + (k * height + r) * 4);
    }
  }
}

template <int kRows>
inline void multiply_half(const uint8_t* activation, int height, const uint8_t* decoded, int blocks,
                          bool accumulate, float* c) {
  __m256 acc_p[kRows], acc_q[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    acc_p[r] = accumulate ? _mm256_loadu_ps(c + r * kCTileN) : _mm256_setzero_ps();
    acc_q[r] = accumulate ? _mm256_loadu_ps(c + r * kCTileN + kPanelN) : _mm256_setzero_ps();
  }
  for (int block = 0; block < blocks; ++block) {
    const float* a = reinterpret_cast<const float*>(activation);
    const float* w = reinterpret_cast<const float*>(decoded);
    __m256 sum_p[kRows], sum_q[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum_p[r] = sum_q[r] = _mm256_setzero_ps();
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) {
      const __m256 w_p = _mm256_load_ps(w + 16 * k), w_q = _mm256_load_ps(w + 16 * k + 8);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m256 a_r = _mm256_broadcast_ss(a + k * height + r);
        sum_p[r] = _mm256_fmadd_ps(a_r, w_p, sum_p[r]);
        sum_q[r] = _mm256_fmadd_ps(a_r, w_q, sum_q[r]);
      }
    }
    const __m256 s_p = _mm256_load_ps(w + 256), s_q = _mm256_load_ps(w + 264);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      acc_p[r] = _mm256_fmadd_ps(sum_p[r], s_p, acc_p[r]);
      acc_q[r] = _mm256_fmadd_ps(sum_q[r], s_q, acc_q[r]);
    }
    activation += int64_t{64} * height;
    decoded += kHalfBlockBytes;
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(c + r * kCTileN, acc_p[r]);
    _mm256_storeu_ps(c + r * kCTileN + kPanelN, acc_q[r]);
  }
}

template <int kRows>
inline void multiply_rows(const uint8_t* activation, int height, const uint8_t* decoded, int blocks,
                          bool accumulate, float* c) {
  multiply_half<kRows>(activation, height, decoded, blocks, accumulate, c);
  multiply_half<kRows>(activation, height, decoded + kHalfBytes, blocks, accumulate, c + 8);
}

void multiply(const uint8_t* activation, int height, const uint8_t* decoded, int blocks, int rows,
              bool accumulate, float* c) {
  switch (rows) {
    case 1:
      return multiply_rows<1>(activation, height, decoded, blocks, accumulate, c);
    case 2:
      return multiply_rows<2>(activation, height, decoded, blocks, accumulate, c);
    case 3:
      return multiply_rows<3>(activation, height, decoded, blocks, accumulate, c);
    default:
      return multiply_rows<4>(activation, height, decoded, blocks, accumulate, c);
  }
}

}  // namespace

extern const Engine kF32Engine;
constexpr Engine kF32Engine = {
    .mr = kMr,
    .tile_k_blocks = kTileKBlocks,
    .block_step = 1,
    .decoded_block_bytes = 2 * kHalfBlockBytes,
    .activation_bytes = 64,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = nullptr,
};

}  // namespace dualgemm::cpu::avx2
