// Up to four activation rows against a panel pair, reading every weight once, packed or not.
// Included by avx512_gemv.cpp and, compiled with VBMI, by avx512vbmi_gemv.cpp, inside their inner
// namespaces.
//
// One row:
// Lanes start as half blocks: 64 bytes of a row are 8 blocks, vpdpbusd leaves 16 half-block sums.
// Sums fit int16 (|sum| <= 1152, a block 2304), so vpackssdw + vpmaddwd halve the data while they
// join the halves, and the transposition to "lane = column", which the block order of the additions
// demands, costs 20 shuffles for 16 columns x 8 blocks instead of the 64 that transposing the bytes
// first costs. For 2 to 4 rows the bytes are transposed, once for all rows.
//
// Activation, per 8 blocks: 64 int8 of the even k, 64 of the odd k, 16 int16 -12*sum of each half
// block, 8 FP32 scale/4 * 2^-16 (a block sum is converted from the upper half of a dword).

constexpr int kChunkBlocks = 8;
constexpr int kChunkBytes = 192;
constexpr int kInitAt = 128, kScaleAt = 160;

// Half-block sums of one row and one chunk.
inline __m512i half_sums(__m512i codes, __m512i even, __m512i odd, __m512i init) {
  const __m512i sum = _mm512_dpbusd_epi32(init, low_nibbles(codes), even);
  return _mm512_dpbusd_epi32(sum, high_nibbles(codes), odd);
}

// 16 rows of half-block sums -> dword lane c of out[i] holds block 2i (low) and 2i + 1 (high word)
// of column c.
template <class Row>
inline void block_sums(const Row& row, __m512i (&out)[4]) {
  const __m512i ones = _mm512_set1_epi16(1);
  __m512i quad[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i s0 = _mm512_madd_epi16(_mm512_packs_epi32(row(4 * j), row(4 * j + 1)), ones);
    const __m512i s1 = _mm512_madd_epi16(_mm512_packs_epi32(row(4 * j + 2), row(4 * j + 3)), ones);
    quad[j] = _mm512_packs_epi32(s0, s1);
  }
  const __m512i even01 = _mm512_shuffle_i32x4(quad[0], quad[1], 0x88);
  const __m512i even23 = _mm512_shuffle_i32x4(quad[2], quad[3], 0x88);
  const __m512i odd01 = _mm512_shuffle_i32x4(quad[0], quad[1], 0xDD);
  const __m512i odd23 = _mm512_shuffle_i32x4(quad[2], quad[3], 0xDD);
  out[0] = _mm512_shuffle_i32x4(even01, even23, 0x88);
  out[1] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
  out[2] = _mm512_shuffle_i32x4(even01, even23, 0xDD);
  out[3] = _mm512_shuffle_i32x4(odd01, odd23, 0xDD);
}

inline __m512 add_block(__m512i upper_half, __m512 scale, const float* scale_a, __m512 acc) {
  const __m512 t = _mm512_mul_ps(_mm512_cvtepi32_ps(upper_half), scale);
  return _mm512_fmadd_ps(t, _mm512_set1_ps(*scale_a), acc);
}

// One chunk of one panel. `bases` are rows 0, 4, 8, 12: four pointers and one stride reach 16 rows
// without spilling (16 pointers made GCC keep them in vector registers: 2.0 x slower).
template <bool kWhole>
inline void chunk_sums(const PanelSource& source, const uint8_t* const (&bases)[4], __mmask64 mask,
                       const uint8_t* activation, __m512i (&sums)[4]) {
  const __m512i even = _mm512_loadu_si512(activation), odd = _mm512_loadu_si512(activation + 64);
  const __m512i init = _mm512_cvtepi16_epi32(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(activation + kInitAt)));
  const int64_t stride = source.row_bytes;
  const int last = source.cols - 1;
  block_sums(
      [&](int r) __attribute__((always_inline)) {
        if constexpr (kWhole) {
          const uint8_t* const at = bases[r / 4] + (r % 4) * stride;
          ask_for_row(at);
          return half_sums(_mm512_loadu_si512(at), even, odd, init);
        } else {
          const uint8_t* at = bases[0] + (r < last ? r : last) * stride;
          return half_sums(_mm512_maskz_loadu_epi8(mask, at), even, odd, init);
        }
      },
      sums);
}

inline __m512 add_chunk(const __m512i (&sums)[4], const uint8_t* scale_dwords, const float* scale_a,
                        __m512 acc) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000u));
#pragma GCC unroll 2
  for (int group = 0; group < 2; ++group) {
    const FourScales scales = decode_scales(_mm512_load_si512(scale_dwords + 64 * group));
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512i pair = sums[2 * group + i];
      acc = add_block(_mm512_slli_epi32(pair, 16), scales.block[2 * i], scale_a++, acc);
      acc = add_block(_mm512_and_si512(pair, upper), scales.block[2 * i + 1], scale_a++, acc);
    }
  }
  return acc;
}

// Scales beyond k are 0 and so are the sums there: a chunk can always be added whole.
void gemv_row(const uint8_t* activation, const PanelSource& source, Ahead ahead, float* c) {
  __m512 acc = _mm512_setzero_ps();
  alignas(64) uint8_t scale_dwords[kScaleGroups * 64];
  const int64_t stride4 = 4 * source.row_bytes;
  const uint8_t* bases[4] = {source.codes, source.codes + stride4, source.codes + 2 * stride4,
                             source.codes + 3 * stride4};
  for (int64_t block = 0; block < source.blocks; block += kScaleGroups * kGroupBlocks) {
    const int64_t left = source.blocks - block;
    const int64_t here = left < kScaleGroups * kGroupBlocks ? left : kScaleGroups * kGroupBlocks;
    transpose_scales(source, block, scale_dwords);
    const uint8_t* dwords = scale_dwords;
    __m512i sums[4];
    int64_t done = 0;
    const int64_t whole = source.cols == kPanelN ? here - here % kChunkBlocks : 0;
    for (; done < whole; done += kChunkBlocks) {
      chunk_sums<true>(source, bases, 0, activation, sums);
      ahead.step();
      acc = add_chunk(sums, dwords, reinterpret_cast<const float*>(activation + kScaleAt), acc);
      for (const uint8_t*& base : bases) base += 64;
      activation += kChunkBytes;
      dwords += 128;
    }
    for (; done < here; done += kChunkBlocks) {
      const int64_t blocks = here - done;
      const __mmask64 mask =
          blocks >= kChunkBlocks ? ~__mmask64{0} : (__mmask64{1} << (blocks * 8)) - 1;
      chunk_sums<false>(source, bases, mask, activation, sums);
      acc = add_chunk(sums, dwords, reinterpret_cast<const float*>(activation + kScaleAt), acc);
      for (const uint8_t*& base : bases) base += 64;
      activation += kChunkBytes;
      dwords += 128;
    }
  }
  _mm512_storeu_ps(c, acc);
}

// The same from a packed panel: bytes are transposed already.
void gemv_packed_row(const uint8_t* activation, const PanelSource& source, Ahead ahead, float* c) {
  __m512 acc = _mm512_setzero_ps();
  for (int64_t block = 0; block < source.blocks; block += kChunkBlocks, activation += kChunkBytes) {
    __m512i codes[16], scale_bytes[2];
    load_chunk<true>(source, block, codes, scale_bytes);
    ahead.step();
    int16_t init[16];
    __builtin_memcpy(init, activation + kInitAt, sizeof init);
    const float* scale_a = reinterpret_cast<const float*>(activation + kScaleAt);
    FourScales scales{};
#pragma GCC unroll 8
    for (int b = 0; b < kChunkBlocks; ++b) {
      if (block + b >= source.blocks) break;
      if (b % kGroupBlocks == 0) scales = decode_scales(scale_bytes[b / kGroupBlocks]);
      const BlockWeights w = decode_block(codes[2 * b], codes[2 * b + 1]);
      __m512i sum = _mm512_set1_epi32(init[2 * b] + init[2 * b + 1]);
#pragma GCC unroll 4
      for (int part = 0; part < 4; ++part)
        sum = _mm512_dpbusd_epi32(
            sum, w.part[part], broadcast_dword(activation + part % 2 * 64 + b * 8 + part / 2 * 4));
      acc = add_block(_mm512_slli_epi32(sum, 16), scales.block[b % kGroupBlocks], scale_a + b, acc);
    }
  }
  _mm512_storeu_ps(c, acc);
}

void gemv_one_row(const uint8_t* activation, const PanelSource& source, Ahead ahead, float* c) {
  source.packed != nullptr ? gemv_packed_row(activation, source, ahead, c)
                           : gemv_row(activation, source, ahead, c);
}

// 2 to 4 rows, one panel over all of k, 8 blocks at a time: transpose and decode in registers.
template <int kRows, bool kPacked>
inline void gemv_panel(const uint8_t* activation, const PanelSource& source, Ahead ahead,
                       float* c) {
  __m512 acc[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) acc[r] = _mm512_setzero_ps();
  const __m512 magic = _mm512_set1_ps(kMagic);
  for (int64_t block = 0; block < source.blocks; block += 8) {
    __m512i scale_bytes[2];
    __m512i codes[16];
    load_chunk<kPacked>(source, block, codes, scale_bytes);
    ahead.step();
    const int here = source.blocks - block < 8 ? static_cast<int>(source.blocks - block) : 8;
    FourScales scales{};
#pragma GCC unroll 8
    for (int b = 0; b < 8; ++b) {
      if (b >= here) break;
      if (b % 4 == 0) scales = decode_scales(scale_bytes[b / 4]);
      const BlockWeights w = decode_block(codes[2 * b], codes[2 * b + 1]);
      const __m512 s = scales.block[b % 4], magic_s = _mm512_mul_ps(s, magic);
      const int32_t* init = reinterpret_cast<const int32_t*>(activation + kRows * 16);
      const float* scale_a = reinterpret_cast<const float*>(activation + kRows * 20);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        __m512i dot = _mm512_set1_epi32(init[r]);
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part)
          dot = _mm512_dpbusd_epi32(dot, w.part[part],
                                    broadcast_dword(activation + r * 16 + part * 4));
        const __m512 t = _mm512_fmsub_ps(_mm512_castsi512_ps(dot), s, magic_s);
        acc[r] = _mm512_fmadd_ps(t, _mm512_set1_ps(scale_a[r]), acc[r]);
      }
      activation += kRows * 24;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(c + r * kCTileN, acc[r]);
}

void gemv_pair(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c) {
  const Ahead ahead_p(next != nullptr ? &next->p : nullptr);
  const Ahead ahead_q(next != nullptr ? &next->q : nullptr);
  if (rows == 1) {
    gemv_one_row(activation, pair.p, ahead_p, c);
    gemv_one_row(activation, pair.q, ahead_q, c + kPanelN);
    return;
  }
  const auto both = [&]<int kRows>() {
    if (pair.p.packed != nullptr) {
      gemv_panel<kRows, true>(activation, pair.p, ahead_p, c);
      gemv_panel<kRows, true>(activation, pair.q, ahead_q, c + kPanelN);
    } else {
      gemv_panel<kRows, false>(activation, pair.p, ahead_p, c);
      gemv_panel<kRows, false>(activation, pair.q, ahead_q, c + kPanelN);
    }
  };
  switch (rows) {
    case 2:
      return both.operator()<2>();
    case 3:
      return both.operator()<3>();
    default:
      return both.operator()<4>();
  }
}
