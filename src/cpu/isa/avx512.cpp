// AVX-512 with VNNI: lanes are the 16 columns of a panel, activation rows are broadcast.
//
// Cost of one 16-block x 16 columns x 1 row: 4 vpdpbusd + 1 fmsub + 1 fmadd. Both scalings and the
// dot products share the two multiply pipes, so the ceiling is 4/6 = 67 % of the VNNI peak; the
// register-only loop measures 63 % on Cascade Lake, 66.7 % on Zen 4.
//
//   * Weights are unsigned (2v + 12), activations signed; -12*sum(activation) is part of the
//     initial accumulator and so free.
//   * That initial value also holds 0x4B400000: the int32 result is the bit pattern of
//     1.5*2^23 + dot and needs no vcvtdq2ps (16 % on Cascade Lake, nothing on Zen 4, where
//     conversions have pipes of their own). x*s - (1.5*2^23)*s is exact: at most 16 significant
//     bits survive.
//   * Rows are interleaved in program order: a chain of 4 vpdpbusd is longer than what the
//     scheduler looks ahead on Intel.
#include <cpuid.h>
#include <immintrin.h>

#include "cpu/isa/avx512.hpp"
#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {
namespace {

#include "cpu/generic/activation-inl.hpp"
#include "cpu/generic/panel-inl.hpp"
#include "cpu/generic/rows-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"

// Rows of a tile: 12 sums and 12 dot products, 2 weights and a broadcast are 27 registers. 4, 5 and
// 6 rows are alike on AMD (Zen 5 with operands in L1: 98 to 99 % of the ceiling each). With six the
// loop has 138 instructions for 36 cycles of the two multiply ports, which a processor that takes
// four a cycle (Cascade Lake) has time for; with four 103 for 24.
constexpr int kMr = 6;
constexpr int kBlocksAhead = 16;  // how far ahead the activation is asked for, into L1
// c tiles take no more of an L2 beyond 1 MiB. Emerald Rapids (2 MiB), M = 512, N = 4096, K = 7168,
// prepared, 2026-11-30, ms with 1, 2, 4, 5, 8, 12 and 16 pairs: 134.3, 132.9, 132.3, 132.5, 133.5,
// 133.5, 134.4. A in fp16 is 3 % slower with 4 pairs than with 8.
constexpr int64_t kMostCBytes = 320 << 10;

// Decoded k-tile, per block: 4 x 64 weight bytes of P, of Q (in the order low, high nibbles of the
// first 8 k, then of the second), then FP32 s_p, kMagic*s_p, s_q, kMagic*s_q.
constexpr int64_t kDecodedBlockBytes = 768;
constexpr int64_t kScalesAt = 512;

void pack_panel(const PanelSource& source, int64_t block_begin, int64_t blocks, uint8_t* packed) {
  const int64_t groups = (blocks + kGroupBlocks - 1) / kGroupBlocks;
  for (int64_t group = 0; group < groups; group += 2) {
    const int64_t block = block_begin + group * kGroupBlocks;
    __m512i codes[16];
    load_codes(source, block, codes);
#pragma GCC unroll 2  // else `codes` lies in memory
    for (int g = 0; g < 2; ++g) {
      if (group + g == groups) break;
      uint8_t* out = packed + (group + g) * kPackedGroupBytes;
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) _mm512_storeu_si512(out + 64 * i, codes[8 * g + i]);
      gather_group_scales(source, block + g * kGroupBlocks, out + kGroupBlocks * kBlockCodeBytes);
    }
  }
}

inline void decode_panel_block(const uint8_t* group, int block, const FourScales& scales,
                               uint8_t* codes_out, uint8_t* scales_out) {
  const BlockWeights w = block_weights(group, block);
  for (int i = 0; i < 4; ++i) _mm512_store_si512(codes_out + 64 * i, w.part[i]);
  const __m512 s = scales.block[block];
  _mm512_store_ps(scales_out, s);
  _mm512_store_ps(scales_out + 64, _mm512_mul_ps(s, _mm512_set1_ps(kMagic)));
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  for (int block = 0; block < blocks; block += kGroupBlocks) {
    const int here = blocks - block < kGroupBlocks ? blocks - block : kGroupBlocks;
    const FourScales sp = group_scales(p);
    const FourScales sq = group_scales(q);
    for (int b = 0; b < here; ++b, decoded += kDecodedBlockBytes) {
      decode_panel_block(p, b, sp, decoded, decoded + kScalesAt);
      decode_panel_block(q, b, sq, decoded + 256, decoded + kScalesAt + 128);
    }
    p += kPackedGroupBytes;
    q += kPackedGroupBytes;
  }
}

// 8 blocks of one row -> 8 x 16 int8 in nibble order, and the sum of each block.
void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  if (height == 1) return pack_gemv_row(source, block_begin, blocks, packed);
  const __m512i nibble = _mm512_set1_epi8(0x0F), table = broadcast_bytes(kDoubled);
  const int64_t block_bytes = int64_t{kRowBlockBytes} * height;
  for (int r = 0; r < height; ++r) {
    uint8_t* const row = packed + r * kRowBlockBytes;
    for (int block = 0; block < blocks; block += 8) {
      const int here = blocks - block < 8 ? blocks - block : 8;
      const __mmask64 mask = r >= rows   ? 0
                             : here == 8 ? ~__mmask64{0}
                                         : (__mmask64{1} << (here * 8)) - 1;
      const uint8_t* const codes = source.row(r < rows ? r : 0) + (block_begin + block) * 8;
      // The next k-tile of the row: a tile's rows are more streams than prefetchers follow.
      _mm_prefetch(reinterpret_cast<const char*>(codes) + 256, _MM_HINT_T0);
      const __m512i x = _mm512_maskz_loadu_epi8(mask, codes);
      const __m512i low = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibble));
      const __m512i high =
          _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble));
      alignas(64) uint8_t values[2][64];  // even blocks, odd blocks
      alignas(64) int32_t sums[16];
      const __m512i even = _mm512_unpacklo_epi32(low, high), odd = _mm512_unpackhi_epi32(low, high);
      _mm512_store_si512(values[0], even);
      _mm512_store_si512(values[1], odd);
      const __m512i ones = _mm512_set1_epi8(1);
      const __m512i se = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, even);
      const __m512i so = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, odd);
      // Four partial sums in each 128-bit lane: dwords 0, 1 of a lane become even, odd.
      const __m512i pair =
          _mm512_add_epi32(_mm512_unpacklo_epi32(se, so), _mm512_unpackhi_epi32(se, so));
      _mm512_store_si512(sums, _mm512_add_epi32(pair, _mm512_shuffle_epi32(pair, _MM_PERM_BADC)));
      for (int b = 0; b < here; ++b) {
        uint8_t* out = row + (block + b) * block_bytes;
        copy_bytes<16>(values[b % 2] + 16 * (b / 2), out);
        const int32_t init = kMagicBits - kWeightOffset * sums[4 * (b / 2) + b % 2];
        copy_bytes<4>(&init, out + kInitAt);
      }
    }
    pack_activation_scales(source, r < rows ? r : -1, block_begin, blocks, row + kScaleAt,
                           block_bytes);
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
  const uint8_t* next = activation + int64_t{kBlocksAhead} * height * kRowBlockBytes;
  for (int block = 0; block < blocks; ++block) {
#pragma GCC unroll 3
    for (int at = 0; at < kRows * kRowBlockBytes; at += 64)
      _mm_prefetch(reinterpret_cast<const char*>(next) + at, _MM_HINT_T0);
    next += height * kRowBlockBytes;
    __m512i dot_p[kRows], dot_q[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) dot_p[r] = dot_q[r] = initial_dot(activation, r);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const __m512i w_p = _mm512_load_si512(decoded + 64 * part);
      const __m512i w_q = _mm512_load_si512(decoded + 256 + 64 * part);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i a = broadcast_dword(activation + r * kRowBlockBytes + part * 4);
        dot_p[r] = _mm512_dpbusd_epi32(dot_p[r], w_p, a);
        dot_q[r] = _mm512_dpbusd_epi32(dot_q[r], w_q, a);
      }
    }
    const __m512 s_p = _mm512_load_ps(decoded + kScalesAt);
    const __m512 magic_p = _mm512_load_ps(decoded + kScalesAt + 64);
    const __m512 s_q = _mm512_load_ps(decoded + kScalesAt + 128);
    const __m512 magic_q = _mm512_load_ps(decoded + kScalesAt + 192);
    add_scaled(activation, dot_p, dot_q, s_p, magic_p, s_q, magic_q, acc_p, acc_q);
    activation += height * kRowBlockBytes;
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

void f32_to_f16(const float* in, uint16_t* out, int count) {
  for (int i = 0; i < count; i += 16) {
    const __mmask16 mask =
        static_cast<__mmask16>(count - i >= 16 ? 0xFFFF : (1 << (count - i)) - 1);
    const __m256i half = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, in + i),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_mask_storeu_epi16(out + i, mask, half);
  }
}

constexpr Engine make_engine(decltype(Engine::gemv) gemv) {
  constexpr int kBlocksPacked = 8;
  static_assert(kBlocksPacked % kGroupBlocks == 0);
  return {
      .mr = kMr,
      .tile_k_blocks = 32,
      .block_step = 1,
      .decoded_block_bytes = kDecodedBlockBytes,
      .activation_bytes = kRowBlockBytes,
      .pack_activation = pack_activation,
      .decode = decode,
      .multiply = multiply,
      .gemv = gemv,
      .gemv_rows = 16,
      .blocks_packed = kBlocksPacked,
      .most_c_bytes = kMostCBytes,
  };
}

}  // namespace

bool asks_into_l1() noexcept {
  static const bool is_family_1a = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
    constexpr unsigned kExtended = 0xF;  // the base family; what is above it is added
    return (eax >> 8 & 0xF) == kExtended && (eax >> 20 & 0xFF) + kExtended == 0x1A;
  }();
  return is_family_1a;
}

}  // namespace dualgemm::cpu::avx512

namespace dualgemm::cpu {

const KernelTable& avx512_table() noexcept {
  static const Engine kE2m1Engine =
      avx512::make_engine(__builtin_cpu_supports("avx512vbmi") ? avx512::gemv_vbmi : avx512::gemv);
  static const KernelTable kTable = {.isa = Isa::kAvx512Vnni,
                                     .e2m1 = &kE2m1Engine,
                                     .f32 = &avx512::kF32Engine,
                                     .pack_panel = avx512::pack_panel,
                                     .activate = avx512::activate,
                                     .apply_factors = avx512::apply_factors,
                                     .f32_to_f16 = avx512::f32_to_f16};
  return kTable;
}

}  // namespace dualgemm::cpu
