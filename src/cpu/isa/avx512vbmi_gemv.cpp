// gemv for processors with VBMI (Ice Lake, Zen 4 and later).
#include <immintrin.h>

#include "cpu/isa/avx512.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/generic/rows-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"
#include "cpu/isa/avx512_gemv-inl.hpp"

}  // namespace

void gemv_vbmi(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c) {
  gemv_pair(activation, pair, next, rows, c);
}

}  // namespace dualgemm::cpu::avx512
