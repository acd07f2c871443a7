// Stores to global memory wider than C++ has them. PTX ISA 9.0, "st".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// st.global.L1::no_allocate.v8.b32 [to], {...};      PTX ISA 8.8, sm_100, "st": 32 bytes at a
// multiple of 32 that the kernel does not read again.
DUALGEMM_DEVICE void st_global_32_bytes(void* to, const uint32_t* words) {
  asm volatile("st.global.L1::no_allocate.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(to),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(words[4]),
               "r"(words[5]), "r"(words[6]), "r"(words[7])
               : "memory");
}

}  // namespace dualgemm::cuda::ptx
