// Bytes of a word looked up by others. PTX ISA 9.0, "Data Movement and Conversion Instructions:
// prmt".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// prmt.b32 d, a, b, selector;      PTX ISA 2.0, sm_20, "prmt": byte i of d is the byte of {b, a}
// that the lower three bits of nibble i name, or, where the nibble's bit 3 is set, that byte's sign
// in all bits. (__byte_perm() masks bit 3 first.)
DUALGEMM_DEVICE uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
  return d;
}

}  // namespace dualgemm::cuda::ptx
