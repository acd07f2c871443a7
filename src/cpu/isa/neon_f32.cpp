// NEON for 16- and 32-bit activations (W4A16); avx512_f32.cpp has the arithmetic.
#include <arm_neon.h>

#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::neon {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/neon-inl.hpp"

constexpr int kMr = 4;  // 8 columns: 8 accumulators + 8 partial sums + 2 weights + the rows' values
constexpr int kTileKBlocks = 8;

// Decoded k-tile: columns 0-7 and 8-15 of P, then of Q. One block of such an octet: 16 k x 8
// values, then the 8 FP32 scales.
constexpr int kOctet = 2 * kLanes;
constexpr int kOctetVectors = kOctet / kLanes;
constexpr int64_t kScalesAt = 16 * kOctet;
constexpr int64_t kOctetBlockFloats = kScalesAt + kOctet;
constexpr int64_t kOctetFloats = kTileKBlocks * kOctetBlockFloats;

void decode_panel(const uint8_t* packed, int blocks, float* out) {
  for (int block = 0; block < blocks; ++block) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const uint8_t* codes = group + block % kGroupBlocks * kBlockCodeBytes;
    const uint8_t* scales = group + kGroupBlocks * kBlockCodeBytes;
    for (int v = 0; v < kPanelVectors; ++v) {
      float* octet = out + v / kOctetVectors * kOctetFloats + block * kOctetBlockFloats;
      float* at = octet + v % kOctetVectors * kLanes;
      for (int j = 0; j < 2; ++j) {
        const uint32x4_t x = vreinterpretq_u32_u8(vld1q_u8(codes + 64 * j + 16 * v));
        for (int k = 0; k < 8; ++k, at += kOctet) {
          const uint32x4_t index = vandq_u32(vshlq_u32(x, vdupq_n_s32(-4 * k)), vdupq_n_u32(0x0F));
          // The upper bytes of a lane are table[0] = 0. The fixed point of the conversion halves.
          const int32x4_t byte = vreinterpretq_s32_s8(doubled(vreinterpretq_u8_u32(index)));
          const int32x4_t value = vshrq_n_s32(vshlq_n_s32(byte, 24), 24);
          vst1q_f32(at, vcvtq_n_f32_s32(value, 1));
        }
      }
      vst1q_f32(octet + kScalesAt + v % kOctetVectors * kLanes,
                decode_scales(scales + 16 * v, block % kGroupBlocks));
    }
  }
}

void decode(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
  auto* out = reinterpret_cast<float*>(decoded);
  decode_panel(p, blocks, out);
  decode_panel(q, blocks, out + 2 * kOctetFloats);
}

inline float32x4_t load_4(DataType type, const uint8_t* at) {
  switch (type) {
    case DataType::kF16:
      return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(at)));
    case DataType::kBF16:
      return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(at)), 16));
    default:
      return vreinterpretq_f32_u8(vld1q_u8(at));
  }
}

// Per block: 16 k x height floats.
void pack_activation(const ActivationSource& source, int rows, int height, int64_t block_begin,
                     int blocks, uint8_t* packed) {
  const int64_t value_bytes = source.type == DataType::kF32 ? 4 : 2;
  for (int block = 0; block < blocks; ++block, packed += int64_t{64} * height) {
    for (int r = 0; r < height; ++r) {
      alignas(16) float values[16] = {};
      if (r < rows) {
        const uint8_t* at = source.row(r) + (block_begin + block) * 16 * value_bytes;
        for (int k = 0; k < 16; k += kLanes)
          vst1q_f32(values + k, load_4(source.type, at + k * value_bytes));
      }
      for (int k = 0; k < 16; ++k) copy_bytes<4>(&values[k], packed + (k * height + r) * 4);
    }
  }
}

template <int kRows>
inline void multiply_octet(const float* a, int height, const float* w, int blocks, bool accumulate,
                           float* c) {
  float32x4_t acc[kOctetVectors][kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kOctetVectors; ++v)
      acc[v][r] = accumulate ? vld1q_f32(c + r * kCTileN + kLanes * v) : vdupq_n_f32(0.0f);
  }
  for (int block = 0; block < blocks; ++block) {
    float32x4_t sum[kOctetVectors][kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[0][r] = sum[1][r] = vdupq_n_f32(0.0f);
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) {
#pragma GCC unroll 2
      for (int v = 0; v < kOctetVectors; ++v) {
        const float32x4_t weights = vld1q_f32(w + k * kOctet + kLanes * v);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r)
          sum[v][r] = vfmaq_n_f32(sum[v][r], weights, a[k * height + r]);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kOctetVectors; ++v) {
      const float32x4_t scale = vld1q_f32(w + kScalesAt + kLanes * v);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) acc[v][r] = vfmaq_f32(acc[v][r], sum[v][r], scale);
    }
    a += 16 * height;
    w += kOctetBlockFloats;
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
  const auto* a = reinterpret_cast<const float*>(activation);
  const auto* w = reinterpret_cast<const float*>(decoded);
  for (int octet = 0; octet < kCTileN / kOctet; ++octet)
    multiply_octet<kRows>(a, height, w + octet * kOctetFloats, blocks, accumulate,
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

extern const Engine kF32Engine;
constexpr Engine kF32Engine = {
    .mr = kMr,
    .tile_k_blocks = kTileKBlocks,
    .block_step = 1,
    .decoded_block_bytes = 4 * kOctetBlockFloats * static_cast<int64_t>(sizeof(float)),
    .activation_bytes = 64,
    .pack_activation = pack_activation,
    .decode = decode,
    .multiply = multiply,
    .gemv = nullptr,
};

}  // namespace dualgemm::cpu::neon
