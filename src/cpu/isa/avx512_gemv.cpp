// gemv for processors without VBMI, and the activation layout that both copies read.
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

void gemv(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
          float* c) {
  gemv_pair(activation, pair, next, rows, c);
}

void pack_gemv_row(const ActivationSource& source, int64_t block_begin, int blocks,
                   uint8_t* packed) {
  const __m512i nibble = _mm512_set1_epi8(0x0F), table = broadcast_bytes(kDoubled);
  const __m512i ones = _mm512_set1_epi8(1);
  for (int block = 0; block < blocks; block += kChunkBlocks, packed += kChunkBytes) {
    const int here = blocks - block < kChunkBlocks ? blocks - block : kChunkBlocks;
    const __mmask64 mask = here == kChunkBlocks ? ~__mmask64{0} : (__mmask64{1} << (here * 8)) - 1;
    const __m512i x = _mm512_maskz_loadu_epi8(mask, source.data + (block_begin + block) * 8);
    const __m512i even = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibble));
    const __m512i odd =
        _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble));
    __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, even);
    sum = _mm512_dpbusd_epi32(sum, ones, odd);
    const __m512i init = _mm512_mullo_epi32(sum, _mm512_set1_epi32(-kWeightOffset));
    _mm512_storeu_si512(packed, even);
    _mm512_storeu_si512(packed + 64, odd);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed + kInitsAt), _mm512_cvtepi32_epi16(init));
    alignas(32) float scales[kChunkBlocks] = {};
    pack_activation_scales(source, 0, block_begin + block, here, reinterpret_cast<uint8_t*>(scales),
                           sizeof(float));
    _mm256_storeu_ps(reinterpret_cast<float*>(packed + kScalesAt),
                     _mm256_mul_ps(_mm256_load_ps(scales), _mm256_set1_ps(0x1p-16f)));
  }
}

}  // namespace dualgemm::cpu::avx512
