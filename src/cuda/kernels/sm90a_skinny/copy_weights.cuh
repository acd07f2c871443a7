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
  return view.swizzled ? kScaleTileBytes : 4;
}

// 16 bytes of a row lie at their number, in odd rows ^ 4, so that the eight lanes of two rows that
// read the same 64 bytes meet all banks once.
DUALGEMM_DEVICE uint32_t swizzled_chunk(uint32_t row, uint32_t chunk) {
  return row * (kTileRowBytes / 16) + (chunk ^ row % 2 * 4);
}

// One matrix as a lane copies it: 16 bytes of codes of the rows lane / 8, + 4, + 8, ... of a tile,
// and word lane % 4 of the scales of row lane / 4 of each unit.
struct WeightSource {
  const uint8_t* codes;   // of the current k-tile
  const uint8_t* scales;  // of the batch, at the lane's word
  uint32_t row_bytes_4;   // of four rows of codes

  DUALGEMM_DEVICE void find(const PackedView& view, const Tile& tile, uint32_t k_tile) {
    const uint32_t lane = threadIdx.x % 32;
    codes = view.codes + tile.batch * view.batch_bytes +
            (tile.n_begin + lane / 8) * view.row_bytes + lane % 8 * 16 +
            static_cast<uint64_t>(k_tile) * kTileRowBytes;
    row_bytes_4 = static_cast<uint32_t>(4 * view.row_bytes);
    scales = view.scales + tile.batch * view.scale_batch_bytes + lane % 4 * scale_step(view);
  }

  DUALGEMM_DEVICE void advance() { codes += kWarps * kTileRowBytes; }

  DUALGEMM_DEVICE const uint8_t* rows(uint32_t fours) const {
    return codes + static_cast<uint64_t>(row_bytes_4) * fours;
  }
};

// Scales whose rows lie at multiples of 16 bytes: the 16 of a row of the current k-tile, of Gate
// for lanes 0 to 7, of Up for 8 to 15.
struct ScaleSource {
  const uint8_t* scales;
  uint32_t row_bytes_8;  // of eight rows

  DUALGEMM_DEVICE void find(const Params& params, const Tile& tile, uint32_t k_tile) {
    const uint32_t lane = threadIdx.x % 32;
    const PackedView& view = lane < 8 ? params.gate : params.up;
    scales = view.scales + tile.batch * view.scale_batch_bytes +
             (tile.n_begin + lane % 8) * view.scale_ld + k_tile * kTileScales;
    row_bytes_8 = static_cast<uint32_t>(kUnitCols * view.scale_ld);
  }

  DUALGEMM_DEVICE const uint8_t* rows(uint32_t unit) const {
    return scales + static_cast<uint64_t>(row_bytes_8) * unit;
  }
};

// Goes through the warp's k-tiles: those of number warp, warp + 16, ... of the CTA's tiles
// blockIdx.x, + gridDim.x, ...
template <Config kCfg>
class WeightCopier {
 public:
  DUALGEMM_DEVICE WeightCopier(const Params& params, uint32_t warp, const Tiles<kCfg>& tiles)
      : tiles_(tiles),
        tile_(warp < params.k_tiles ? blockIdx.x : tiles.count(params)),
        k_tile_(warp) {
    if (tile_ < tiles_.count(params)) find_rows(params);
  }

  // A group of copies: one unit of the current k-tile. Empty after the last one.
  DUALGEMM_DEVICE void copy_unit(const Params& params, UnitStorage& to, int unit) {
    if (is_whole_) {
      copy_whole(params, to, unit);
    } else if (tile_ < tiles_.count(params)) {
      copy_ragged(params, params.gate, gate_, to.codes[0], to.scales[0], unit);
      copy_ragged(params, params.up, up_, to.codes[1], to.scales[1], unit);
    }
    ptx::cp_async_commit_group();
    if (unit + 1 == kCfg.units) advance(params);
  }

  DUALGEMM_DEVICE const Tiles<kCfg>& tiles() const { return tiles_; }

 private:
  DUALGEMM_DEVICE void advance(const Params& params) {
    if (tile_ >= tiles_.count(params)) return;
    k_tile_ += kWarps;
    if (k_tile_ < params.k_tiles) {
      gate_.advance();
      up_.advance();
      wide_.scales += kWarps * kTileScales;
      is_whole_ = is_whole_ && (k_tile_ + 1) * kTileK <= params.k;
      return;
    }
    k_tile_ = threadIdx.x / 32;
    tile_ += gridDim.x;
    is_whole_ = false;
    if (tile_ < tiles_.count(params)) find_rows(params);
  }

  DUALGEMM_DEVICE void find_rows(const Params& params) {
    const Tile tile = tiles_.locate(params, tile_);
    gate_.find(params.gate, tile, k_tile_);
    up_.find(params.up, tile, k_tile_);
    if (params.wide_scales) wide_.find(params, tile, k_tile_);
    n_begin_ = tile.n_begin;
    is_whole_ = n_begin_ + tile_n_of(kCfg) <= params.n && (k_tile_ + 1) * kTileK <= params.k;
  }

  DUALGEMM_DEVICE void copy_whole(const Params& params, UnitStorage& to, int unit) const {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t fours = unit * (kUnitCols / 4) + i;
      const uint32_t at = swizzled_chunk(i * 4 + lane / 8, lane % 8);
      ptx::cp_async_16(&to.codes[0][at], gate_.rows(fours), 16);
      ptx::cp_async_16(&to.codes[1][at], up_.rows(fours), 16);
    }
    if (params.wide_scales) {
      if (lane < 2 * kUnitCols) ptx::cp_async_16(&to.scales[0][lane * 4], wide_.rows(unit), 16);
    } else {
      copy_scales(params.gate, gate_, to.scales[0], unit, true);
      copy_scales(params.up, up_, to.scales[1], unit, true);
    }
  }

  DUALGEMM_DEVICE void copy_ragged(const Params& params, const PackedView& view,
                                   const WeightSource& from, uint4* codes, uint32_t* scales,
                                   int unit) const {
    const uint32_t lane = threadIdx.x % 32, row = n_begin_ + unit * kUnitCols;
    const bool k_valid = k_tile_ * kTileK + lane % 8 * 32 < params.k;
#pragma unroll 1
    for (uint32_t i = 0; i < 2; ++i) {
      const bool valid = k_valid && row + i * 4 + lane / 8 < params.n;
      const uint32_t fours = unit * (kUnitCols / 4) + i;
      ptx::cp_async_16(&codes[swizzled_chunk(i * 4 + lane / 8, lane % 8)],
                       valid ? from.rows(fours) : view.codes, valid ? 16 : 0);
    }
    copy_scales(view, from, scales, unit,
                k_tile_ * kTileK + lane % 4 * 64 < params.k && row + lane / 4 < params.n);
  }

  // Four bytes a lane.
  DUALGEMM_DEVICE void copy_scales(const PackedView& view, const WeightSource& from,
                                   uint32_t* scales, int unit, bool valid) const {
    const uint32_t lane = threadIdx.x % 32, row = n_begin_ + unit * kUnitCols + lane / 4;
    const uint64_t offset =
        scale_offset(view, row) + static_cast<uint64_t>(k_tile_) * (4 * scale_step(view));
    ptx::cp_async_4(&scales[lane], valid ? from.scales + offset : view.scales, valid ? 4 : 0);
  }

  Tiles<kCfg> tiles_;
  uint32_t tile_, k_tile_, n_begin_;
  bool is_whole_ = false;  // no row of the tile and no element of the k-tile is missing
  WeightSource gate_, up_;
  ScaleSource wide_;  // if params.wide_scales
};

}  // namespace dualgemm::cuda::sm90a_skinny
