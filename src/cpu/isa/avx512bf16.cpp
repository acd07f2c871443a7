// AVX-512 with BF16: bf16 activations (W4A16). Codes are exact in bf16, products of pairs of k are
// exact in FP32, and vdpbf16ps adds two of them in one instruction, twice what an FMA does.
//
// Per 16-block: partial = 8 pairs of k, (t, t + 4) for t = 0 .. 3 of each half, from 0; then
// accumulator = fma(partial, scale, accumulator), as the other engines. vdpbf16ps rounds at the
// most twice a pair, in an order of the hardware's own, and flushes subnormal inputs and results
// to zero (Intel 64 and IA-32 Architectures Software Developer's Manual, "VDPBF16PS"): the bits
// differ from the other instruction sets, and a batch_invariant plan does not come here.
#include <immintrin.h>

#include "cpu/isa/avx512.hpp"
#include "cpu/isa/avx512bf16.hpp"
#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/generic/rows-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"

constexpr int kMr = 6;           // 12 sums of a block and 12 of all blocks in registers
constexpr int kPairsBytes = 32;  // of the activation, per block and row
constexpr int kBlocksAhead = 8;  // how far ahead the activation is asked for, into L1
// "Decoded" k-tile, per block: the codes of P and of Q, then the FP32 scales of both. Codes become
// bf16 in registers, for six rows at a time: a permute and a shift for six vdpbf16ps. Tiles of
// bf16 values were slower: 2.4 ms against 1.5 at M = 16, N = K = 4096 on two cores of a Zen 5.
constexpr int64_t kCodesOfQ = kBlockCodeBytes, kScalesAt = 2 * kBlockCodeBytes;
constexpr int64_t kDecodedBlockBytes = kScalesAt + 128;

// bf16 of the codes, twice: vpermw looks at five index bits, of which the fifth is another code's.
alignas(64) constexpr uint16_t kValues[32] = {
    0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, 0x8000, 0xBF00, 0xBF80,
    0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0, 0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040,
    0x4080, 0x40C0, 0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};

// Column lane c of `dwords` holds 8 nibbles: nibbles t and t + 4 of them as a pair of bf16.
inline __m512i pair_at(__m512i dwords, int t, __m512i table) {
  return _mm512_permutexvar_epi16(_mm512_srli_epi32(dwords, static_cast<unsigned>(4 * t)), table);
}

inline __m512 add_pair(__m512 sum, __m512i weights, __m512i activation) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(activation),
                          reinterpret_cast<__m512bh>(weights));
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  for (int block = 0; block < blocks; block += kGroupBlocks) {
    const int here = blocks - block < kGroupBlocks ? blocks - block : kGroupBlocks;
    const FourScales sp = group_scales(p);
    const FourScales sq = group_scales(q);
    for (int b = 0; b < here; ++b, decoded += kDecodedBlockBytes) {
      copy_bytes<kBlockCodeBytes>(p + b * kBlockCodeBytes, decoded);
      copy_bytes<kBlockCodeBytes>(q + b * kBlockCodeBytes, decoded + kCodesOfQ);
      _mm512_store_ps(decoded + kScalesAt, sp.block[b]);
      _mm512_store_ps(decoded + kScalesAt + 64, sq.block[b]);
    }
    p += kPackedGroupBytes;
    q += kPackedGroupBytes;
  }
}

// Per block and row: the pairs (t, t + 4) of the lower eight k, then of the upper eight.
void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  for (int r = 0; r < height; ++r) {
    const uint8_t* row = r < rows ? source.row(r) + block_begin * 32 : nullptr;
    for (int block = 0; block < blocks; ++block) {
      __m256i values = _mm256_setzero_si256();
      if (row != nullptr) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + block * 32));
        values = _mm256_unpacklo_epi16(x, _mm256_srli_si256(x, 8));
      }
      uint8_t* at = packed + (int64_t{block} * height + r) * kPairsBytes;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), values);
    }
  }
}

// A block's partial sums of kRows rows, added to acc. codes: of the block, of both panels.
template <int kRows>
inline void add_block(const uint8_t* activation, const uint8_t* codes_p, const uint8_t* codes_q,
                      __m512 scale_p, __m512 scale_q, __m512i table, __m512 (&acc_p)[kRows],
                      __m512 (&acc_q)[kRows]) {
  __m512 sum_p[kRows], sum_q[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum_p[r] = sum_q[r] = _mm512_setzero_ps();
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512i half_p = _mm512_loadu_si512(codes_p + 64 * half);
    const __m512i half_q = _mm512_loadu_si512(codes_q + 64 * half);
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
      const __m512i w_p = pair_at(half_p, pair, table), w_q = pair_at(half_q, pair, table);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i a = broadcast_dword(activation + r * kPairsBytes + 16 * half + 4 * pair);
        sum_p[r] = add_pair(sum_p[r], w_p, a);
        sum_q[r] = add_pair(sum_q[r], w_q, a);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    acc_p[r] = _mm512_fmadd_ps(sum_p[r], scale_p, acc_p[r]);
    acc_q[r] = _mm512_fmadd_ps(sum_q[r], scale_q, acc_q[r]);
  }
}

// Codes and scales of a decoded k-tile, for kRows rows.
template <int kRows>
inline void multiply_rows(const uint8_t* activation, int height, const uint8_t* decoded, int blocks,
                          bool accumulate, float* c) {
  const __m512i table = _mm512_load_si512(kValues);
  __m512 acc_p[kRows], acc_q[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    acc_p[r] = accumulate ? _mm512_loadu_ps(c + r * kCTileN) : _mm512_setzero_ps();
    acc_q[r] = accumulate ? _mm512_loadu_ps(c + r * kCTileN + kPanelN) : _mm512_setzero_ps();
  }
  // What follows of the activation, the next tile at the end, from L2.
  const uint8_t* next = activation + int64_t{kBlocksAhead} * height * kPairsBytes;
  for (int block = 0; block < blocks; ++block) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r += 2)
      _mm_prefetch(reinterpret_cast<const char*>(next) + r * kPairsBytes, _MM_HINT_T0);
    next += height * kPairsBytes;
    add_block<kRows>(activation, decoded, decoded + kCodesOfQ, _mm512_load_ps(decoded + kScalesAt),
                     _mm512_load_ps(decoded + kScalesAt + 64), table, acc_p, acc_q);
    activation += int64_t{kPairsBytes} * height;
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

template <int kRows, bool kPacked>
void gemv_rows(const uint8_t* activation, int height, const PanelPair& pair, Ahead ahead,
               float* c) {
  const __m512i table = _mm512_load_si512(kValues);
  __m512 acc_p[kRows], acc_q[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc_p[r] = acc_q[r] = _mm512_setzero_ps();
  for_pair_blocks<kPacked, true>(
      pair, ahead,
      [&](const uint8_t* p, const uint8_t* q, __m512 s_p, __m512 s_q)
          __attribute__((always_inline)) {
            add_block<kRows>(activation, p, q, s_p, s_q, table, acc_p, acc_q);
            activation += int64_t{kPairsBytes} * height;
          });
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * kCTileN, acc_p[r]);
    _mm512_storeu_ps(c + r * kCTileN + kPanelN, acc_q[r]);
  }
}

void gemv_bf16(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c) {
  gemv_in_runs<kMr>(pair, next, rows, [&]<int kRows, bool kPacked>(int first, Ahead ahead) {
    gemv_rows<kRows, kPacked>(activation + first * kPairsBytes, rows, pair, ahead,
                              c + first * kCTileN);
  });
}

}  // namespace

constexpr Engine kBf16Engine = {
    .mr = kMr,
    .tile_k_blocks = 32,
    .block_step = 1,
    .decoded_block_bytes = kDecodedBlockBytes,
    .activation_bytes = kPairsBytes,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = gemv_bf16,
    .gemv_rows = 16,
};

}  // namespace dualgemm::cpu::avx512

namespace dualgemm::cpu {

// Everything but products of bf16 is AVX-512's.
const KernelTable& avx512bf16_table() noexcept {
  static const KernelTable kTable = [] {
    KernelTable table = avx512_table();
    table.isa = Isa::kAvx512Bf16;
    table.bf16 = &avx512::kBf16Engine;
    return table;
  }();
  return kTable;
}

}  // namespace dualgemm::cpu
