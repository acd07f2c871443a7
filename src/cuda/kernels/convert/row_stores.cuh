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
    *scale_of(block) = scale;
  }

  // The places of every `step`-th block, a multiple of kTileCols, from one on.
  class Every {
   public:
    DUALGEMM_DEVICE Every(const RowStores& row, uint32_t block, uint32_t step)
        : codes_(row.codes_ + block * (kBlock / 2)),
          scale_(row.scale_of(block)),
          step_(step),
          scale_step_(row.swizzled_ ? step * kTileRows : step),
          aligned_(row.aligned_) {}
    DUALGEMM_DEVICE void store_next(const EncodedBlock& encoded) {
      store_codes(codes_, encoded.words, aligned_);
      *scale_ = static_cast<uint8_t>(encoded.scale);
      codes_ += step_ * (kBlock / 2);
      scale_ += scale_step_;
    }

   private:
    uint8_t *codes_, *scale_;
    uint32_t step_, scale_step_;
    bool aligned_;
  };

 private:
  // scale_offset() is a sum of the row's part and the block's.
  DUALGEMM_DEVICE uint8_t* scale_of(uint32_t block) const {
    const uint32_t in_tiles = block / kTileCols * (kTileRows * kTileCols) + block % kTileCols;
    return scales_ + (swizzled_ ? in_tiles : block);
  }

  uint8_t* codes_;
  uint8_t* scales_;
  bool aligned_, swizzled_;
};

}  // namespace dualgemm::cuda
