// NEON with matrix products of bytes (FEAT_I8MM): one smmla multiplies 8 k of 2 rows with 2
// columns, twice what an sdot does.
//
// Cost of one 16-block x 2 columns x 2 rows: 2 smmla + 1 scvtf + 1 fmul + 1 fmla, where sdot needs
// 4 + 3 for the same. The sums stay as smmla leaves them, (r0 c0, r0 c1, r1 c0, r1 c1), until the
// k-tile ends. Everything but the multiplication of tiles is neon.cpp's, its activation included:
// two rows' halves of a block become one operand by two trn a block. Speed was never measured.
#include <arm_neon.h>

#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::neon_i8mm {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/neon-inl.hpp"

constexpr int kTileKBlocks = 32;  // 20 KiB decoded

// Decoded k-tile: columns 0-7 and 8-15 of P, then of Q. One block of such an octet: per pair of
// columns 2 x 8 bytes of the first 8 k, then of the second 8, in the nibble order; 8 x FP32 scale.
constexpr int kOctet = 8;
constexpr int kOctetPairs = kOctet / 2;
constexpr int64_t kPairBytes = 32;
constexpr int64_t kScalesAt = kOctetPairs * kPairBytes;
constexpr int64_t kOctetBlockBytes = kScalesAt + kOctet * 4;
constexpr int64_t kOctetBytes = kTileKBlocks * kOctetBlockBytes;

void decode_panel(const uint8_t* packed, int blocks, uint8_t* out) {
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const uint8_t* codes = group + block % kGroupBlocks * kBlockCodeBytes;
    const uint8_t* scales = group + kGroupBlocks * kBlockCodeBytes;
    for (int v = 0; v < kPanelVectors; ++v) {
      uint8_t* octet = out + v / 2 * kOctetBytes + block * kOctetBlockBytes;
      uint8_t* at = octet + v % 2 * 2 * kPairBytes;
      for (int half = 0; half < 2; ++half) {
        const uint8x16_t x = vld1q_u8(codes + 64 * half + 16 * v);
        const int32x4_t low = vreinterpretq_s32_s8(low_nibbles(x));
        const int32x4_t high = vreinterpretq_s32_s8(high_nibbles(x));
        vst1q_u8(at + 16 * half, vreinterpretq_u8_s32(vzip1q_s32(low, high)));
        vst1q_u8(at + kPairBytes + 16 * half, vreinterpretq_u8_s32(vzip2q_s32(low, high)));
      }
      vst1q_u8(octet + kScalesAt + v % 2 * 16,
               vreinterpretq_u8_f32(decode_scales(scales + 16 * v, block % kGroupBlocks)));
    }
  }
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  decode_panel(p, blocks, decoded);
  decode_panel(q, blocks, decoded + 2 * kOctetBytes);
}

inline int64x2_t load_row(const uint8_t* at) { return vreinterpretq_s64_u8(vld1q_u8(at)); }

// (x0, x1, x0, x1) of the two floats there.
inline float32x4_t load_pair_twice(const uint8_t* at) {
  uint64_t pair;
  __builtin_memcpy(&pair, at, sizeof pair);
  return vreinterpretq_f32_u64(vdupq_n_u64(pair));
}

// kRows: 1 .. 4; the second row of the last pair of an odd number repeats the first and is dropped.
template <int kRows>
inline void multiply_octet(const uint8_t* activation, int height, const uint8_t* w, int blocks,
                           bool accumulate, float* c) {
  constexpr int kRowPairs = (kRows + 1) / 2;
  const auto second = [](int pair) { return 2 * pair + 1 < kRows ? 2 * pair + 1 : 2 * pair; };
  float32x4_t acc[kRowPairs][kOctetPairs];
#pragma GCC unroll 2
  for (int i = 0; i < kRowPairs; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kOctetPairs; ++j) {
      acc[i][j] = vdupq_n_f32(0.0f);
      if (accumulate)
        acc[i][j] = vcombine_f32(vld1_f32(c + 2 * i * kCTileN + 2 * j),
                                 vld1_f32(c + second(i) * kCTileN + 2 * j));
    }
  }
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* scales_a = activation + height * 16;
#pragma GCC unroll 2
    for (int i = 0; i < kRowPairs; ++i) {
      const int64x2_t row0 = load_row(activation + 2 * i * 16);
      const int64x2_t row1 = load_row(activation + second(i) * 16);
      const int8x16_t first8 = vreinterpretq_s8_s64(vtrn1q_s64(row0, row1));
      const int8x16_t second8 = vreinterpretq_s8_s64(vtrn2q_s64(row0, row1));
      const float32x4_t scale_a = vcombine_f32(vdup_n_f32(load_float(scales_a + 2 * i * 4)),
                                               vdup_n_f32(load_float(scales_a + second(i) * 4)));
#pragma GCC unroll 4
      for (int j = 0; j < kOctetPairs; ++j) {
        const uint8_t* at = w + j * kPairBytes;
        int32x4_t dot = vmmlaq_s32(vdupq_n_s32(0), first8, load_bytes(at));
        dot = vmmlaq_s32(dot, second8, load_bytes(at + 16));
        const float32x4_t scale = load_pair_twice(w + kScalesAt + 8 * j);
        acc[i][j] = vfmaq_f32(acc[i][j], vmulq_f32(vcvtq_f32_s32(dot), scale), scale_a);
      }
    }
    activation += height * kRowBlockBytes;
    w += kOctetBlockBytes;
  }
#pragma GCC unroll 2
  for (int i = 0; i < kRowPairs; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kOctetPairs; ++j) {
      vst1_f32(c + 2 * i * kCTileN + 2 * j, vget_low_f32(acc[i][j]));
      if (2 * i + 1 < kRows) vst1_f32(c + (2 * i + 1) * kCTileN + 2 * j, vget_high_f32(acc[i][j]));
    }
  }
}

template <int kRows>
inline void multiply_rows(const uint8_t* activation, int height, const uint8_t* decoded, int blocks,
                          bool accumulate, float* c) {
  for (int octet = 0; octet < kCTileN / kOctet; ++octet)
    multiply_octet<kRows>(activation, height, decoded + octet * kOctetBytes, blocks, accumulate,
                          c + octet * kOctet);
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
}  // namespace dualgemm::cpu::neon_i8mm

namespace dualgemm::cpu {

const KernelTable& neon_i8mm_table() noexcept {
  static const Engine kE2m1Engine = [] {
    Engine engine = *neon_table().e2m1;
    engine.tile_k_blocks = neon_i8mm::kTileKBlocks;
    engine.decoded_block_bytes = 4 * neon_i8mm::kOctetBlockBytes;
    engine.decode = neon_i8mm::decode;
    engine.multiply = neon_i8mm::multiply;
    return engine;
  }();
  static const KernelTable kTable = [] {
    KernelTable table = neon_table();
    table.isa = Isa::kNeonI8mm;
    table.e2m1 = &kE2m1Engine;
    return table;
  }();
  return kTable;
}

}  // namespace dualgemm::cpu
