// AVX-512 parts shared by the engines beside this file; included inside their namespaces.

inline __m512i broadcast_dword(const uint8_t* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return _mm512_set1_epi32(value);
}

inline __m512i broadcast_bytes(const int8_t (&table)[16]) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr int8_t kOffsetDoubled[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

// bf16 (the upper half of FP32) of the E4M3 bytes 0x00 .. 0x0F: the subnormals and the first binade.
// From 0x10 on bf16 = (byte + 0x3C0) << 4.
constexpr int8_t kSmallScaleLow[16] = {0, 0, -0x80, -0x40, 0, 0x20, 0x40, 0x60,
                                       -0x80, -0x70, -0x60, -0x50, -0x40, -0x30, -0x20, -0x10};
constexpr int8_t kSmallScaleHigh[16] = {0,    0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C,
                                        0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C};

struct FourScales {
  __m512 block[4];
};

// 16 dwords (columns) of 4 E4M3 bytes (blocks) -> FP32. Integer arithmetic on bytes: exact for
// subnormals whatever FTZ/DAZ say, no microcode assist. 0x7F and 0xFF become NaN, the sign is
// ignored.
inline FourScales decode_scales(__m512i bytes) {
  const __m512i b = _mm512_and_si512(bytes, _mm512_set1_epi8(0x7F));
  const __mmask64 small = _mm512_cmplt_epu8_mask(b, _mm512_set1_epi8(16));
  const __mmask64 nan = _mm512_cmpeq_epi8_mask(b, _mm512_set1_epi8(0x7F));
  const __m512i low_nibble_up =
      _mm512_and_si512(_mm512_slli_epi16(b, 4), _mm512_set1_epi8(static_cast<char>(0xF0)));
  const __m512i high_nibble =
      _mm512_and_si512(_mm512_srli_epi16(b, 4), _mm512_set1_epi8(0x0F));
  const __m512i low =
      _mm512_mask_shuffle_epi8(low_nibble_up, small, broadcast_bytes(kSmallScaleLow), b);
  __m512i high = _mm512_add_epi8(high_nibble, _mm512_set1_epi8(0x3C));
  high = _mm512_mask_shuffle_epi8(high, small, broadcast_bytes(kSmallScaleHigh), b);
  high = _mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(0x7F));
  // Interleave: words of blocks 0 and 2, and of blocks 1 and 3. 0xE2 = bitwise (m ? a : b).
  const __m512i odd_bytes = _mm512_set1_epi16(static_cast<int16_t>(0xFF00));
  const __m512i words02 =
      _mm512_ternarylogic_epi32(_mm512_slli_epi32(high, 8), odd_bytes, low, 0xE2);
  const __m512i words13 =
      _mm512_ternarylogic_epi32(high, odd_bytes, _mm512_srli_epi32(low, 8), 0xE2);
  const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000u));
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(words02, 16)),
           _mm512_castsi512_ps(_mm512_slli_epi32(words13, 16)),
           _mm512_castsi512_ps(_mm512_and_si512(words02, upper)),
           _mm512_castsi512_ps(_mm512_and_si512(words13, upper))}};
}

// The weights of one block of one panel: 2 x 64 code bytes -> 4 x 64 unsigned bytes.
struct BlockWeights {
  __m512i part[4];
};
inline BlockWeights decode_block(__m512i first8, __m512i second8) {
  const __m512i nibble = _mm512_set1_epi8(0x0F);
  const __m512i table = broadcast_bytes(kOffsetDoubled);
  return {{_mm512_shuffle_epi8(table, _mm512_and_si512(first8, nibble)),
           _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(first8, 4), nibble)),
           _mm512_shuffle_epi8(table, _mm512_and_si512(second8, nibble)),
           _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(second8, 4), nibble))}};
}

// out[d] lane c = dword d of row c.
inline void transpose_16x16(const __m512i (&row)[16], __m512i (&out)[16]) {
  __m512i quad[16];  // quad[4*i + w] lane q: dword 4q + w of rows 4i .. 4i+3
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i t0 = _mm512_unpacklo_epi32(row[4 * i], row[4 * i + 1]);
    const __m512i t1 = _mm512_unpackhi_epi32(row[4 * i], row[4 * i + 1]);
    const __m512i t2 = _mm512_unpacklo_epi32(row[4 * i + 2], row[4 * i + 3]);
    const __m512i t3 = _mm512_unpackhi_epi32(row[4 * i + 2], row[4 * i + 3]);
    quad[4 * i] = _mm512_unpacklo_epi64(t0, t2);
    quad[4 * i + 1] = _mm512_unpackhi_epi64(t0, t2);
    quad[4 * i + 2] = _mm512_unpacklo_epi64(t1, t3);
    quad[4 * i + 3] = _mm512_unpackhi_epi64(t1, t3);
  }
#pragma GCC unroll 4
  for (int w = 0; w < 4; ++w) {
    const __m512i even01 = _mm512_shuffle_i32x4(quad[w], quad[4 + w], 0x88);
    const __m512i even23 = _mm512_shuffle_i32x4(quad[8 + w], quad[12 + w], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(quad[w], quad[4 + w], 0xDD);
    const __m512i odd23 = _mm512_shuffle_i32x4(quad[8 + w], quad[12 + w], 0xDD);
    out[w] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    out[4 + w] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    out[8 + w] = _mm512_shuffle_i32x4(even01, even23, 0xDD);
    out[12 + w] = _mm512_shuffle_i32x4(odd01, odd23, 0xDD);
  }
}

// 64 bytes (8 blocks, fewer at the end of the row) of each of the panel's 16 rows, transposed.
// prefetch: bytes ahead in the same row that are asked for on the way.
template <int kPrefetch>
inline void load_codes(const PanelSource& source, int64_t block, __m512i (&out)[16]) {
  const int64_t left = source.blocks - block;
  const __mmask64 mask = left >= 8 ? ~__mmask64{0} : (__mmask64{1} << (left * 8)) - 1;
  const uint8_t* at = source.codes + block * 8;
  const int last = source.cols - 1;
  __m512i row[16];
  if (last == kPanelN - 1 && left >= 8) {
#pragma GCC unroll 16
    for (int c = 0; c < kPanelN; ++c) {
      row[c] = _mm512_loadu_si512(at + c * source.row_bytes);
      if (kPrefetch) _mm_prefetch(reinterpret_cast<const char*>(at) + c * source.row_bytes + kPrefetch, _MM_HINT_T0);
    }
  } else {
    for (int c = 0; c < kPanelN; ++c)
      row[c] = _mm512_maskz_loadu_epi8(mask, at + (c < last ? c : last) * source.row_bytes);
  }
  transpose_16x16(row, out);
}


// 8 blocks of a panel for gemv, from rows or from packed groups (a second group beyond k is zero).
template <bool kPacked>
inline void load_chunk(const PanelSource& source, int64_t block, __m512i (&codes)[16],
                       __m512i (&scale_bytes)[2]) {
  const bool both = block + kGroupBlocks < source.blocks;
  if constexpr (kPacked) {
    const uint8_t* group = source.packed + block / kGroupBlocks * kPackedGroupBytes;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) codes[i] = _mm512_loadu_si512(group + 64 * i);
    scale_bytes[0] = _mm512_loadu_si512(group + kGroupBlocks * kBlockCodeBytes);
    group += both ? kPackedGroupBytes : 0;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) codes[8 + i] = _mm512_loadu_si512(group + 64 * i);
    scale_bytes[1] = _mm512_loadu_si512(group + kGroupBlocks * kBlockCodeBytes);
  } else {
    alignas(64) uint8_t bytes[2][64];
    gather_group_scales(source, block, bytes[0]);
    if (both) gather_group_scales(source, block + kGroupBlocks, bytes[1]);
    load_codes<1024>(source, block, codes);
    scale_bytes[0] = _mm512_load_si512(bytes[0]);
    scale_bytes[1] = both ? _mm512_load_si512(bytes[1]) : scale_bytes[0];
  }
}
