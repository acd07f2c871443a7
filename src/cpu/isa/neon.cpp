// NEON with dot products (FEAT_DotProd): lanes are 4 columns of a panel, a row's codes are the
// indexed operand.
//
// Cost of one 16-block x 4 columns x 1 row: 4 sdot + 1 scvtf + 1 fmul + 1 fmla. Both operands are
// signed, so that no offset has to be taken back. The magic constant of avx512.cpp would save the
// conversion and cost a register move instead: fmla overwrites what it adds to.
//
// Speed was never measured: this file was written and tested under emulation. So nothing here
// prefetches, and the sizes of tiles follow from the number of registers and of L1's bytes alone.
#include <arm_neon.h>

#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::neon {
namespace {

#include "cpu/generic/activation-inl.hpp"
#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/neon-inl.hpp"

constexpr int kMr = 4;  // 8 columns: 8 sums + 8 dot products + 4 rows' codes leave 12 registers
constexpr int kTileKBlocks = 32;  // 20 KiB decoded

// Decoded k-tile: columns 0-7 and 8-15 of P, then of Q. One block of such an octet: per part (low,
// then high nibbles of the first 8 k, then of the second) 8 columns x 4 bytes; 8 x FP32 scale.
constexpr int kOctetVectors = 2;
constexpr int kOctet = kOctetVectors * kLanes;
constexpr int64_t kScalesAt = 4 * kOctet * 4;
constexpr int64_t kOctetBlockBytes = kScalesAt + kOctet * 4;
constexpr int64_t kOctetBytes = kTileKBlocks * kOctetBlockBytes;

void decode_panel(const uint8_t* packed, int blocks, uint8_t* out) {
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const uint8_t* codes = group + block % kGroupBlocks * kBlockCodeBytes;
    const uint8_t* scales = group + kGroupBlocks * kBlockCodeBytes;
    for (int v = 0; v < kPanelVectors; ++v) {
      uint8_t* octet = out + v / kOctetVectors * kOctetBytes + block * kOctetBlockBytes;
      uint8_t* at = octet + v % kOctetVectors * 16;
      for (int j = 0; j < 2; ++j, at += 2 * kOctet * 4) {
        const uint8x16_t x = vld1q_u8(codes + 64 * j + 16 * v);
        vst1q_u8(at, vreinterpretq_u8_s8(low_nibbles(x)));
        vst1q_u8(at + kOctet * 4, vreinterpretq_u8_s8(high_nibbles(x)));
      }
      vst1q_u8(octet + kScalesAt + v % kOctetVectors * 16,
               vreinterpretq_u8_f32(decode_scales(scales + 16 * v, block % kGroupBlocks)));
    }
  }
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  decode_panel(p, blocks, decoded);
  decode_panel(q, blocks, decoded + 2 * kOctetBytes);
}

void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  const int64_t block_bytes = int64_t{kRowBlockBytes} * height;
  for (int r = 0; r < height; ++r) {
    const uint8_t* codes = source.row(r < rows ? r : 0) + block_begin * 8;
    for (int block = 0; block < blocks; ++block) {
      uint8x8_t x = vdup_n_u8(0);
      if (r < rows) x = vld1_u8(codes + block * 8);
      const int8x16_t value = doubled(vcombine_u8(vand_u8(x, vdup_n_u8(0x0F)), vshr_n_u8(x, 4)));
      // Dwords: low 0-3, low 4-7, high 0-3, high 4-7 of the bytes. The middle ones change places.
      const int32x4_t dwords = vreinterpretq_s32_s8(value);
      const int32x2x2_t parts = vzip_s32(vget_low_s32(dwords), vget_high_s32(dwords));
      vst1q_u8(packed + block * block_bytes + r * 16,
               vreinterpretq_u8_s32(vcombine_s32(parts.val[0], parts.val[1])));
    }
    pack_activation_scales(source, r < rows ? r : -1, block_begin, blocks,
                           packed + height * 16 + r * 4, block_bytes);
  }
}

inline float32x4_t load_floats(const uint8_t* at) { return vreinterpretq_f32_u8(vld1q_u8(at)); }

// 16 k of 4 columns against one row.
inline int32x4_t dot_block(const int8x16_t (&weights)[4], int8x16_t row) {
  int32x4_t dot = vdotq_laneq_s32(vdupq_n_s32(0), weights[0], row, 0);
  dot = vdotq_laneq_s32(dot, weights[1], row, 1);
  dot = vdotq_laneq_s32(dot, weights[2], row, 2);
  return vdotq_laneq_s32(dot, weights[3], row, 3);
}

inline float32x4_t add_block(float32x4_t acc, int32x4_t dot, float32x4_t scale, float scale_a) {
  return vfmaq_n_f32(acc, vmulq_f32(vcvtq_f32_s32(dot), scale), scale_a);
}

template <int kRows>
inline void multiply_octet(const uint8_t* activation, int height, const uint8_t* w, int blocks,
                           bool accumulate, float* c) {
  float32x4_t acc[kOctetVectors][kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kOctetVectors; ++v)
      acc[v][r] = accumulate ? vld1q_f32(c + r * kCTileN + kLanes * v) : vdupq_n_f32(0.0f);
  }
  for (int block = 0; block < blocks; ++block) {
#pragma GCC unroll 2
    for (int v = 0; v < kOctetVectors; ++v) {
      const uint8_t* at = w + 16 * v;
      const int8x16_t weights[4] = {load_bytes(at), load_bytes(at + kOctet * 4),
                                    load_bytes(at + 2 * kOctet * 4),
                                    load_bytes(at + 3 * kOctet * 4)};
      const float32x4_t scale = load_floats(at + kScalesAt);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        acc[v][r] = add_block(acc[v][r], dot_block(weights, load_bytes(activation + r * 16)), scale,
                              load_float(activation + height * 16 + r * 4));
    }
    activation += height * kRowBlockBytes;
    w += kOctetBlockBytes;
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kOctetVectors; ++v) vst1q_f32(c + r * kCTileN + kLanes * v, acc[v][r]);
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

// 4 rows of 16 bytes -> 4 vectors; out[d] lane c = dword d of row c.
inline void transpose_4x4(const uint32x4_t (&row)[4], uint8x16_t* out) {
  const uint32x4x2_t upper = vtrnq_u32(row[0], row[1]), lower = vtrnq_u32(row[2], row[3]);
#pragma GCC unroll 2
  for (int odd = 0; odd < 2; ++odd) {
    const uint64x2_t u = vreinterpretq_u64_u32(upper.val[odd]);
    const uint64x2_t l = vreinterpretq_u64_u32(lower.val[odd]);
    out[odd] = vreinterpretq_u8_u64(vtrn1q_u64(u, l));
    out[2 + odd] = vreinterpretq_u8_u64(vtrn2q_u64(u, l));
  }
}

// Columns 4*v .. +3 of a group of 4 blocks: columns[d] lane c = dword d of the group's 32 bytes.
inline void load_columns(const PanelSource& source, int64_t block, int v,
                         uint8x16_t (&columns)[8]) {
  const int last = source.cols - 1;
  const uint8_t* at = source.codes + block * 8;
  const int64_t left = source.blocks - block;
  const int64_t bytes = (left < kGroupBlocks ? left : kGroupBlocks) * 8;
  uint32x4_t row[2][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int c = kLanes * v + i;
    const uint8_t* codes = at + (c < last ? c : last) * source.row_bytes;
    alignas(16) uint8_t tail[32] = {};
    if (bytes < 32) {
      for (int64_t b = 0; b < bytes; ++b) tail[b] = codes[b];
      codes = tail;
    }
    row[0][i] = vreinterpretq_u32_u8(vld1q_u8(codes));
    row[1][i] = vreinterpretq_u32_u8(vld1q_u8(codes + 16));
  }
  transpose_4x4(row[0], columns);
  transpose_4x4(row[1], columns + 4);
}

void pack_panel(const PanelSource& source, int64_t block_begin, int64_t blocks, uint8_t* packed) {
  for (int64_t done = 0; done < blocks; done += kGroupBlocks, packed += kPackedGroupBytes) {
    const int64_t block = block_begin + done;
    for (int v = 0; v < kPanelVectors; ++v) {
      uint8x16_t columns[8];
      load_columns(source, block, v, columns);
      for (int d = 0; d < 8; ++d) vst1q_u8(packed + 64 * d + 16 * v, columns[d]);
    }
    gather_group_scales(source, block, packed + kGroupBlocks * kBlockCodeBytes);
  }
}

// Up to four activation rows against a panel over all of k, without a decoded k-tile: a group of 4
// blocks is transposed and decoded in registers.
template <int kRows>
inline void gemv_panel(const uint8_t* activation, const PanelSource& source, float* c) {
  float32x4_t acc[kPanelVectors][kRows];
#pragma GCC unroll 4
  for (int v = 0; v < kPanelVectors; ++v) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) acc[v][r] = vdupq_n_f32(0.0f);
  }
  for (int64_t block = 0; block < source.blocks; block += kGroupBlocks) {
    const int64_t left = source.blocks - block;
    const int here = left < kGroupBlocks ? static_cast<int>(left) : kGroupBlocks;
    const uint8_t* const group = source.packed == nullptr
                                     ? nullptr
                                     : source.packed + block / kGroupBlocks * kPackedGroupBytes;
    alignas(16) uint8_t scale_bytes[64];
    const uint8_t* scales = scale_bytes;
    if (source.packed != nullptr)
      scales = group + kGroupBlocks * kBlockCodeBytes;
    else
      gather_group_scales(source, block, scale_bytes);
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) {
      uint8x16_t columns[8];
      if (source.packed != nullptr) {
#pragma GCC unroll 8
        for (int d = 0; d < 8; ++d) columns[d] = vld1q_u8(group + 64 * d + 16 * v);
      } else {
        load_columns(source, block, v, columns);
      }
#pragma GCC unroll 4
      for (int b = 0; b < kGroupBlocks; ++b) {
        if (b == here) break;
        const int8x16_t weights[4] = {low_nibbles(columns[2 * b]), high_nibbles(columns[2 * b]),
                                      low_nibbles(columns[2 * b + 1]),
                                      high_nibbles(columns[2 * b + 1])};
        const float32x4_t scale = decode_scales(scales + 16 * v, b);
        const uint8_t* a = activation + b * (kRows * kRowBlockBytes);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r)
          acc[v][r] = add_block(acc[v][r], dot_block(weights, load_bytes(a + r * 16)), scale,
                                load_float(a + kRows * 16 + r * 4));
      }
    }
    activation += kGroupBlocks * kRows * kRowBlockBytes;
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) vst1q_f32(c + r * kCTileN + kLanes * v, acc[v][r]);
  }
}

template <int kRows>
void gemv_rows(const uint8_t* activation, const PanelPair& pair, float* c) {
  gemv_panel<kRows>(activation, pair.p, c);
  gemv_panel<kRows>(activation, pair.q, c + kPanelN);
}

void gemv(const uint8_t* activation, const PanelPair& pair, const PanelPair*, int rows, float* c) {
  switch (rows) {
    case 1:
      return gemv_rows<1>(activation, pair, c);
    case 2:
      return gemv_rows<2>(activation, pair, c);
    case 3:
      return gemv_rows<3>(activation, pair, c);
    default:
      return gemv_rows<4>(activation, pair, c);
  }
}

void f32_to_f16(const float* in, uint16_t* out, int count) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes)
    vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(in + i))));
  for (; i < count; ++i)
    out[i] = vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(in[i]))), 0);
}

constexpr Engine kE2m1Engine = {
    .mr = kMr,
    .tile_k_blocks = kTileKBlocks,
    .block_step = 1,
    .decoded_block_bytes = 4 * kOctetBlockBytes,
    .activation_bytes = kRowBlockBytes,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = gemv,
};

}  // namespace

extern const Engine kF32Engine;  // neon_f32.cpp

}  // namespace dualgemm::cpu::neon

namespace dualgemm::cpu {

const KernelTable& neon_table() noexcept {
  static constexpr KernelTable kTable = {.isa = Isa::kNeon,
                                         .e2m1 = &neon::kE2m1Engine,
                                         .f32 = &neon::kF32Engine,
                                         .pack_panel = neon::pack_panel,
                                         .activate = neon::activate,
                                         .apply_factors = neon::apply_factors,
                                         .f32_to_f16 = neon::f32_to_f16};
  return kTable;
}

}  // namespace dualgemm::cpu
