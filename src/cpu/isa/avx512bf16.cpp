// AVX-512 with BF16: bf16 activations (W4A16). Codes are exact in bf16, products of pairs of k are
// exact in FP32, and vdpbf16ps adds two of them in one instruction, twice what an FMA does.
//
// Per 16-block: partial = 8 pairs of k, (t, t + 4) for t = 0 .. 3 of each half, from 0; then
// accumulator = fma(partial, scale, accumulator), as the other engines. vdpbf16ps rounds at the
// most twice a pair, in an order of the hardware's own, and flushes subnormal inputs and results
// to zero (Intel 64 and IA-32 Architectures Software Developer's Manual, "VDPBF16PS"): the bits
// differ from the other instruction sets, and a batch_invariant plan does not come here.
#include <immintrin.h>

#include "cpu/isa/avx512bf16.hpp"
#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"

constexpr int kMr = 32;
constexpr int kRowsAtOnce = 8;      // of sums in registers
constexpr int kPairs = 8;           // of k, in a block
constexpr int kRowBlockBytes = 32;  // of the activation
// "Decoded" k-tile, per block: the codes of P and of Q, then the FP32 scales of both. Codes become
// bf16 in registers, for eight rows at a time: a permute and a shift for eight vdpbf16ps. Tiles of
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

inline __m512 add_pair(__m512 sum, __m512i weights, const uint8_t* activation) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(broadcast_dword(activation)),
                          reinterpret_cast<__m512bh>(weights));
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  for (int block = 0; block < blocks; block += kGroupBlocks) {
    const int here = blocks - block < kGroupBlocks ? blocks - block : kGroupBlocks;
    const FourScales sp = decode_scales(_mm512_loadu_si512(p + kGroupBlocks * kBlockCodeBytes));
    const FourScales sq = decode_scales(_mm512_loadu_si512(q + kGroupBlocks * kBlockCodeBytes));
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
      uint8_t* at = packed + (int64_t{block} * height + r) * kRowBlockBytes;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), values);
    }
  }
}

// A block's partial sums of kRows rows, added to acc. height: of the activation's tile.
template <int kRows>
inline void add_block(const uint8_t* activation, __m512i low, __m512i high, __m512 scale,
                      __m512i table, __m512 (&acc)[kRows]) {
  __m512 sum[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_ps();
#pragma GCC unroll 8
  for (int pair = 0; pair < kPairs; ++pair) {
    const __m512i w = pair_at(pair < 4 ? low : high, pair % 4, table);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sum[r] = add_pair(sum[r], w, activation + r * kRowBlockBytes + 4 * pair);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc[r] = _mm512_fmadd_ps(sum[r], scale, acc[r]);
}

// One panel: codes and scales point into the first block of a decoded k-tile.
template <int kRows>
void multiply_panel(const uint8_t* activation, int height, const uint8_t* codes,
                    const uint8_t* scales, int blocks, bool accumulate, float* c) {
  const __m512i table = _mm512_load_si512(kValues);
  __m512 acc[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    acc[r] = accumulate ? _mm512_loadu_ps(c + r * kCTileN) : _mm512_setzero_ps();
  for (int block = 0; block < blocks; ++block) {
    add_block<kRows>(activation, _mm512_loadu_si512(codes), _mm512_loadu_si512(codes + 64),
                     _mm512_loadu_ps(scales), table, acc);
    activation += int64_t{kRowBlockBytes} * height;
    codes += kDecodedBlockBytes;
    scales += kDecodedBlockBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(c + r * kCTileN, acc[r]);
}

// Calls f.operator()<rows>(), rows 1 .. kRowsAtOnce.
template <class F>
inline void with_rows(int rows, const F& f) {
  switch (rows) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    case 7:
      return f.template operator()<7>();
    default:
      return f.template operator()<kRowsAtOnce>();
  }
}

void multiply(const uint8_t* activation, int height, const uint8_t* decoded, int blocks, int rows,
              bool accumulate, float* c) {
  for (int r = 0; r < rows; r += kRowsAtOnce) {
    const uint8_t* a = activation + r * kRowBlockBytes;
    float* out = c + r * kCTileN;
    with_rows(rows - r, [&]<int kRows>() {
      multiply_panel<kRows>(a, height, decoded, decoded + kScalesAt, blocks, accumulate, out);
      multiply_panel<kRows>(a, height, decoded + kCodesOfQ, decoded + kScalesAt + 64, blocks,
                            accumulate, out + kPanelN);
    });
  }
}

template <int kRows, bool kPacked>
inline void gemv_panel(const uint8_t* activation, int height, const PanelSource& source,
                       Ahead ahead, float* c) {
  const __m512i table = _mm512_load_si512(kValues);
  __m512 acc[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc[r] = _mm512_setzero_ps();
  for (int64_t block = 0; block < source.blocks; block += 8) {
    __m512i scale_bytes[2];
    alignas(64) __m512i codes[16];
    load_chunk<kPacked>(source, block, codes, scale_bytes);
    ahead.step();
    const int here = source.blocks - block < 8 ? static_cast<int>(source.blocks - block) : 8;
    FourScales scales{};
    for (int b = 0; b < here; ++b) {
      if (b % 4 == 0) scales = decode_scales(scale_bytes[b / 4]);
      add_block<kRows>(activation, codes[2 * b], codes[2 * b + 1], scales.block[b % 4], table, acc);
      activation += int64_t{kRowBlockBytes} * height;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(c + r * kCTileN, acc[r]);
}

// Eight rows at a time, of which the first waits for the weights.
void gemv_bf16(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c) {
  for (int r = 0; r < rows; r += kRowsAtOnce) {
    const bool first = r == 0 && next != nullptr;
    const Ahead ahead_p(first ? &next->p : nullptr), ahead_q(first ? &next->q : nullptr);
    const uint8_t* a = activation + r * kRowBlockBytes;
    float* out = c + r * kCTileN;
    with_rows(rows - r, [&]<int kRows>() {
      if (pair.p.packed != nullptr) {
        gemv_panel<kRows, true>(a, rows, pair.p, ahead_p, out);
        gemv_panel<kRows, true>(a, rows, pair.q, ahead_q, out + kPanelN);
      } else {
        gemv_panel<kRows, false>(a, rows, pair.p, ahead_p, out);
        gemv_panel<kRows, false>(a, rows, pair.q, ahead_q, out + kPanelN);
      }
    });
  }
}

}  // namespace

constexpr Engine kBf16Engine = {
    .mr = kMr,
    .tile_k_blocks = 32,
    .block_step = 1,
    .decoded_block_bytes = kDecodedBlockBytes,
    .activation_bytes = kRowBlockBytes,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = gemv_bf16,
    .gemv_rows = kMr,
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
