// AVX-512 parts shared by the engines beside this file; included inside their namespaces.

constexpr int32_t kMagicBits = 0x4B400000;
constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
constexpr int kWeightOffset = 12;

// Activation, per block and row: 16 int8 in the nibbles' order, what the dot product begins with
// (kMagicBits - 12*sum), FP32 scale/4.
constexpr int kRowBlockBytes = 24, kInitAt = 16, kScaleAt = 20;

constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr int8_t kOffsetDoubled[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

inline __m512i broadcast_dword(const uint8_t* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return _mm512_set1_epi32(value);
}

inline __m512i initial_dot(const uint8_t* activation, int row) {
  return broadcast_dword(activation + row * kRowBlockBytes + kInitAt);
}
inline __m512 scale_of(const uint8_t* activation, int row) {
  return _mm512_castsi512_ps(broadcast_dword(activation + row * kRowBlockBytes + kScaleAt));
}

// Dot products of rows with a pair's block to their sums: (bits - magic) * scale * row's scale.
template <int kRows>
[[gnu::always_inline]] inline void add_scaled(const uint8_t* activation,
                                              const __m512i (&dot_p)[kRows],
                                              const __m512i (&dot_q)[kRows], __m512 s_p,
                                              __m512 magic_p, __m512 s_q, __m512 magic_q,
                                              __m512 (&acc_p)[kRows], __m512 (&acc_q)[kRows]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 s_a = scale_of(activation, r);
    const __m512 t_p = _mm512_fmsub_ps(_mm512_castsi512_ps(dot_p[r]), s_p, magic_p);
    const __m512 t_q = _mm512_fmsub_ps(_mm512_castsi512_ps(dot_q[r]), s_q, magic_q);
    acc_p[r] = _mm512_fmadd_ps(t_p, s_a, acc_p[r]);
    acc_q[r] = _mm512_fmadd_ps(t_q, s_a, acc_q[r]);
  }
}

inline __m512i broadcast_bytes(const int8_t (&table)[16]) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

struct FourScales {
  __m512 block[4];
};

// Upper and lower byte of the bf16 (the upper half of FP32) of 64 E4M3 scales, sign ignored, 0x7F
// NaN. Integer work: exact for subnormals whatever FTZ/DAZ say, no microcode assist.
struct ScaleBytes {
  __m512i high, low;
};

#ifdef __AVX512VBMI__

struct ScaleTable {
  uint8_t high[128], low[128];
  constexpr ScaleTable() : high{}, low{} {
    for (int b = 0; b < 128; ++b) {
      int exponent = (b >> 3) + 120, mantissa = b & 7;
      for (; b < 8 && b > 0 && (mantissa & 8) == 0; mantissa <<= 1) --exponent;  // normalise
      if (b < 8 && b > 0) ++exponent;
      const int bf16 = b == 0 ? 0 : b == 0x7F ? 0x7FC0 : exponent << 7 | (mantissa & 7) << 4;
      high[b] = static_cast<uint8_t>(bf16 >> 8);
      low[b] = static_cast<uint8_t>(bf16 & 0xFF);
    }
  }
};
alignas(64) constexpr ScaleTable kScaleTable;

// vpermi2b looks at seven bits of each index: the sign is ignored for free.
inline ScaleBytes scale_bytes(__m512i bytes) {
  return {_mm512_permutex2var_epi8(_mm512_load_si512(kScaleTable.high), bytes,
                                   _mm512_load_si512(kScaleTable.high + 64)),
          _mm512_permutex2var_epi8(_mm512_load_si512(kScaleTable.low), bytes,
                                   _mm512_load_si512(kScaleTable.low + 64))};
}

#else

// bf16 of the E4M3 bytes 0x00 .. 0x0F: the subnormals and the first binade.
// From 0x10 on bf16 = (byte + 0x3C0) << 4.
constexpr int8_t kSmallScaleLow[16] = {0,     0,     -0x80, -0x40, 0,     0x20,  0x40,  0x60,
                                       -0x80, -0x70, -0x60, -0x50, -0x40, -0x30, -0x20, -0x10};
constexpr int8_t kSmallScaleHigh[16] = {0,    0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C,
                                        0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C};

inline ScaleBytes scale_bytes(__m512i bytes) {
  const __m512i b = _mm512_and_si512(bytes, _mm512_set1_epi8(0x7F));
  const __mmask64 small = _mm512_cmplt_epu8_mask(b, _mm512_set1_epi8(16));
  const __mmask64 nan = _mm512_cmpeq_epi8_mask(b, _mm512_set1_epi8(0x7F));
  const __m512i low_nibble_up =
      _mm512_and_si512(_mm512_slli_epi16(b, 4), _mm512_set1_epi8(static_cast<char>(0xF0)));
  const __m512i high_nibble = _mm512_and_si512(_mm512_srli_epi16(b, 4), _mm512_set1_epi8(0x0F));
  const __m512i low =
      _mm512_mask_shuffle_epi8(low_nibble_up, small, broadcast_bytes(kSmallScaleLow), b);
  __m512i high = _mm512_add_epi8(high_nibble, _mm512_set1_epi8(0x3C));
  high = _mm512_mask_shuffle_epi8(high, small, broadcast_bytes(kSmallScaleHigh), b);
  high = _mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(0x7F));
  return {high, low};
}

#endif

// 16 dwords (columns) of 4 E4M3 bytes (blocks) -> FP32.
inline FourScales decode_scales(__m512i bytes) {
  const auto [high, low] = scale_bytes(bytes);
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

// The low (high) nibble of every byte as an unsigned weight, 2*value + 12.
#ifdef __AVX512VBMI__
// vpermb looks at six bits of each index; the table repeats so that the two above the nibble do not
// matter.
inline __m512i low_nibbles(__m512i codes) {
  return _mm512_permutexvar_epi8(codes, broadcast_bytes(kOffsetDoubled));
}
inline __m512i high_nibbles(__m512i codes) {
  return _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), broadcast_bytes(kOffsetDoubled));
}
#else
inline __m512i low_nibbles(__m512i codes) {
  return _mm512_shuffle_epi8(broadcast_bytes(kOffsetDoubled),
                             _mm512_and_si512(codes, _mm512_set1_epi8(0x0F)));
}
inline __m512i high_nibbles(__m512i codes) {
  return _mm512_shuffle_epi8(broadcast_bytes(kOffsetDoubled),
                             _mm512_and_si512(_mm512_srli_epi16(codes, 4), _mm512_set1_epi8(0x0F)));
}
#endif

// The weights of one block of one panel: 2 x 64 code bytes -> 4 x 64 unsigned bytes.
struct BlockWeights {
  __m512i part[4];
};
inline BlockWeights decode_block(__m512i first8, __m512i second8) {
  return {{low_nibbles(first8), high_nibbles(first8), low_nibbles(second8), high_nibbles(second8)}};
}

// The same of a packed group's block, and the scales of its four.
inline BlockWeights block_weights(const uint8_t* group, int block) {
  const uint8_t* const codes = group + block * kBlockCodeBytes;
  return decode_block(_mm512_loadu_si512(codes), _mm512_loadu_si512(codes + 64));
}
inline FourScales group_scales(const uint8_t* group) {
  return decode_scales(_mm512_loadu_si512(group + kGroupBlocks * kBlockCodeBytes));
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

// The scales of up to 64 blocks of a panel, transposed: dword c of vector g = the 4 blocks of group
// g of column c. Blocks beyond k give 0, swizzled padding is not trusted; groups beyond k are not
// written, but for the first of a pair. out is 64-byte aligned.
constexpr int kScaleGroups = 16;

inline void transpose_linear_scales(const PanelSource& source, int64_t block, uint8_t* out) {
  const int64_t left = source.blocks - block;
  const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
  const uint8_t* at = source.scales + block;
  const int last = source.cols - 1;
  __m512i row[16], dwords[16];
#pragma GCC unroll 16
  for (int c = 0; c < kPanelN; ++c)
    row[c] = _mm512_maskz_loadu_epi8(mask, at + (c < last ? c : last) * source.scale_row_stride);
  transpose_16x16(row, dwords);
#pragma GCC unroll 16
  for (int g = 0; g < kScaleGroups; ++g) _mm512_store_si512(out + 64 * g, dwords[g]);
}

inline void gather_swizzled_scales(const PanelSource& source, int64_t block, uint8_t* out) {
  const int64_t left = source.blocks - block;
  const __m512i columns = _mm512_slli_epi32(
      _mm512_min_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                       _mm512_set1_epi32(source.cols - 1)),
      4);
  for (int g = 0; g < kScaleGroups && g * kGroupBlocks < left; ++g) {
    const uint8_t* at = source.scales + (block / kGroupBlocks + g) * source.scale_group_stride;
    const int64_t blocks = left - g * kGroupBlocks;
    const uint32_t keep = blocks >= kGroupBlocks ? 0xFFFFFFFFu : (1u << (8 * blocks)) - 1;
    const __m512i dwords = _mm512_i32gather_epi32(columns, at, 1);
    _mm512_store_si512(out + 64 * g,
                       _mm512_and_si512(dwords, _mm512_set1_epi32(static_cast<int32_t>(keep))));
  }
  // The second group of the last pair.
  const int64_t groups = (left + kGroupBlocks - 1) / kGroupBlocks;
  if (groups < kScaleGroups) _mm512_store_si512(out + 64 * groups, _mm512_setzero_si512());
}

inline void transpose_scales(const PanelSource& source, int64_t block, uint8_t* out) {
  if (source.scale_row_stride != 16 || source.scale_group_stride != 512)
    transpose_linear_scales(source, block, out);
  else
    gather_swizzled_scales(source, block, out);
}

// The chunk after the next one of a row whose bytes Ahead has brought to L2, into L1: 16 rows side
// by side are more streams than the L1 prefetcher follows. Zen 4, one core, N = 4096, K = 7168,
// weights cold, 2026-11-24, in turn with the same without it, 5th percentiles: M = 2 1.87 for 1.94,
// M = 4 2.50 for 2.57; M = 1 between nothing, where neighbours take much of the memory's bandwidth,
// and 3.4 % less (1.15 for 1.19). 64, 128 and 256 bytes ahead are alike, 448 gains nothing.
inline void ask_for_row(const uint8_t* codes) {
  _mm_prefetch(reinterpret_cast<const char*>(codes) + 128, _MM_HINT_T0);
}

// 64 bytes (8 blocks, fewer at the end of the row) of each of the panel's 16 rows, transposed.
template <bool kAhead = false>
inline void load_codes(const PanelSource& source, int64_t block, __m512i (&out)[16]) {
  const int64_t left = source.blocks - block, stride = source.row_bytes;
  const uint8_t* at = source.codes + block * 8;
  const int last = source.cols - 1;
  __m512i row[16];
  if (last == kPanelN - 1 && left >= 8) {
    // Four bases and one stride reach 16 rows; 16 pointers spill.
    const uint8_t* bases[4] = {at, at + 4 * stride, at + 8 * stride, at + 12 * stride};
#pragma GCC unroll 16
    for (int c = 0; c < kPanelN; ++c) {
      const uint8_t* const codes = bases[c / 4] + c % 4 * stride;
      if constexpr (kAhead) ask_for_row(codes);
      row[c] = _mm512_loadu_si512(codes);
    }
  } else {
    const __mmask64 mask = left >= 8 ? ~__mmask64{0} : (__mmask64{1} << (left * 8)) - 1;
    for (int c = 0; c < kPanelN; ++c)
      row[c] = _mm512_maskz_loadu_epi8(mask, at + (c < last ? c : last) * stride);
  }
  transpose_16x16(row, out);
}

// Instructions by name: GCC 12 drops one of two branches that differ in an intrinsic's hint alone,
// and moves the other out of the loop's way (M = 2, 4, 8, 16 of NVFP4 1.28, 1.28, 2.3, 4.05 ms for
// 1.04, 1.10, 1.92, 3.4).
template <int kLines>
inline void ask_for_lines(const char* at, bool into_l1) {
  if (into_l1) {
#pragma GCC unroll 18
    for (int line = 0; line < kLines; ++line) asm volatile("prefetcht0 %0" : : "m"(at[64 * line]));
  } else {
#pragma GCC unroll 18
    for (int line = 0; line < kLines; ++line) asm volatile("prefetcht1 %0" : : "m"(at[64 * line]));
  }
}

// Asks for whole panels in the order of their bytes while others are computed, 18 lines a chunk of
// 8 blocks: rows of 16 columns lie one after the other, and so do packed groups, so this is the one
// sequential stream from memory in the loop.
//
// Rows, Zen 4, 2 cores, M = 1, cold weights, GB/s: without 24; each row 256 to 2048 bytes ahead 24;
// this 35; into L1 instead of L2 22; every second line only 33 where this gives 47 (another hour,
// huge pages); spread over the chunk instead of in one burst 34 where this gives 41. Packed groups,
// Zen 5, one core, two panels at a time, all into L2, M = 4 and 8, N = 4096, K = 7168, memory busy,
// ms: each panel 8 KiB ahead in itself 2.0 and 3.0, with the next pair's beginning 3.2 and 2.6,
// this 1.4 and 2.1.
class Ahead {
 public:
  // `second` after `first`; null: nothing.
  explicit Ahead(const PanelSource* first, const PanelSource* second = nullptr)
      : second_(second), panels_(second != nullptr ? 2 : 1) {
    begin(first);
  }
  // What is asked for beside a chunk of 8 blocks: as much of each panel.
  void chunk() {
    for (int panel = 0; panel < panels_; ++panel) step();
  }
  void step() {
    if (codes_ == nullptr) return;
    if (packed_) {
      ask_for_lines<18>(codes_, into_l1_);
      codes_ += 18 * 64;
    } else {
      ask_for_lines<16>(codes_, into_l1_);
      ask_for_lines<2>(scales_, into_l1_);
      codes_ += 16 * 64;
      scales_ += 2 * 64;
    }
    if (--chunks_ > 0) return;
    begin(second_);
    second_ = nullptr;
  }

 private:
  void begin(const PanelSource* panel) {
    codes_ = nullptr;
    if (panel == nullptr) return;
    packed_ = panel->packed != nullptr;
    codes_ = reinterpret_cast<const char*>(packed_ ? panel->packed : panel->codes);
    scales_ = reinterpret_cast<const char*>(panel->scales);
    chunks_ = (panel->blocks + 2 * kGroupBlocks - 1) / (2 * kGroupBlocks);
  }

  const char* codes_ = nullptr;
  const char* scales_ = nullptr;
  const PanelSource* second_;
  int64_t chunks_ = 0;
  int panels_;
  bool packed_ = false, into_l1_ = avx512::asks_into_l1();
};

// A panel for gemv, 8 blocks at a time as two packed groups: where they lie, or made from rows.
// Beyond k the second group may be anything. Scales of rows are transposed 64 blocks at a time: a
// load of 64 bytes waits for 16 stores of 4.
template <bool kPacked>
class Chunks {
 public:
  explicit Chunks(const PanelSource& source) : source_(source) {}

  const uint8_t* at(int64_t block) {
    if constexpr (kPacked) return source_.packed + block / kGroupBlocks * kPackedGroupBytes;
    constexpr int64_t kScaleBlocks = kScaleGroups * kGroupBlocks;
    if (block % kScaleBlocks == 0) transpose_scales(source_, block, scales_);
    const uint8_t* const scales = scales_ + block % kScaleBlocks / kGroupBlocks * 64;
    __m512i codes[16];
    load_codes<true>(source_, block, codes);
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      uint8_t* const group = groups_ + g * kPackedGroupBytes;
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) _mm512_store_si512(group + 64 * i, codes[8 * g + i]);
      _mm512_store_si512(group + kGroupBlocks * kBlockCodeBytes,
                         _mm512_load_si512(scales + 64 * g));
    }
    return groups_;
  }

 private:
  const PanelSource& source_;
  alignas(64) uint8_t groups_[kPacked ? 1 : 2 * kPackedGroupBytes];
  alignas(64) uint8_t scales_[kPacked ? 1 : kScaleGroups * 64];
};

// All blocks of a pair, one after the other: block(codes of P, codes of Q, scales of P, of Q).
// Scales wait in memory, for the sums take the registers; where they take nearly all, GCC 12 spills
// unless blocks are left as a loop.
template <bool kPacked, bool kUnrolled, class F>
[[gnu::always_inline]] inline void for_pair_blocks(const PanelPair& pair, Ahead ahead,
                                                   const F& block) {
  Chunks<kPacked> chunks_p(pair.p), chunks_q(pair.q);
  for (int64_t done = 0; done < pair.p.blocks; done += 2 * kGroupBlocks) {
    const uint8_t *p = chunks_p.at(done), *q = chunks_q.at(done);
    ahead.chunk();
    int64_t left = pair.p.blocks - done;
    for (int group = 0; group < 2 && left > 0; ++group) {
      alignas(64) FourScales scales[2] = {group_scales(p), group_scales(q)};
      asm volatile("" : "+m"(scales));
      const int here = left < kGroupBlocks ? static_cast<int>(left) : kGroupBlocks;
      const auto at = [&](int b) __attribute__((always_inline)) {
        block(p + b * kBlockCodeBytes, q + b * kBlockCodeBytes, scales[0].block[b],
              scales[1].block[b]);
      };
      if constexpr (kUnrolled) {
#pragma GCC unroll 4
        for (int b = 0; b < kGroupBlocks; ++b) {
          if (b >= here) break;
          at(b);
        }
      } else {
#pragma GCC unroll 1
        for (int b = 0; b < here; ++b) at(b);
      }
      p += kPackedGroupBytes;
      q += kPackedGroupBytes;
      left -= here;
    }
  }
}

// A pair's rows in runs of at most kMost: run.operator()<kRows, kPacked>(first row, Ahead).
// The first run asks for the next pair, or for its P while the second asks for Q, so that both have
// memory to wait for beside their work: M = 7, 4 rows and 3, took 1.38 times M = 6.
template <int kMost, class F>
inline void gemv_in_runs(const PanelPair& pair, const PanelPair* next, int rows, const F& run) {
  in_even_runs<kMost>(rows, [&]<int kRows>(int first) {
    const PanelSource *wanted = nullptr, *also = nullptr;
    if (next != nullptr && first == 0) wanted = &next->p;
    if (next != nullptr && rows == kRows) also = &next->q;
    if (next != nullptr && first > 0 && first <= kMost) wanted = &next->q;  // the second run
    const Ahead ahead(wanted, also);
    pair.p.packed != nullptr ? run.template operator()<kRows, true>(first, ahead)
                             : run.template operator()<kRows, false>(first, ahead);
  });
}
