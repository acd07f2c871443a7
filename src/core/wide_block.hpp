// Sixteen neighbouring values of 16 or 32 bits in memory, and as FP32.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/half.hpp"
#include "dualgemm/constants.h"
#include "dualgemm/types.hpp"

namespace dualgemm::core {

// They may lie anywhere in a mapped file: no alignment is assumed.
template <DataType kType>
void load_block(const uint8_t* row, int64_t block, float* out) noexcept {
  if constexpr (kType == DataType::kF32) {
    std::memcpy(out, row + block * kSfVec * 4, kSfVec * 4);
  } else {
    uint16_t raw[kSfVec];
    std::memcpy(raw, row + block * kSfVec * 2, sizeof(raw));
    for (int i = 0; i < kSfVec; ++i)
      out[i] = kType == DataType::kF16 ? decode_f16(raw[i]) : decode_bf16(raw[i]);
  }
}

template <DataType kType>
void store_block(uint8_t* row, int64_t block, const float* values) noexcept {
  if constexpr (kType == DataType::kF32) {
    std::memcpy(row + block * kSfVec * 4, values, kSfVec * 4);
  } else {
    uint16_t raw[kSfVec];
    for (int i = 0; i < kSfVec; ++i)
      raw[i] = kType == DataType::kF16 ? encode_f16(values[i]) : encode_bf16(values[i]);
    std::memcpy(row + block * kSfVec * 2, raw, sizeof(raw));
  }
}

// NaNs as dequantize() writes them.
template <DataType kType>
void store_canonical(uint8_t* row, int64_t block, const float* values) noexcept {
  float canonical[kSfVec];
  for (int i = 0; i < kSfVec; ++i)
    canonical[i] = values[i] == values[i] ? values[i] : std::bit_cast<float>(0x7FC00000u);
  store_block<kType>(row, block, canonical);
}

// call(integral constant of the type)
template <class Call>
auto with_wide_type(DataType type, const Call& call) {
  switch (type) {
    case DataType::kF16:
      return call(std::integral_constant<DataType, DataType::kF16>());
    case DataType::kBF16:
      return call(std::integral_constant<DataType, DataType::kBF16>());
    default:
      return call(std::integral_constant<DataType, DataType::kF32>());
  }
}

}  // namespace dualgemm::core
