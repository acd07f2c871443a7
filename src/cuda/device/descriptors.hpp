// What tcgen05 is told about its operands: shared-memory and instruction descriptors. Plain
// functions of numbers, so that tests compare them bit for bit with other builders of the same.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

// PTX ISA 9.0, "tcgen05 shared memory descriptor", bits 61-63.
enum class SmemSwizzle : uint32_t { kNone = 0, k128B = 2 };

// Bytes that the two stride fields of a descriptor stand for, both multiples of 16.
struct SmemStrides {
  uint32_t leading_bytes;  // between 16-byte columns of core matrices; swizzled K-major: not used
  uint32_t group_bytes;    // between groups of 8 rows ("stride dimension byte offset")
};

// K-major rows of 128 bytes in 128-byte swizzle atoms of 8 rows, stacked densely. The hardware does
// not read the leading stride here; 16 is what CuTe writes.
inline constexpr SmemStrides kSwizzledRows128B{16, 1024};
// A scale tile of 512 bytes: 32 rows of 16 bytes, no swizzle, a single column of core matrices, so
// that the leading stride is not read; 16 is what CuTe writes.
inline constexpr SmemStrides kScaleTileRows{16, 128};

// A shared address >> 4 in bits 0-13, strides >> 4 in bits 16-29 and 32-45, the constant 1 in bits
// 46-48, base offset (49-51) 0: swizzle atoms start on multiples of 1024 bytes. PTX ISA 9.0,
// "tcgen05 shared memory descriptor".
DUALGEMM_HOST_DEVICE constexpr uint64_t smem_descriptor(uint32_t shared_address,
                                                        SmemStrides strides, SmemSwizzle swizzle) {
  return static_cast<uint64_t>((shared_address & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(strides.leading_bytes >> 4) << 16 |
         static_cast<uint64_t>(strides.group_bytes >> 4) << 32 | uint64_t{1} << 46 |
         static_cast<uint64_t>(swizzle) << 61;
}

// The same operand `bytes` further on. Inside a swizzle atom the hardware recovers the row's
// phase from the absolute address, so stepping along K is an addition.
DUALGEMM_HOST_DEVICE constexpr uint64_t advance_descriptor(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

// kind::mxf4nvf4 with E2M1 operands, UE4M3 scales, K = 64, both operands K-major and the scale ids
// 0 that scale_vec::4X demands. PTX ISA 9.0, "tcgen05 instruction descriptor", block-scaled kinds.
DUALGEMM_HOST_DEVICE constexpr uint32_t nvfp4_instruction_descriptor(uint32_t m, uint32_t n) {
  constexpr uint32_t kE2M1 = 1;
  return kE2M1 << 7 | kE2M1 << 10 | (n >> 3) << 17 | (m >> 7) << 27;
}

// kind::f16 with fp16 or bf16 operands, both K-major, an FP32 accumulator, K = 16. PTX ISA 9.0,
// "tcgen05 instruction descriptor".
DUALGEMM_HOST_DEVICE constexpr uint32_t half_instruction_descriptor(uint32_t m, uint32_t n,
                                                                    bool bf16) {
  constexpr uint32_t kF32 = 1;
  const uint32_t type = bf16 ? 1 : 0;
  return kF32 << 4 | type << 7 | type << 10 | (n >> 3) << 17 | (m >> 4) << 24;
}

}  // namespace dualgemm::cuda
