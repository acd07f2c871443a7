// A row of a tensor in shared memory, whose blocks a CTA looks at twice.
#pragma once

#include "cuda/kernels/convert/wide_block.cuh"
#include "cuda/ptx/cp_async.cuh"

namespace dualgemm::cuda {

// In pieces of 16 bytes, which are copied from an address of that alignment. Each warp copies the
// blocks of its own lanes, those that lie threadIdx.x + i * blockDim.x from the first one, so that
// it waits for nobody else. Pieces change places within 128 bytes: the eight that lanes read at a
// time, of neighbouring blocks, lie in different banks.
template <WideType kType>
class StagedRow {
 public:
  static constexpr uint32_t kPieces = WideBlock<kType>::kBytes / 16;  // of a block

  DUALGEMM_DEVICE StagedRow(uint4* pieces, uint32_t blocks) : pieces_(pieces), blocks_(blocks) {}

  // All lanes of a warp; there after await().
  DUALGEMM_DEVICE void copy(const uint8_t* x) const {
    const uint32_t lane = threadIdx.x % 32, count = blocks_ * kPieces;
    for (uint32_t first = threadIdx.x - lane; first < blocks_; first += blockDim.x) {
#pragma unroll
      for (uint32_t i = 0; i < kPieces; ++i) {
        const uint32_t piece = first * kPieces + 32 * i + lane;
        if (piece < count) ptx::cp_async_16(place_of(piece), x + piece * 16, 16);
      }
    }
    ptx::cp_async_commit_group();
  }
  DUALGEMM_DEVICE static void await() {
    ptx::cp_async_wait_group<0>();
    __syncwarp();
  }

  DUALGEMM_DEVICE WideBlock<kType> block(uint32_t index) const {
    WideBlock<kType> raw;
#pragma unroll
    for (uint32_t i = 0; i < kPieces; ++i) {
      const uint4 four = *place_of(index * kPieces + i);
      raw.words[4 * i] = four.x, raw.words[4 * i + 1] = four.y;
      raw.words[4 * i + 2] = four.z, raw.words[4 * i + 3] = four.w;
    }
    return raw;
  }

 private:
  DUALGEMM_DEVICE uint4* place_of(uint32_t piece) const {
    return pieces_ + (piece ^ (piece / 8 % kPieces));
  }

  uint4* pieces_;
  uint32_t blocks_;
};

}  // namespace dualgemm::cuda
