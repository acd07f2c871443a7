// gemv for processors with VBMI (Ice Lake, Zen 4 and later).
#include <immintrin.h>

#include "cpu/isa/avx512.hpp"
#include "cpu/kernel_table.hpp"

#define DUALGEMM_GEMV gemv_vbmi

namespace dualgemm::cpu::avx512 {
namespace {

#include "cpu/generic/panel-inl.hpp"
#include "cpu/isa/avx512-inl.hpp"
#include "cpu/isa/avx512_gemv-inl.hpp"  // closes the inner namespace

}  // namespace dualgemm::cpu::avx512
