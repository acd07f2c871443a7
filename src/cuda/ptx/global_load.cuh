// Loads that are known to be from global memory. PTX ISA 9.0, "Data Movement and Conversion
// Instructions: ld". Weak: they see what was ordered before them, in the cache of the SM too.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// ld.global.u8 d, [from];      PTX ISA 1.0, "ld"
DUALGEMM_DEVICE uint32_t ld_global(const uint8_t* from) {
  uint32_t d;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(d) : "l"(from) : "memory");
  return d;
}

// ld.global.u32 d, [from];      PTX ISA 1.0, "ld": at a multiple of 4
DUALGEMM_DEVICE uint32_t ld_global(const uint32_t* from) {
  uint32_t d;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(d) : "l"(from) : "memory");
  return d;
}

// ld.global.v2.u32 {x, y}, [from];      PTX ISA 1.0, "ld": at a multiple of 8
DUALGEMM_DEVICE uint2 ld_global(const uint2* from) {
  uint2 d;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(d.x), "=r"(d.y) : "l"(from) : "memory");
  return d;
}

// ld.global.v4.u32 {x, y, z, w}, [from];      PTX ISA 1.0, "ld": at a multiple of 16
DUALGEMM_DEVICE uint4 ld_global(const uint4* from) {
  uint4 d;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
               : "l"(from)
               : "memory");
  return d;
}

}  // namespace dualgemm::cuda::ptx
