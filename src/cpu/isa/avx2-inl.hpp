// AVX2 parts shared by the engines beside this file; included inside their namespaces.

// FP32 scales of block `block` (0 .. 3) of 8 columns: dword c holds 4 E4M3 bytes. Subnormals go
// through an integer conversion, so that FTZ/DAZ do not matter; 0x7F and 0xFF become NaN, the sign
// is ignored.
inline __m256 decode_scales(const uint8_t* dwords, int block) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(dwords));
  const __m256i b =
      _mm256_and_si256(_mm256_srl_epi32(x, _mm_cvtsi32_si128(8 * block)), _mm256_set1_epi32(0x7F));
  const __m256 normal =
      _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(b, 20), _mm256_set1_epi32(120 << 23)));
  const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(b), _mm256_set1_ps(0x1p-9f));
  const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), b);
  const __m256i is_nan = _mm256_cmpeq_epi32(b, _mm256_set1_epi32(0x7F));
  return _mm256_or_ps(_mm256_blendv_ps(normal, subnormal, _mm256_castsi256_ps(is_subnormal)),
                      _mm256_castsi256_ps(is_nan));
}
