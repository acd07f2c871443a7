// Parts that every instruction set shares but that must not be merged by the linker across them;
// see activation-inl.hpp. Scalar code: its cost is hidden behind the vector work.

template <int kBytes>
inline void copy_bytes(const void* from, void* to) {
  __builtin_memcpy(to, from, kBytes);
}

// FP32 of every scale byte / 4 (both operands hold doubled values); 0x7F and 0xFF are NaN, the sign
// is ignored.
struct QuarterScales {
  float value[256];
  constexpr QuarterScales() : value{} {
    for (int byte = 0; byte < 256; ++byte) {
      const int bits = byte & 0x7F, exponent = bits >> 3, mantissa = bits & 7;
      float power = 0.25f;  // 2^(max(exponent, 1) - 7) / 4
      for (int e = exponent == 0 ? 1 : exponent; e < 7; ++e) power *= 0.5f;
      for (int e = 7; e < exponent; ++e) power *= 2.0f;
      const float significand = (exponent == 0 ? 0.0f : 1.0f) + static_cast<float>(mantissa) / 8.0f;
      value[byte] = bits == 0x7F ? __builtin_nanf("") : power * significand;
    }
  }
};
constexpr QuarterScales kQuarterScales;

// 64 bytes: dword c = the scales of blocks block .. block+3 of the panel's row c. Blocks at and
// beyond k give 0: swizzled padding is never trusted, linear rows are never overrun.
inline void gather_group_scales(const PanelSource& source, int64_t block, uint8_t* out) {
  const uint8_t* at = source.scales + block / kGroupBlocks * source.scale_group_stride;
  const int64_t left = source.blocks - block;
  const int last = source.cols - 1;
  if (left >= kGroupBlocks && last == kPanelN - 1) {
#pragma GCC unroll 16
    for (int c = 0; c < kPanelN; ++c) copy_bytes<4>(at + c * source.scale_row_stride, out + 4 * c);
    return;
  }
  for (int c = 0; c < kPanelN; ++c) {
    const uint8_t* row = at + (c < last ? c : last) * source.scale_row_stride;
    for (int b = 0; b < kGroupBlocks; ++b) out[4 * c + b] = b < left ? row[b] : uint8_t{0};
  }
}

// From the scales of the tile's first row to those of row `row`, at the same block.
inline int64_t scale_row_offset(const ActivationSource& source, int row) {
  const int64_t rows = source.rows_to(row);
  if (source.scale_tile_stride == 0) return rows * source.scale_row_stride;
  const auto place = [&](int64_t r) {  // 4 strips of 32 rows, side by side
    return r / 128 * source.scale_tile_stride + r % 32 * 16 + r % 128 / 32 * 4;
  };
  return place(source.scale_tile_row + rows) - place(source.scale_tile_row);
}

// Scale/4 of row `row` of the tile (negative: a row of zeros), one per block at `stride` bytes.
// block_begin is a multiple of kGroupBlocks.
inline void pack_activation_scales(const ActivationSource& source, int row, int64_t block_begin,
                                   int blocks, uint8_t* out, int64_t stride) {
  const uint8_t* group = source.scales + scale_row_offset(source, row < 0 ? 0 : row) +
                         block_begin / kGroupBlocks * source.scale_group_stride;
  for (int b = 0; b < blocks; b += kGroupBlocks, group += source.scale_group_stride) {
    const int here = blocks - b < kGroupBlocks ? blocks - b : kGroupBlocks;
    for (int i = 0; i < here; ++i, out += stride) {
      const float value = row < 0 ? 0.0f : kQuarterScales.value[group[i]];
      copy_bytes<4>(&value, out);
    }
  }
}
