// AMX-BF16: E2M1 x E4M3 has at most 6 significant bits, so both operands decode exactly to bf16 and
// the scales need no work of their own. Products are exact; the hardware adds pairs of k in FP32 in
// its own order, so the bits differ from the other instruction sets (docs/numerics.md) and a
// batch_invariant plan does not come here.
//
// TDPBF16PS treats subnormal inputs as zero and rounds to nearest even (Intel 64 and IA-32
// Architectures Software Developer's Manual, "TDPBF16PS"); our values are 0 or at least 2^-10.
//
// int8 tiles would not do: every 16-block needs its own scale, so a tile would be a quarter full
// and each block would cost a tile store and two vector operations.
#include <immintrin.h>

#include "cpu/isa/avx512.hpp"
#include "cpu/isa/avx512bf16.hpp"
#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::amx {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"

constexpr int kTileRows = 16;
constexpr int kMr = 2 * kTileRows;  // 2 activation tiles x (P, Q) = 4 accumulator tiles of the 8
constexpr int kStepBlocks = 2;      // 32 k a tile row

// Decoded k-tile, per 2 blocks: P, then Q, each 16 k-pairs x 16 columns x 2 bf16.
constexpr int64_t kTileBytes = 1024;
// Activation, per 2 blocks: 32 rows x 32 bf16.

alignas(64) constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                           -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// One k-pair of 16 columns: the even k in the lower half of each dword.
inline __m512i bf16_pair(__m512i dwords, int pair, __m512 scale, __m512 table) {
  const unsigned shift = static_cast<unsigned>(8 * pair);
  const __m512 even =
      _mm512_mul_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(dwords, shift), table), scale);
  const __m512 odd =
      _mm512_mul_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(dwords, shift + 4), table), scale);
  const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000u));
  return _mm512_ternarylogic_epi32(_mm512_castps_si512(odd), upper,
                                   _mm512_srli_epi32(_mm512_castps_si512(even), 16), 0xE2);
}

void decode_panel(const uint8_t* packed, int blocks, uint8_t* out) {
  const __m512 table = _mm512_load_ps(kValues);
  FourScales scales{};
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const int in_group = block % kGroupBlocks;
    if (in_group == 0)
      scales = decode_scales(_mm512_loadu_si512(group + kGroupBlocks * kBlockCodeBytes));
    uint8_t* at = out + block / kStepBlocks * 2 * kTileBytes + block % kStepBlocks * 512;
    for (int half = 0; half < 2; ++half) {
      const __m512i dwords = _mm512_loadu_si512(group + in_group * kBlockCodeBytes + 64 * half);
#pragma GCC unroll 4
      for (int pair = 0; pair < 4; ++pair)
        _mm512_store_si512(at + (4 * half + pair) * 64,
                           bf16_pair(dwords, pair, scales.block[in_group], table));
    }
  }
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  decode_panel(p, blocks, decoded);
  decode_panel(q, blocks, decoded + kTileBytes);
}

// 16 codes of a row -> 16 bf16.
inline __m256i bf16_block(const uint8_t* codes, float scale) {
  uint32_t half[2];
  __builtin_memcpy(half, codes, sizeof half);
  const __m512i dwords = _mm512_inserti64x4(_mm512_set1_epi32(static_cast<int32_t>(half[0])),
                                            _mm256_set1_epi32(static_cast<int32_t>(half[1])), 1);
  const __m512i shifts =
      _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  const __m512 value =
      _mm512_permutexvar_ps(_mm512_srlv_epi32(dwords, shifts), _mm512_load_ps(kValues));
  const __m512 scaled = _mm512_mul_ps(value, _mm512_set1_ps(scale));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(scaled), 16));
}

void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  for (int r = 0; r < height; ++r) {
    const uint8_t* codes = source.row(r < rows ? r : 0);
    const uint8_t* scales = source.scales + scale_row_offset(source, r < rows ? r : 0);
    for (int b = 0; b < blocks; ++b) {
      const int64_t block = block_begin + b;
      __m256i values = _mm256_setzero_si256();
      if (r < rows && block < source.blocks) {
        const uint8_t byte =
            scales[block / kGroupBlocks * source.scale_group_stride + block % kGroupBlocks];
        values = bf16_block(codes + block * 8, 4.0f * kQuarterScales.value[byte]);
      }
      uint8_t* at = packed + (int64_t{b} / kStepBlocks * height + r) * 64 + b % kStepBlocks * 32;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), values);
    }
  }
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kTileConfig;

constexpr int kCRowBytes = kCTileN * static_cast<int>(sizeof(float));

// Tiles 0-3: accumulators (rows 0-15 P, Q; rows 16-31 P, Q). 4, 5: activation. 6, 7: weights P, Q.
void multiply_32(const uint8_t* activation, const uint8_t* decoded, int steps, bool accumulate,
                 float* c) {
  float* c_low = c + kTileRows * kCTileN;
  if (accumulate) {
    _tile_loadd(0, c, kCRowBytes);
    _tile_loadd(1, c + kPanelN, kCRowBytes);
    _tile_loadd(2, c_low, kCRowBytes);
    _tile_loadd(3, c_low + kPanelN, kCRowBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int step = 0; step < steps; ++step) {
    _tile_loadd(4, activation, 64);
    _tile_loadd(6, decoded, 64);
    _tile_loadd(7, decoded + kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, activation + kTileRows * 64, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    activation += kMr * 64;
    decoded += 2 * kTileBytes;
  }
  _tile_stored(0, c, kCRowBytes);
  _tile_stored(1, c + kPanelN, kCRowBytes);
  _tile_stored(2, c_low, kCRowBytes);
  _tile_stored(3, c_low + kPanelN, kCRowBytes);
}

// The same when the lower 16 rows do not exist.
void multiply_16(const uint8_t* activation, const uint8_t* decoded, int steps, bool accumulate,
                 float* c) {
  if (accumulate) {
    _tile_loadd(0, c, kCRowBytes);
    _tile_loadd(1, c + kPanelN, kCRowBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (int step = 0; step < steps; ++step) {
    _tile_loadd(4, activation, 64);
    _tile_loadd(6, decoded, 64);
    _tile_loadd(7, decoded + kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    activation += kMr * 64;
    decoded += 2 * kTileBytes;
  }
  _tile_stored(0, c, kCRowBytes);
  _tile_stored(1, c + kPanelN, kCRowBytes);
}

// Whole tiles are computed and stored: the c tile has room for mr rows, rows that do not exist are
// 0.
void multiply(const uint8_t* activation, int, const uint8_t* decoded, int blocks, int rows,
              bool accumulate, float* c) {
  _tile_loadconfig(&kTileConfig);
  if (rows <= kTileRows)
    multiply_16(activation, decoded, blocks / kStepBlocks, accumulate, c);
  else
    multiply_32(activation, decoded, blocks / kStepBlocks, accumulate, c);
  _tile_release();
}

constexpr Engine kE2m1Engine = {
    .mr = kMr,
    .tile_k_blocks = 32,
    .block_step = kStepBlocks,
    .decoded_block_bytes = kTileBytes,
    .activation_bytes = 32,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = nullptr,
};

}  // namespace
}  // namespace dualgemm::cpu::amx

namespace dualgemm::cpu {

// Everything but the NVFP4 product is AVX-512's, with BF16, which AMX-BF16 does not come without.
const KernelTable& amx_table() noexcept {
  static const KernelTable kTable = [] {
    KernelTable table = avx512_table();
    table.isa = Isa::kAmxBf16;
    table.e2m1 = &amx::kE2m1Engine;
    table.bf16 = &avx512::kBf16Engine;
    return table;
  }();
  return kTable;
}

}  // namespace dualgemm::cpu
