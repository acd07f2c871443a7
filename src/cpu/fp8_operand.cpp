#include "cpu/fp8_operand.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/e2m1.hpp"
#include "core/e4m3.hpp"
#include "core/half.hpp"

namespace dualgemm::cpu {
namespace {

void load_e2m1(const uint8_t* codes, const uint8_t* scales, int64_t scale_group_stride, int64_t k,
               float* values) noexcept {
  for (int64_t block = 0; block < k / kSfVec; ++block, codes += 8, values += kSfVec) {
    const float scale = core::decode_scale(
        scales[block / kGroupBlocks * scale_group_stride + block % kGroupBlocks]);
    for (int i = 0; i < kSfVec; ++i)
      values[i] = core::decode_e2m1(static_cast<uint8_t>(codes[i / 2] >> (i % 2 * 4))) * scale;
  }
}

void load_row(const ActivationSource& source, int64_t k, float* values) noexcept {
  switch (source.type) {
    case DataType::kE2M1:
      return load_e2m1(source.data, source.scales, source.scale_group_stride, k, values);
    case DataType::kF32:
      std::memcpy(values, source.data, static_cast<size_t>(k) * sizeof(float));
      return;
    case DataType::kF16:
    case DataType::kBF16:
      break;
  }
  for (int64_t i = 0; i < k; ++i) {
    uint16_t half;
    std::memcpy(&half, source.data + 2 * i, sizeof half);
    values[i] = source.type == DataType::kF16 ? core::decode_f16(half) : core::decode_bf16(half);
  }
}

// Codes go to every stride-th byte. Returns the scale.
float requantise(const float* values, int64_t k, uint8_t* codes, int64_t stride) noexcept {
  int32_t amax_bits = 0;  // magnitudes order like their bits, and any NaN lies above infinity
  for (int64_t i = 0; i < k; ++i)
    amax_bits = std::max(amax_bits, std::bit_cast<int32_t>(values[i]) & 0x7FFFFFFF);
  const float scale = std::bit_cast<float>(amax_bits) / core::kE4M3Max;
  const float divisor = scale == 0.0f ? 1.0f : scale;
  for (int64_t i = 0; i < k; ++i) codes[i * stride] = core::encode_e4m3(values[i] / divisor);
  return scale;
}

}  // namespace

Fp8Operand take_fp8_rows(Arena& arena, int64_t rows, int64_t k) noexcept {
  Fp8Operand operand;
  operand.codes = arena.take<uint8_t>(rows * k);
  operand.scales = arena.take<float>(rows);
  return operand;
}

Fp8Operand take_fp8_panels(Arena& arena, int64_t panels, int64_t k) noexcept {
  return take_fp8_rows(arena, panels * kPanelN, k);
}

void requantise_row(const ActivationSource& source, int64_t k, float* values, uint8_t* codes,
                    float* scale) noexcept {
  load_row(source, k, values);
  *scale = requantise(values, k, codes, 1);
}

void requantise_panel(const PanelSource& source, int64_t k, float* values, uint8_t* codes,
                      float* scales) noexcept {
  for (int c = 0; c < kPanelN; ++c) {
    if (c < source.cols) {
      load_e2m1(source.codes + c * source.row_bytes, source.scales + c * source.scale_row_stride,
                source.scale_group_stride, k, values);
    } else {
      std::fill_n(values, k, 0.0f);
    }
    scales[c] = requantise(values, k, codes + c, kPanelN);
  }
}

}  // namespace dualgemm::cpu
