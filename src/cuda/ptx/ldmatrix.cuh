// From rows of 16 bytes in shared memory to registers of a warp. PTX ISA 9.0, "Warp-level matrix
// load instruction: ldmatrix".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// ldmatrix.sync.aligned.m8n8.x{2,4}.shared.b16 {words}, [row];      PTX ISA 6.5, sm_75, "ldmatrix"
//
// Matrix j is the 8 rows of 16 bytes at the addresses (multiples of 16) that lanes 8j .. 8j+7 give;
// other lanes' addresses do not count, but must be legal. words[j] of lane 4r + q: bytes 4q .. 4q+3
// of row r.
DUALGEMM_DEVICE void ldmatrix(uint32_t row, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row)
               : "memory");
}
DUALGEMM_DEVICE void ldmatrix(uint32_t row, uint32_t (&words)[2]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(words[0]), "=r"(words[1])
               : "r"(row)
               : "memory");
}

}  // namespace dualgemm::cuda::ptx
