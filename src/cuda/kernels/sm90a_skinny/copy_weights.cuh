// A warp's copies of weights, ahead of their use. Part of dual_gemm.cuh.
#pragma once

namespace dualgemm::cuda::sm90a_skinny {

// Where the scales of a row begin; in swizzled ones four neighbours follow each other, and the next
// four are 512 bytes on.
DUALGEMM_DEVICE uint32_t scale_offset(const PackedView& view, uint32_t row) {
  return view.swizzled ? row / 128 * view.scale_ld + row % 32 * 16 + row % 128 / 32 * 4
                       : row * view.scale_ld;
}

// From one word of four scales of a row to the next.
DUALGEMM_DEVICE uint32_t scale_step(const PackedView& view) {
  return view.swizzled ? kScaleBlockBytes : 4;
}

// 16 bytes of a row lie at their number ^ (row % 2), so that the eight lanes of two rows that read
// every other 16 bytes meet all banks once.
DUALGEMM_DEVICE uint32_t swizzled_chunk(uint32_t row, uint32_t chunk) {
  return row * (kBlockBytes / 16) + (chunk ^ row % 2);
}

// One matrix as a lane copies it: 16 bytes of codes of the rows lane / 8, + 4, + 8, ... of a tile,
// and the word of scales of row lane / 4 of each unit that the lane will use itself.
struct WeightSource {
  const uint8_t* codes;
  const uint8_t* scales;  // of the batch, at the lane's word
  uint32_t row_bytes_4;   // of four rows of codes

  DUALGEMM_DEVICE void find(const PackedView& view, const Tile& tile) {
    const uint32_t lane = threadIdx.x % 32;
    codes = view.codes + tile.batch * view.batch_bytes +
            (tile.n_begin + lane / 8) * view.row_bytes + lane % 8 * 16;
    row_bytes_4 = static_cast<uint32_t>(4 * view.row_bytes);
    scales = view.scales + tile.batch * view.scale_batch_bytes + lane % 4 * scale_step(view);
  }
};

// Walks through the warp's blocks: those of number warp, warp + 16, ... of the CTA's tiles
// blockIdx.x, + gridDim.x, ...
template <Config kCfg>
class WeightCopier {
 public:
  DUALGEMM_DEVICE WeightCopier(const Params& params, uint32_t warp)
      : tile_(warp < params.k_blocks ? blockIdx.x : params.tiles), block_(warp) {
    if (tile_ < params.tiles) find_rows(params);
  }

  // A group of copies: one unit of the walk's block. Empty after the last block.
  DUALGEMM_DEVICE void copy_unit(const Params& params, UnitStorage& to, int unit) {
    if (tile_ < params.tiles) {
      copy_from(params, params.gate, gate_, to.codes[0], to.scales[0], unit);
      copy_from(params, params.up, up_, to.codes[1], to.scales[1], unit);
    }
    ptx::cp_async_commit_group();
  }

  DUALGEMM_DEVICE void advance(const Params& params) {
    if (tile_ >= params.tiles) return;
    block_ += kWarps;
    if (block_ < params.k_blocks) return;
    block_ = threadIdx.x / 32;
    tile_ += gridDim.x;
    if (tile_ < params.tiles) find_rows(params);
  }

 private:
  DUALGEMM_DEVICE void find_rows(const Params& params) {
    const Tile tile = locate<kCfg>(params, tile_);
    gate_.find(params.gate, tile);
    up_.find(params.up, tile);
    n_begin_ = tile.n_begin;
  }

  DUALGEMM_DEVICE void copy_from(const Params& params, const PackedView& view,
                                 const WeightSource& from, uint4* codes, uint32_t* scales,
                                 int unit) const {
    const uint32_t lane = threadIdx.x % 32, row = n_begin_ + unit * kUnitCols;
    const bool k_valid = block_ * kBlockK + lane % 8 * 32 < params.k;
    const uint8_t* const block = from.codes + static_cast<uint64_t>(block_) * kBlockBytes;
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const bool valid = k_valid && row + i * 4 + lane / 8 < params.n;
      const uint32_t fours = unit * (kUnitCols / 4) + i;
      ptx::cp_async_16(&codes[swizzled_chunk(i * 4 + lane / 8, lane % 8)],
                       valid ? block + static_cast<uint64_t>(from.row_bytes_4) * fours : view.codes,
                       valid ? 16 : 0);
    }
    const bool valid = block_ * kBlockK + lane % 4 * 64 < params.k && row + lane / 4 < params.n;
    const uint64_t offset =
        scale_offset(view, row + lane / 4) + static_cast<uint64_t>(block_) * (4 * scale_step(view));
    ptx::cp_async_4(&scales[lane], valid ? from.scales + offset : view.scales, valid ? 4 : 0);
  }

  uint32_t tile_, block_, n_begin_;
  WeightSource gate_, up_;
};

}  // namespace dualgemm::cuda::sm90a_skinny
