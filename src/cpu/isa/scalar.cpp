// Portable C++: what every other instruction set is compared with, and what runs where none of them
// exists. The same order of additions, so the same bits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/e2m1.hpp"
#include "core/e4m3.hpp"
#include "core/half.hpp"
#include "cpu/isa/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::scalar {
namespace {

#include "cpu/generic/activation-inl.hpp"
#include "cpu/generic/panel-inl.hpp"

constexpr int kMr = 4;
constexpr int kTileKBlocks = 16;

void pack_panel(const PanelSource& source, int64_t block_begin, int64_t blocks, uint8_t* packed) {
  for (int64_t done = 0; done < blocks; done += kGroupBlocks, packed += kPackedGroupBytes) {
    const int64_t block = block_begin + done;
    std::memset(packed, 0, kGroupBlocks * kBlockCodeBytes);
    const auto here = static_cast<size_t>(std::min<int64_t>(kGroupBlocks, source.blocks - block));
    for (int c = 0; c < kPanelN; ++c) {
      const uint8_t* row =
          source.codes + std::min(c, source.cols - 1) * source.row_bytes + block * 8;
      for (size_t dword = 0; dword < 2 * here; ++dword)
        std::memcpy(packed + dword * 64 + c * 4, row + dword * 4, 4);
    }
    gather_group_scales(source, block, packed + kGroupBlocks * kBlockCodeBytes);
  }
}

// One decoded column of a block: `Value` in ascending k, and its scale.
template <class Value>
struct Column {
  Value value[16];
  float scale;
};
// Decoded k-tile: per block 16 columns of P, then 16 of Q.
template <class Value>
constexpr int64_t kDecodedBytes = kCTileN * sizeof(Column<Value>);

template <class Value, class Table>
void decode_panel(const uint8_t* packed, int blocks, const Table& table, Column<Value>* out) {
  for (int block = 0; block < blocks; ++block, out += kCTileN) {
    const uint8_t* group = packed + block / kGroupBlocks * kPackedGroupBytes;
    const uint8_t* codes = group + block % kGroupBlocks * kBlockCodeBytes;
    const uint8_t* scales = group + kGroupBlocks * kBlockCodeBytes + block % kGroupBlocks;
    for (int c = 0; c < kPanelN; ++c) {
      for (int k = 0; k < 16; ++k) {
        const uint8_t byte = codes[k / 8 * 64 + c * 4 + k % 8 / 2];
        out[c].value[k] = static_cast<Value>(table[k % 2 == 0 ? byte & 0xF : byte >> 4]);
      }
      out[c].scale = core::decode_scale(scales[c * 4]);
    }
  }
}

template <class Value, class Table>
void decode_pair(const uint8_t* p, const uint8_t* q, int blocks, const Table& table,
                 uint8_t* decoded) {
  auto* out = reinterpret_cast<Column<Value>*>(decoded);
  decode_panel(p, blocks, table, out);
  decode_panel(q, blocks, table, out + kPanelN);
}

// Activation of one row and block.
template <class Value>
struct RowBlockValues {
  Value value[16];
  float quarter_scale;  // kE2M1: scale / 4, because both operands are doubled
};

// 16 products and their place in the accumulator: the only rounding is the last addition.
float add_block(const RowBlockValues<int8_t>& a, const Column<int8_t>& w, float acc) {
  int32_t dot = 0;
  for (int k = 0; k < 16; ++k) dot += a.value[k] * w.value[k];
  return acc + static_cast<float>(dot) * w.scale * a.quarter_scale;
}
float add_block(const RowBlockValues<float>& a, const Column<float>& w, float acc) {
  float sum = 0.0f;
  for (int k = 0; k < 16; ++k) sum = std::fma(a.value[k], w.value[k], sum);
  return std::fma(sum, w.scale, acc);
}

template <class Value>
void multiply(const uint8_t* activation, int height, const uint8_t* decoded, int blocks, int rows,
              bool accumulate, float* c) {
  const auto* a = reinterpret_cast<const RowBlockValues<Value>*>(activation);
  const auto* w = reinterpret_cast<const Column<Value>*>(decoded);
  if (!accumulate) std::fill_n(c, rows * kCTileN, 0.0f);
  for (int block = 0; block < blocks; ++block, a += height, w += kCTileN) {
    for (int r = 0; r < rows; ++r) {
      for (int n = 0; n < kCTileN; ++n)
        c[r * kCTileN + n] = add_block(a[r], w[n], c[r * kCTileN + n]);
    }
  }
}

void pack_e2m1(const ActivationSource& source, int rows, int height, int64_t block_begin,
               int blocks, uint8_t* packed) {
  auto* out = reinterpret_cast<RowBlockValues<int8_t>*>(packed);
  for (int r = 0; r < height; ++r) {
    const bool exists = r < rows;
    const uint8_t* codes = source.row(exists ? r : 0) + block_begin * 8;
    for (int block = 0; block < blocks; ++block) {
      for (int k = 0; k < 16; ++k) {
        const uint8_t byte = codes[block * 8 + k / 2];
        const int8_t value = core::kE2M1Doubled[k % 2 == 0 ? byte & 0xF : byte >> 4];
        out[block * height + r].value[k] = exists ? value : int8_t{0};
      }
    }
    pack_activation_scales(source, exists ? r : -1, block_begin, blocks,
                           reinterpret_cast<uint8_t*>(&out[r].quarter_scale),
                           static_cast<int64_t>(sizeof(RowBlockValues<int8_t>)) * height);
  }
}

float load_value(DataType type, const uint8_t* row, int64_t k) {
  uint16_t half;
  float value;
  if (type == DataType::kF32) {
    std::memcpy(&value, row + k * 4, sizeof value);
    return value;
  }
  std::memcpy(&half, row + k * 2, sizeof half);
  return type == DataType::kF16 ? core::decode_f16(half) : core::decode_bf16(half);
}

void pack_f32(const ActivationSource& source, int rows, int height, int64_t block_begin, int blocks,
              uint8_t* packed) {
  auto* out = reinterpret_cast<RowBlockValues<float>*>(packed);
  for (int block = 0; block < blocks; ++block) {
    for (int r = 0; r < height; ++r, ++out) {
      const uint8_t* row = source.row(r < rows ? r : 0);
      for (int k = 0; k < 16; ++k)
        out->value[k] =
            r < rows ? load_value(source.type, row, (block_begin + block) * 16 + k) : 0.0f;
      out->quarter_scale = 0.0f;
    }
  }
}

void f32_to_f16(const float* in, uint16_t* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = core::encode_f16(in[i]);
}

constexpr Engine kE2m1Engine = {
    .mr = kMr,
    .tile_k_blocks = kTileKBlocks,
    .block_step = 1,
    .decoded_block_bytes = kDecodedBytes<int8_t>,
    .activation_bytes = sizeof(RowBlockValues<int8_t>),
    .pack_activation = pack_e2m1,
    .decode =
        [](const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
          decode_pair<int8_t>(p, q, blocks, core::kE2M1Doubled, decoded);
        },
    .multiply = multiply<int8_t>,
    .gemv = nullptr,
};

constexpr Engine kF32Engine = {
    .mr = kMr,
    .tile_k_blocks = kTileKBlocks,
    .block_step = 1,
    .decoded_block_bytes = kDecodedBytes<float>,
    .activation_bytes = sizeof(RowBlockValues<float>),
    .pack_activation = pack_f32,
    .decode =
        [](const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded) {
          decode_pair<float>(p, q, blocks, core::kE2M1Values, decoded);
        },
    .multiply = multiply<float>,
    .gemv = nullptr,
};

}  // namespace
}  // namespace dualgemm::cpu::scalar

namespace dualgemm::cpu {

const KernelTable& scalar_table() noexcept {
  static constexpr KernelTable kTable = {.isa = Isa::kScalar,
                                         .e2m1 = &scalar::kE2m1Engine,
                                         .f32 = &scalar::kF32Engine,
                                         .pack_panel = scalar::pack_panel,
                                         .activate = scalar::activate,
                                         .apply_factors = scalar::apply_factors,
                                         .f32_to_f16 = scalar::f32_to_f16};
  return kTable;
}

}  // namespace dualgemm::cpu
