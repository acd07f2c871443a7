// What the AVX-512 files share with each other across translation units.
#pragma once

#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {

extern const Engine kF32Engine;  // avx512_f32.cpp

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
