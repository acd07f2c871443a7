// From registers of a warp to rows of 16 bytes in shared memory. PTX ISA 9.0, "Warp-level matrix
// store instruction: stmatrix". sm_90 and later.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// stmatrix.sync.aligned.m8n8.x{1,2,4}.trans.shared.b16 [row], {words};      PTX ISA 7.8, sm_90,
// "stmatrix"
//
// Lane 4r + q holds elements 2q and 2q + 1 of row r of each of kCount 8 x 8 matrices of 16 bits,
// the first in the low half, as mma and wgmma leave them. Column i of matrix j becomes the 16 bytes
// at the address that lane 8j + i gives (a multiple of 16); other lanes' addresses do not count.
template <int kCount>
DUALGEMM_DEVICE void stmatrix_transposed(uint32_t row, const uint32_t (&words)[kCount]) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4);
  if constexpr (kCount == 1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row),
                 "r"(words[0])
                 : "memory");
  } else if constexpr (kCount == 2) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row),
                 "r"(words[0]), "r"(words[1])
                 : "memory");
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
        : "memory");
  }
}

}  // namespace dualgemm::cuda::ptx
