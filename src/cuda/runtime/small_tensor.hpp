// One bit of a tensor map that drivers get wrong.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstring>

namespace dualgemm::cuda {

// Bits of an element in memory; 0: a type that is not known here.
constexpr uint64_t element_bits_of(CUtensorMapDataType type) {
  constexpr uint8_t kBits[] = {8,  16, 32, 32, 64, 64, 16, 32,
                               64, 16, 32, 32, 32, 4,  4,  6};  // in the order of CUDA 13's cuda.h
  const auto index = static_cast<uint32_t>(type);
  return index < sizeof kBits ? kBits[index] : 0;
}

// Whether a tensor of known type ends less than 128 KiB behind its first byte. `stride_bytes`: of
// dims 1 .. rank - 1.
constexpr bool is_small_tensor(CUtensorMapDataType type, uint32_t rank, const cuuint64_t* dims,
                               const cuuint64_t* stride_bytes) {
  constexpr uint64_t kLarge = 128 << 10;
  const uint64_t bits = element_bits_of(type);
  uint64_t bytes = dims[0] * bits / 8;  // dims[0] <= 2^32
  for (uint32_t i = 1; i < rank; ++i) {
    const uint64_t steps = dims[i] - 1, stride = stride_bytes[i - 1];
    if (steps != 0 && stride > kLarge / steps) return false;
    bytes += steps * stride;
  }
  return bits != 0 && bytes < kLarge;
}

// Clears bit 85 of the map of a small tensor. It says that the tensor is none, and drivers up to
// CUDA 13.1 (and later libraries over the kernel module of such a one) set it for small tensors
// with gaps as well: on Blackwell copies then fault now and then (NVIDIA's release notes of driver
// 595.71.05, "Known Issues", which give this remedy; CUTLASS has it since 4.3.4). A driver without
// the fault leaves the bit clear, and Hopper does not read it, so no version is asked for.
inline void correct_small_tensor(CUtensorMap* map, CUtensorMapDataType type, uint32_t rank,
                                 const cuuint64_t* dims, const cuuint64_t* stride_bytes) {
  if (!is_small_tensor(type, rank, dims, stride_bytes)) return;
  uint64_t word;  // the second: bits 64 .. 127
  std::memcpy(&word, reinterpret_cast<unsigned char*>(map) + sizeof word, sizeof word);
  word &= ~(uint64_t{1} << 21);
  std::memcpy(reinterpret_cast<unsigned char*>(map) + sizeof word, &word, sizeof word);
}

}  // namespace dualgemm::cuda
