// Up to four activation rows against a panel over all of k, without a decoded k-tile: a group of 4
// blocks is transposed and decoded in registers. Included by avx2.cpp.
//
// Zen 4, 2 cores, N = 4096, K = 7168, cold, medians of 30 on a busy machine: M = 1 19 to 22 GB/s
// from rows, 29 to 31 prepared; M = 4 13 and 16.

// Asks for the next panel in the order of its bytes while this one is computed, into L2: the one
// sequential stream in the loop, see class Ahead in avx512-inl.hpp.
class Ahead {
 public:
  explicit Ahead(const PanelSource* panel) {
    if (panel == nullptr || panel->packed != nullptr) return;
    codes_ = reinterpret_cast<const char*>(panel->codes);
    scales_ = reinterpret_cast<const char*>(panel->scales);
  }
  void step() {
    if (codes_ == nullptr) return;
#pragma GCC unroll 8
    for (int line = 0; line < 8; ++line) _mm_prefetch(codes_ + 64 * line, _MM_HINT_T1);
    _mm_prefetch(scales_, _MM_HINT_T1);
    codes_ += 8 * 64;
    scales_ += 64;
  }

 private:
  const char* codes_ = nullptr;
  const char* scales_ = nullptr;
};

// 8 columns of one block: acc[r] += dot * scale * scale_a[r].
template <int kRows>
inline void gemv_block(const uint8_t* activation, __m256i first8, __m256i second8, __m256 scale,
                       __m256 (&acc)[kRows]) {
  const __m256i nibble = _mm256_set1_epi8(0x0F), table = broadcast_table(kDoubled);
  const auto low = [&](__m256i x) {
    return _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble));
  };
  const __m256i w[4] = {low(first8), low(_mm256_srli_epi16(first8, 4)), low(second8),
                        low(_mm256_srli_epi16(second8, 4))};
  // The offset of the activation, 12 * sum(w), in the int16 lanes that the products have.
  const __m256i bytes = _mm256_add_epi8(_mm256_add_epi8(w[0], w[1]), _mm256_add_epi8(w[2], w[3]));
  const __m256i offset = _mm256_maddubs_epi16(_mm256_set1_epi8(kActivationOffset), bytes);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const uint8_t* a = activation + r * 16;
    const __m256i s01 = _mm256_add_epi16(_mm256_maddubs_epi16(broadcast_dword(a), w[0]),
                                         _mm256_maddubs_epi16(broadcast_dword(a + 4), w[1]));
    const __m256i s23 = _mm256_add_epi16(_mm256_maddubs_epi16(broadcast_dword(a + 8), w[2]),
                                         _mm256_maddubs_epi16(broadcast_dword(a + 12), w[3]));
    const __m256i sum = _mm256_sub_epi16(_mm256_add_epi16(s01, s23), offset);
    const __m256 dot = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
    const __m256 scale_a = _mm256_castsi256_ps(broadcast_dword(activation + kRows * 16 + r * 4));
    acc[r] = _mm256_fmadd_ps(_mm256_mul_ps(dot, scale), scale_a, acc[r]);
  }
}

template <int kRows>
inline void gemv_panel(const uint8_t* activation, const PanelSource& source, Ahead ahead,
                       float* c) {
  __m256 acc[2][kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) acc[0][r] = acc[1][r] = _mm256_setzero_ps();
  for (int64_t block = 0; block < source.blocks; block += kGroupBlocks) {
    const int64_t left = source.blocks - block;
    const int here = left < kGroupBlocks ? static_cast<int>(left) : kGroupBlocks;
    const uint8_t* const group = source.packed == nullptr
                                     ? nullptr
                                     : source.packed + block / kGroupBlocks * kPackedGroupBytes;
    alignas(32) uint8_t scale_bytes[64];
    const uint8_t* scales = scale_bytes;
    if (source.packed != nullptr) {
      scales = group + kGroupBlocks * kBlockCodeBytes;
#pragma GCC unroll 9
      for (int line = 0; line < 9; ++line)
        _mm_prefetch(reinterpret_cast<const char*>(group) + 4096 + 64 * line, _MM_HINT_T1);
    } else {
      gather_group_scales(source, block, scale_bytes);
      ahead.step();
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m256i columns[8];
      if (source.packed != nullptr) {
#pragma GCC unroll 8
        for (int d = 0; d < 8; ++d)
          columns[d] =
              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group + 64 * d + 32 * half));
      } else {
        load_columns(source, block, half, columns);
      }
#pragma GCC unroll 4
      for (int b = 0; b < kGroupBlocks; ++b) {
        if (b == here) break;
        gemv_block<kRows>(activation + b * (kRows * 20), columns[2 * b], columns[2 * b + 1],
                          decode_scales(scales + 32 * half, b), acc[half]);
      }
    }
    activation += kGroupBlocks * kRows * 20;
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(c + r * kCTileN, acc[0][r]);
    _mm256_storeu_ps(c + r * kCTileN + 8, acc[1][r]);
  }
}

template <int kRows>
void gemv_rows(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, float* c) {
  gemv_panel<kRows>(activation, pair.p, Ahead(next != nullptr ? &next->p : nullptr), c);
  gemv_panel<kRows>(activation, pair.q, Ahead(next != nullptr ? &next->q : nullptr), c + kPanelN);
}

void gemv(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
          float* c) {
  switch (rows) {
    case 1:
      return gemv_rows<1>(activation, pair, next, c);
    case 2:
      return gemv_rows<2>(activation, pair, next, c);
    case 3:
      return gemv_rows<3>(activation, pair, next, c);
    default:
      return gemv_rows<4>(activation, pair, next, c);
  }
}
