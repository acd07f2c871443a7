// AVX2: lanes are 8 columns of a panel, activation rows are broadcast.
//
// Cost of one 16-block x 8 columns x 1 row: 4 vpmaddubsw + 3 vpaddw + 1 vpmaddwd + 1 vpaddd +
// 1 fmsub + 1 fmadd, 7 of them on the two multiply pipes. The int16 sums stay within 4*2*24*12 =
// 2304. The activation is the unsigned operand (2v + 12); -12*sum(weights) is a vector per block
// and column.
#include <immintrin.h>

#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx2 {
namespace {

#include "cpu/generic/activation-inl.hpp"
#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/avx2-inl.hpp"

constexpr int kMr = 4;
constexpr int kTileKBlocks = 24;  // 21 KiB decoded

constexpr int32_t kMagicBits = 0x4B400000;
constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
constexpr int kActivationOffset = 12;

constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr int8_t kOffsetDoubled[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

// Decoded k-tile: P, then Q, each columns 0-7, then 8-15. One block of such a half: 4 x 32 weight
// bytes in the nibble order, 8 x int32 kMagicBits - 12*sum, 8 x FP32 scale, 8 x kMagic*scale.
constexpr int64_t kHalfBlockBytes = 4 * 32 + 3 * 32;
constexpr int64_t kHalfBytes = kTileKBlocks * kHalfBlockBytes;
constexpr int64_t kPanelBytes = 2 * kHalfBytes;

inline __m256i load(const uint8_t* at) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
}
inline void store(uint8_t* at, __m256i value) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), value);
}
inline __m256i broadcast_table(const int8_t (&table)[16]) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

void decode_panel(const uint8_t* packed, int blocks, uint8_t* out) {
  const __m256i nibble = _mm256_set1_epi8(0x0F), table = broadcast_table(kDoubled);
  const __m256i ones8 = _mm256_set1_epi8(1), ones16 = _mm256_set1_epi16(1);
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const uint8_t* codes = group + block % kGroupBlocks * kBlockCodeBytes;
    for (int half = 0; half < 2; ++half) {
      uint8_t* at = out + half * kHalfBytes + block * kHalfBlockBytes;
      __m256i sum = _mm256_setzero_si256();
      for (int j = 0; j < 2; ++j) {
        const __m256i x =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 64 * j + 32 * half));
        const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble));
        const __m256i high =
            _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
        store(at + 64 * j, low);
        store(at + 64 * j + 32, high);
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(ones8, low));
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(ones8, high));
      }
      const __m256i total = _mm256_madd_epi16(sum, ones16);
      const __m256i offset = _mm256_mullo_epi32(total, _mm256_set1_epi32(kActivationOffset));
      store(at + 128, _mm256_sub_epi32(_mm256_set1_epi32(kMagicBits), offset));
      const __m256 scale =
          decode_scales(group + kGroupBlocks * kBlockCodeBytes + 32 * half, block % kGroupBlocks);
      _mm256_store_ps(reinterpret_cast<float*>(at + 160), scale);
      _mm256_store_ps(reinterpret_cast<float*>(at + 192),
                      _mm256_mul_ps(scale, _mm256_set1_ps(kMagic)));
    }
  }
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  decode_panel(p, blocks, decoded);
  decode_panel(q, blocks, decoded + kPanelBytes);
}

// Per block: height x 16 unsigned bytes in the nibble order, height x FP32 scale/4.
void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  const __m128i nibble = _mm_set1_epi8(0x0F);
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOffsetDoubled));
  const int64_t block_bytes = int64_t{20} * height;
  for (int r = 0; r < height; ++r) {
    const uint8_t* codes = source.row(r < rows ? r : 0) + block_begin * 8;
    for (int block = 0; block < blocks; ++block) {
      __m128i x = _mm_setzero_si128();
      if (r < rows) x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + block * 8));
      const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(x, nibble));
      const __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(x, 4), nibble));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(packed + block * block_bytes + r * 16),
                       _mm_unpacklo_epi32(low, high));
    }
    pack_activation_scales(source, r < rows ? r : -1, block_begin, blocks,
                           packed + height * 16 + r * 4, block_bytes);
  }
}

inline __m256i broadcast_dword(const uint8_t* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return _mm256_set1_epi32(value);
}

// Keeps the order of the program. Left alone, GCC 12 builds trees of the int16 additions, loads a
// whole block of weights ahead and spills the accumulators: 25 % slower.
inline void pin(__m256i& v) { asm volatile("" : "+x"(v)); }
inline void pin(__m256& v) { asm volatile("" : "+x"(v)); }

// One panel, kRows (1 or 2) x 16 columns: 4 accumulators and 4 sums leave registers for weights and
// broadcasts. Zen 4, one core, GOP/s of 257 with the operands in L1 (activation in L2):
//   rows x columns                    2 x 16: 230 (230)   4 x 8: 223 (222)    3 x 16: 232 (206)
//                                     6 x 8: 220 (199)    not pinned: 163 to 178
//   one column's sums in each int16   2 x 32: 209 (189)   3 x 16: 235 (233)   4 x 16: 243 (216)
// The last ones need no vpmaddwd, but the activation bytes twice.
template <int kRows>
inline void multiply_panel(const uint8_t* activation, int height, int row, const uint8_t* w,
                           int blocks, bool accumulate, float* c) {
  const uint8_t* codes = activation + row * 16;
  const uint8_t* scales = activation + height * 16 + row * 4;
  __m256 acc[2][kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      acc[v][r] = accumulate ? _mm256_loadu_ps(c + r * kCTileN + 8 * v) : _mm256_setzero_ps();
  }
  const __m256i ones16 = _mm256_set1_epi16(1);
  for (int block = 0; block < blocks; ++block) {
    __m256i sum[2][kRows];
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        __m256i weights = load(w + v * kHalfBytes + 32 * part), product[kRows];
        pin(weights);
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r) {
          product[r] = _mm256_maddubs_epi16(broadcast_dword(codes + r * 16 + part * 4), weights);
          pin(product[r]);
        }
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r) {
          sum[v][r] = part == 0 ? product[r] : _mm256_add_epi16(sum[v][r], product[r]);
          pin(sum[v][r]);
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const uint8_t* constants = w + v * kHalfBytes + 128;
      const __m256i init = load(constants);
      const __m256 scale = _mm256_load_ps(reinterpret_cast<const float*>(constants + 32));
      const __m256 magic = _mm256_load_ps(reinterpret_cast<const float*>(constants + 64));
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        const __m256i bits = _mm256_add_epi32(_mm256_madd_epi16(sum[v][r], ones16), init);
        const __m256 t = _mm256_fmsub_ps(_mm256_castsi256_ps(bits), scale, magic);
        const __m256 scale_a = _mm256_castsi256_ps(broadcast_dword(scales + r * 4));
        acc[v][r] = _mm256_fmadd_ps(t, scale_a, acc[v][r]);
        pin(acc[v][r]);
      }
    }
    codes += height * 20;
    scales += height * 20;
    w += kHalfBlockBytes;
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) _mm256_storeu_ps(c + r * kCTileN + 8 * v, acc[v][r]);
  }
}

void multiply(const uint8_t* activation, int height, const uint8_t* decoded, int blocks, int rows,
              bool accumulate, float* c) {
  for (int panel = 0; panel < 2; ++panel) {
    const uint8_t* w = decoded + panel * kPanelBytes;
    for (int r = 0; r < rows; r += 2) {
      float* at = c + r * kCTileN + panel * kPanelN;
      if (rows - r >= 2)
        multiply_panel<2>(activation, height, r, w, blocks, accumulate, at);
      else
        multiply_panel<1>(activation, height, r, w, blocks, accumulate, at);
    }
  }
}

// 8 rows of 32 bytes -> 8 vectors; out[d] lane c = dword d of row c.
inline void transpose_8x8(const __m256i (&row)[8], __m256i (&out)[8]) {
  __m256i quad[8];  // quad[4*i + w], 128-bit lane q: dword 4q + w of rows 4i .. 4i+3
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256i t0 = _mm256_unpacklo_epi32(row[4 * i], row[4 * i + 1]);
    const __m256i t1 = _mm256_unpackhi_epi32(row[4 * i], row[4 * i + 1]);
    const __m256i t2 = _mm256_unpacklo_epi32(row[4 * i + 2], row[4 * i + 3]);
    const __m256i t3 = _mm256_unpackhi_epi32(row[4 * i + 2], row[4 * i + 3]);
    quad[4 * i] = _mm256_unpacklo_epi64(t0, t2);
    quad[4 * i + 1] = _mm256_unpackhi_epi64(t0, t2);
    quad[4 * i + 2] = _mm256_unpacklo_epi64(t1, t3);
    quad[4 * i + 3] = _mm256_unpackhi_epi64(t1, t3);
  }
#pragma GCC unroll 4
  for (int w = 0; w < 4; ++w) {
    out[w] = _mm256_permute2x128_si256(quad[w], quad[4 + w], 0x20);
    out[4 + w] = _mm256_permute2x128_si256(quad[w], quad[4 + w], 0x31);
  }
}

// Columns 8*half .. +7 of a group of 4 blocks: columns[d] lane c = dword d of the group's 32 bytes.
inline void load_columns(const PanelSource& source, int64_t block, int half,
                         __m256i (&columns)[8]) {
  const int last = source.cols - 1;
  const uint8_t* at = source.codes + block * 8;
  const int64_t left = source.blocks - block;
  __m256i row[8];
  if (left >= kGroupBlocks && last == kPanelN - 1) {
    const uint8_t* lower = at + 8 * half * source.row_bytes;
    const uint8_t* upper = lower + 4 * source.row_bytes;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      row[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lower + i * source.row_bytes));
      row[4 + i] =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(upper + i * source.row_bytes));
    }
  } else {
    const int64_t bytes = (left < kGroupBlocks ? left : kGroupBlocks) * 8;
    for (int i = 0; i < 8; ++i) {
      const int c = 8 * half + i;
      alignas(32) uint8_t tail[32] = {};
      for (int64_t b = 0; b < bytes; ++b)
        tail[b] = at[(c < last ? c : last) * source.row_bytes + b];
      row[i] = load(tail);
    }
  }
  transpose_8x8(row, columns);
}

void pack_panel(const PanelSource& source, int64_t block_begin, int64_t blocks, uint8_t* packed) {
  for (int64_t done = 0; done < blocks; done += kGroupBlocks, packed += kPackedGroupBytes) {
    const int64_t block = block_begin + done;
    if (source.blocks - block >= kGroupBlocks) {
      for (int c = 0; c < source.cols; ++c)
        _mm_prefetch(
            reinterpret_cast<const char*>(source.codes + c * source.row_bytes) + block * 8 + 512,
            _MM_HINT_T0);
    }
    for (int half = 0; half < 2; ++half) {
      __m256i columns[8];
      load_columns(source, block, half, columns);
      for (int d = 0; d < 8; ++d)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed + 64 * d + 32 * half), columns[d]);
    }
    gather_group_scales(source, block, packed + kGroupBlocks * kBlockCodeBytes);
  }
}

#include "cpu/isa/avx2_gemv-inl.hpp"

void f32_to_f16(const float* in, uint16_t* out, int count) {
  for (int i = 0; i < count; i += 8) {
    const __m128i half =
        _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), half);
  }
}

constexpr Engine kE2m1Engine = {
    .mr = kMr,
    .tile_k_blocks = kTileKBlocks,
    .block_step = 1,
    .decoded_block_bytes = 4 * kHalfBlockBytes,
    .activation_bytes = 20,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = gemv,
};

}  // namespace

extern const Engine kF32Engine;  // avx2_f32.cpp

}  // namespace dualgemm::cpu::avx2

namespace dualgemm::cpu {

const KernelTable& avx2_table() noexcept {
  static constexpr KernelTable kTable = {.isa = Isa::kAvx2,
                                         .e2m1 = &avx2::kE2m1Engine,
                                         .f32 = &avx2::kF32Engine,
                                         .pack_panel = avx2::pack_panel,
                                         .activate = avx2::activate,
                                         .apply_factors = avx2::apply_factors,
                                         .f32_to_f16 = avx2::f32_to_f16};
  return kTable;
}

}  // namespace dualgemm::cpu
