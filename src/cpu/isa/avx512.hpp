// What the AVX-512 files share with each other across translation units.
#pragma once

#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {

extern const Engine kF32Engine;  // avx512_f32.cpp

// Whether lines that are asked for into L2 alone come too late here: AMD's family 1Ah (Zen 5) drops
// many such requests when it is busy with others. NVFP4, M = 4 and 8, N = 4096, K = 7168, one core,
// packed weights cold, ms, 2026-11-29: into L2 1.1 to 2.1 and 2.0 to 3.1, by where operands happen
// to lie; into L1 1.08 and 1.9. Zen 4 reads rows at 22 GB/s instead of 35 when asked into L1.
bool asks_into_l1() noexcept;

// Engine::gemv for NVFP4 activations: avx512_gemv.cpp, and the same compiled with VBMI, whose byte
// permutes decode nibbles and scales in fewer steps (avx512vbmi_gemv.cpp).
void gemv(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
          float* c);
void gemv_vbmi(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c);

// The activation layout of gemv for one row; for more rows it is the tile's.
void pack_gemv_row(const ActivationSource& source, int64_t block_begin, int blocks,
                   uint8_t* packed);

}  // namespace dualgemm::cpu::avx512
