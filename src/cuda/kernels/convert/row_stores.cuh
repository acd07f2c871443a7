// Where the blocks of one row go, found once for the row.
#pragma once

#include "cuda/kernels/convert/tensor_rows.cuh"
#include "cuda/kernels/convert/wide_block.cuh"

namespace dualgemm::cuda {

class RowStores {
 public:
  DUALGEMM_DEVICE RowStores(const TensorParams& p, const RowPlace& at)
      : codes_(codes_at(p, at)),
        scales_(scale_at(p, at, at.scale_row, 0)),
        aligned_(reinterpret_cast<uintptr_t>(codes_) % (kBlock / 2) == 0),
        swizzled_(p.scale_ld == 0) {}

  DUALGEMM_DEVICE void store(uint32_t block, const EncodedBlock& encoded) const {
    store_codes(codes_ + block * (kBlock / 2), encoded.words, aligned_);
    store_scale(block, static_cast<uint8_t>(encoded.scale));
  }
  DUALGEMM_DEVICE void store_scale(uint32_t block, uint8_t scale) const {
    // scale_offset() is a sum of the row's part and the block's.
    const uint32_t in_tiles = block / kTileCols * (kTileRows * kTileCols) + block % kTileCols;
    scales_[swizzled_ ? in_tiles : block] = scale;
  }

 private:
  uint8_t* codes_;
  uint8_t* scales_;
  bool aligned_, swizzled_;
};

}  // namespace dualgemm::cuda
