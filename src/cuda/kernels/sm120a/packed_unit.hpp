// Prepared weights: Gate and Up together in the order in which a stage holds them, whatever the
// tile. docs/formats.md, "Prepared weights", draws them.
//
// Each batch has (chunks of 128 along k, units of 8 columns of D). A CTA's part of a chunk is
// contiguous and begins at a multiple of 128 bytes. What lies at or after n or k is zero; units are
// as many as whole tiles have.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm120a/config.hpp"

namespace dualgemm::cuda::sm120a {

// A chunk of a unit: 8 rows of Gate, then the same of Up.
struct PackedUnit {
  uint8_t codes[kMmaRows][kRowBytes];
  uint8_t scales[kMmaRows][kScaleBytes];
};
inline constexpr int kUnitBytes = sizeof(PackedUnit);
static_assert(kUnitBytes == 1152 && kUnitBytes % 128 == 0, "whole lines of a cache");

// A problem's prepared weights, as the kernel addresses them.
struct PackedWeights {
  const uint8_t* units = nullptr;  // null: weights are not prepared; at a multiple of 16 bytes
  int64_t chunk_bytes = 0;         // from a chunk to the next
  int64_t batch_bytes = 0;
};

}  // namespace dualgemm::cuda::sm120a
