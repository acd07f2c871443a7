// Work handed out in chunks of 8 neighbouring values, and where their operands lie.
#pragma once

#include <cstdint>

#include "cuda/kernels/common/e2m1.cuh"
#include "cuda/kernels/common/source.hpp"

namespace dualgemm::cuda {

// Offset of scale (row, block) in one batch: docs/formats.md, "Scale layouts".
DUALGEMM_DEVICE int64_t scale_offset(const Nvfp4Source& source, int64_t cols, int64_t row,
                                     uint32_t block) {
  if (source.scale_ld != 0) return row * source.scale_ld + block;
  const int64_t tile_cols = (cols / 16 + 3) / 4;
  return (row / 128 * tile_cols + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

// Row `flat_row` of out_rows x batches, as the source counts.
struct SourceRow {
  int64_t batch, row;
};
DUALGEMM_DEVICE SourceRow source_row(const SourceExtent& extent, int64_t flat_row) {
  if (extent.batches == 1) return {0, flat_row};
  const int64_t batch = flat_row / extent.out_rows;
  return {batch, flat_row - batch * extent.out_rows};
}

// The codes and the scale of a chunk as they lie in memory, so that loads come before arithmetic.
struct RawChunk {
  uint32_t codes;
  uint8_t scale;
};
DUALGEMM_DEVICE RawChunk load_chunk(const Nvfp4Source& source, const SourceExtent& extent,
                                    SourceRow at, uint32_t chunk) {
  if (at.row >= extent.rows) return {0, 0};
  const uint8_t* const codes = source.codes + at.batch * source.batch_bytes +
                               at.row * source.row_bytes + chunk * (kChunk / 2);
  const uint8_t* const scales = source.scales + at.batch * source.scale_batch_bytes;
  return {load_word(codes), scales[scale_offset(source, extent.cols, at.row, chunk / 2)]};
}

// The codes and the scale of the 16-block from column k on; zeros beyond the last column.
struct RawBlock {
  uint32_t codes[2];
  uint8_t scale;
};
DUALGEMM_DEVICE RawBlock load_block(const Nvfp4Source& source, const SourceExtent& extent,
                                    SourceRow at, int64_t k) {
  if (k >= extent.cols) return {};
  const auto chunk = static_cast<uint32_t>(k / kChunk);
  const RawChunk first = load_chunk(source, extent, at, chunk);
  const RawChunk second = load_chunk(source, extent, at, chunk + 1);
  return {{first.codes, second.codes}, first.scale};
}

}  // namespace dualgemm::cuda
