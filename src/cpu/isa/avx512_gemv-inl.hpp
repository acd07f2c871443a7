// Up to 16 activation rows against a panel pair, reading every weight once, packed or not.
// Included by avx512_gemv.cpp and, compiled with VBMI, by avx512vbmi_gemv.cpp, inside their inner
// namespaces.
//
// One row:
// Lanes start as half blocks: 64 bytes of a row are 8 blocks, vpdpbusd leaves 16 half-block sums.
// Sums fit int16 (|sum| <= 1152, a block 2304), so vpackssdw + vpmaddwd halve the data while they
// join the halves, and the transposition to "lane = column", which the block order of the additions
// demands, costs 20 shuffles for 16 columns x 8 blocks instead of the 64 that transposing the bytes
// first costs. For more rows the bytes are transposed, once for up to six of them.
//
// Activation of one row, per 8 blocks: 64 int8 of the even k, 64 of the odd k, 16 int16 -12*sum of
// each half block, 8 FP32 scale/4 * 2^-16 (a block sum is converted from the upper half of a
// dword).

constexpr int kChunkBlocks = 8;
constexpr int kChunkBytes = 192;
constexpr int kInitsAt = 128, kScalesAt = 160;

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
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(activation + kInitsAt)));
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
      acc = add_chunk(sums, dwords, reinterpret_cast<const float*>(activation + kScalesAt), acc);
      for (const uint8_t*& base : bases) base += 64;
      activation += kChunkBytes;
      dwords += 128;
    }
    for (; done < here; done += kChunkBlocks) {
      const int64_t blocks = here - done;
      const __mmask64 mask =
          blocks >= kChunkBlocks ? ~__mmask64{0} : (__mmask64{1} << (blocks * 8)) - 1;
      chunk_sums<false>(source, bases, mask, activation, sums);
      acc = add_chunk(sums, dwords, reinterpret_cast<const float*>(activation + kScalesAt), acc);
      for (const uint8_t*& base : bases) base += 64;
      activation += kChunkBytes;
      dwords += 128;
    }
  }
  _mm512_storeu_ps(c, acc);
}

// The same from a packed panel: bytes are transposed already. What lies 8 KiB ahead, in the next
// panel where this one ends, is asked for. M = 1, N = 4096, K = 7168, one core of a Zen 5, memory
// busy, ms, into L2: 4 KiB ahead 1.07, this 0.92 to 1.3, 16 KiB 1.04, a panel while another is
// computed (Ahead) 1.2 to 1.4; this into L1 1.04.
void gemv_packed_row(const uint8_t* activation, const PanelSource& source, float* c) {
  constexpr int kBytesAhead = 8192;
  const bool into_l1 = asks_into_l1();
  __m512 acc = _mm512_setzero_ps();
  for (int64_t block = 0; block < source.blocks; block += kChunkBlocks, activation += kChunkBytes) {
    const uint8_t* group = source.packed + block / kGroupBlocks * kPackedGroupBytes;
    ask_for_lines<18>(reinterpret_cast<const char*>(group) + kBytesAhead, into_l1);
    int16_t init[16];
    __builtin_memcpy(init, activation + kInitsAt, sizeof init);
    const float* scale_a = reinterpret_cast<const float*>(activation + kScalesAt);
    FourScales scales{};
#pragma GCC unroll 8
    for (int b = 0; b < kChunkBlocks; ++b) {
      if (block + b >= source.blocks) break;
      if (b == kGroupBlocks) group += kPackedGroupBytes;
      if (b % kGroupBlocks == 0) scales = group_scales(group);
      const BlockWeights w = block_weights(group, b % kGroupBlocks);
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

// 12 sums and as many dot products. Two panels at a time: one panel and eight rows have 60 loads
// a block, which take 29 cycles on Zen 5 where this takes 27.
constexpr int kRowsAtOnce = 6;

// A pair over all of k: a code becomes a weight in registers, for all kRows rows. height: of the
// activation's tile.
template <int kRows, bool kPacked>
void gemv_rows(const uint8_t* activation, int height, const PanelPair& pair, Ahead ahead,
               float* c) {
  __m512 acc_p[kRows], acc_q[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc_p[r] = acc_q[r] = _mm512_setzero_ps();
  const __m512 magic = _mm512_set1_ps(kMagic);
  for_pair_blocks<kPacked, (kRows < kRowsAtOnce)>(
      pair, ahead,
      [&](const uint8_t* p, const uint8_t* q, __m512 s_p, __m512 s_q)
          __attribute__((always_inline)) {
            const BlockWeights w_p = block_weights(p, 0), w_q = block_weights(q, 0);
            __m512i dot_p[kRows], dot_q[kRows];
#pragma GCC unroll 8
            for (int r = 0; r < kRows; ++r) dot_p[r] = dot_q[r] = initial_dot(activation, r);
#pragma GCC unroll 4
            for (int part = 0; part < 4; ++part) {
#pragma GCC unroll 8
              for (int r = 0; r < kRows; ++r) {
                const __m512i a = broadcast_dword(activation + r * kRowBlockBytes + part * 4);
                dot_p[r] = _mm512_dpbusd_epi32(dot_p[r], w_p.part[part], a);
                dot_q[r] = _mm512_dpbusd_epi32(dot_q[r], w_q.part[part], a);
              }
            }
            const __m512 magic_p = _mm512_mul_ps(s_p, magic), magic_q = _mm512_mul_ps(s_q, magic);
            add_scaled(activation, dot_p, dot_q, s_p, magic_p, s_q, magic_q, acc_p, acc_q);
            activation += int64_t{kRowBlockBytes} * height;
          });
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * kCTileN, acc_p[r]);
    _mm512_storeu_ps(c + r * kCTileN + kPanelN, acc_q[r]);
  }
}

void gemv_pair(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c) {
  if (rows == 1 && pair.p.packed != nullptr) {
    gemv_packed_row(activation, pair.p, c);
    gemv_packed_row(activation, pair.q, c + kPanelN);
    return;
  }
  if (rows == 1) {
    gemv_row(activation, pair.p, Ahead(next != nullptr ? &next->p : nullptr), c);
    gemv_row(activation, pair.q, Ahead(next != nullptr ? &next->q : nullptr), c + kPanelN);
    return;
  }
  gemv_in_runs<kRowsAtOnce>(pair, next, rows, [&]<int kRows, bool kPacked>(int first, Ahead ahead) {
    gemv_rows<kRows, kPacked>(activation + first * kRowBlockBytes, rows, pair, ahead,
                              c + first * kCTileN);
  });
}
