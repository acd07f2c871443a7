// Nibble order and ggml blocks: permutations of bytes and nibbles.
#include <string>

#include "core/arguments.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm {

Status swap_nibbles(const uint8_t* src, uint8_t* dst, int64_t bytes) {
  DUALGEMM_TRY(core::check_not_negative("bytes", bytes));
  DUALGEMM_TRY(core::check_pointer("src", src, bytes));
  DUALGEMM_TRY(core::check_pointer("dst", dst, bytes));
  if (src != dst) DUALGEMM_TRY(core::check_disjoint("dst", dst, bytes, "src", src, bytes));
  for (int64_t i = 0; i < bytes; ++i) dst[i] = static_cast<uint8_t>(src[i] << 4 | src[i] >> 4);
  return Status();
}

namespace {

// docs/formats.md, "ggml NVFP4 blocks".
constexpr int64_t kGgmlValues = 64, kGgmlScales = 4, kGgmlBytes = kGgmlScales + kGgmlValues / 2;

// 8 bytes of a 16-group, byte j = elements j (low) and j+8 (high) -> byte j = elements 2j (low) and
// 2j+1 (high).
void codes_from_ggml(const uint8_t* group, uint8_t* codes) noexcept {
  for (int j = 0; j < 4; ++j) {
    const uint8_t even = group[2 * j], odd = group[2 * j + 1];
    codes[j] = static_cast<uint8_t>((even & 0xF) | odd << 4);
    codes[j + 4] = static_cast<uint8_t>(even >> 4 | (odd & 0xF0));
  }
}

void codes_to_ggml(const uint8_t* codes, uint8_t* group) noexcept {
  for (int j = 0; j < 4; ++j) {
    const uint8_t low = codes[j], high = codes[j + 4];  // elements 2j, 2j+1 and 2j+8, 2j+9
    group[2 * j] = static_cast<uint8_t>((low & 0xF) | high << 4);
    group[2 * j + 1] = static_cast<uint8_t>(low >> 4 | (high & 0xF0));
  }
}

struct GgmlExtent {
  int64_t ggml_blocks, ggml_bytes, code_bytes, scale_bytes;
};

Expected<GgmlExtent> checked_ggml_extent(int64_t rows, int64_t cols) {
  DUALGEMM_TRY(core::check_not_negative("rows", rows));
  DUALGEMM_TRY(core::check_multiple("cols", cols, kGgmlValues));
  const Expected<int64_t> values = core::checked_product("rows", rows, cols);
  if (!values) return values.status();
  const int64_t ggml_blocks = *values / kGgmlValues;
  return GgmlExtent{ggml_blocks, ggml_blocks * kGgmlBytes, *values / 2, ggml_blocks * kGgmlScales};
}

Status check_ggml_buffers(const GgmlExtent& extent, const uint8_t* ggml_blocks,
                          const uint8_t* codes, const uint8_t* scales) {
  DUALGEMM_TRY(core::check_pointer("ggml_blocks", ggml_blocks, extent.ggml_bytes));
  DUALGEMM_TRY(core::check_pointer("codes", codes, extent.code_bytes));
  DUALGEMM_TRY(core::check_pointer("scales_linear", scales, extent.scale_bytes));
  DUALGEMM_TRY(core::check_disjoint("codes", codes, extent.code_bytes, "ggml_blocks", ggml_blocks,
                                    extent.ggml_bytes));
  DUALGEMM_TRY(core::check_disjoint("scales_linear", scales, extent.scale_bytes, "ggml_blocks",
                                    ggml_blocks, extent.ggml_bytes));
  return core::check_disjoint("scales_linear", scales, extent.scale_bytes, "codes", codes,
                              extent.code_bytes);
}

std::string position(int64_t scale, int64_t cols) {
  const int64_t in_row = cols / kSfVec;
  return " at row " + std::to_string(scale / in_row) + ", scale column " +
         std::to_string(scale % in_row);
}

}  // namespace

Status from_ggml_nvfp4(const uint8_t* ggml_blocks, int64_t rows, int64_t cols, uint8_t* codes,
                       uint8_t* scales_linear) {
  const Expected<GgmlExtent> extent = checked_ggml_extent(rows, cols);
  if (!extent) return extent.status();
  DUALGEMM_TRY(check_ggml_buffers(*extent, ggml_blocks, codes, scales_linear));
  for (int64_t i = 0; i < extent->scale_bytes; ++i) {
    if (ggml_blocks[i / kGgmlScales * kGgmlBytes + i % kGgmlScales] != 0xFF) continue;
    return Status::invalid("ggml_blocks", "scale byte 0xFF" + position(i, cols),
                           "ggml reads it as 480, which E4M3 does not have");
  }
  for (int64_t b = 0; b < extent->ggml_blocks; ++b) {
    const uint8_t* ggml_block = ggml_blocks + b * kGgmlBytes;
    for (int64_t s = 0; s < kGgmlScales; ++s) {
      const uint8_t scale = ggml_block[s];
      scales_linear[b * kGgmlScales + s] = scale == 0x7F ? 0 : scale;
      codes_from_ggml(ggml_block + kGgmlScales + 8 * s, codes + b * (kGgmlValues / 2) + 8 * s);
    }
  }
  return Status();
}

Status to_ggml_nvfp4(const uint8_t* codes, const uint8_t* scales_linear, int64_t rows, int64_t cols,
                     uint8_t* ggml_blocks) {
  const Expected<GgmlExtent> extent = checked_ggml_extent(rows, cols);
  if (!extent) return extent.status();
  DUALGEMM_TRY(check_ggml_buffers(*extent, ggml_blocks, codes, scales_linear));
  for (int64_t i = 0; i < extent->scale_bytes; ++i) {
    if ((scales_linear[i] & 0x7F) != 0x7F) continue;
    return Status::invalid("scales_linear", "NaN" + position(i, cols),
                           "ggml has no NaN: it would read a number");
  }
  for (int64_t b = 0; b < extent->ggml_blocks; ++b) {
    uint8_t* ggml_block = ggml_blocks + b * kGgmlBytes;
    for (int64_t s = 0; s < kGgmlScales; ++s) {
      ggml_block[s] = scales_linear[b * kGgmlScales + s];
      codes_to_ggml(codes + b * (kGgmlValues / 2) + 8 * s, ggml_block + kGgmlScales + 8 * s);
    }
  }
  return Status();
}

}  // namespace dualgemm
