// A row of a tensor in shared memory, whose blocks a CTA looks at twice.
#pragma once

#include "cuda/kernels/convert/wide_block.cuh"
#include "cuda/ptx/cp_async.cuh"

namespace dualgemm::cuda {

// In pieces of 16 bytes, which are copied from an address of that alignment. A thread's blocks lie
// blockDim.x apart from block threadIdx.x on; each warp copies those of its own lanes, so that it
// waits for no other warp. Pieces change places within 128 bytes: the eight that lanes read at a
// time, of neighbouring blocks, lie in different banks. blockDim.x is a multiple of 32, so that the
// change is the same for all of a thread's pieces, whether it copies or reads.
template <WideType kType>
class StagedRow {
 public:
  static constexpr uint32_t kPieces = WideBlock<kType>::kBytes / 16;  // of a block

  DUALGEMM_DEVICE StagedRow(uint4* pieces, uint32_t blocks) : pieces_(pieces), blocks_(blocks) {}

  // All lanes of a warp; there after await().
  DUALGEMM_DEVICE void copy(const uint8_t* x) const {
    const uint32_t lane = threadIdx.x % 32, count = blocks_ * kPieces, step = blockDim.x * kPieces;
    uint32_t piece = (threadIdx.x - lane) * kPieces + lane;
    uint32_t to = ptx::shared_address(pieces_ + (piece ^ lane / 8 % kPieces));
    for (x += piece * 16; piece - lane < count; piece += step, to += step * 16, x += step * 16) {
#pragma unroll
      for (uint32_t i = 0; i < kPieces; ++i) {
        if (piece + 32 * i < count) ptx::cp_async_16(to + 32 * 16 * i, x + 32 * 16 * i);
      }
    }
    ptx::cp_async_commit_group();
  }
  DUALGEMM_DEVICE static void await() {
    ptx::cp_async_wait_group<0>();
    __syncwarp();
  }

  // Where the thread's first block begins, and the step to its next one.
  DUALGEMM_DEVICE const uint4* first() const { return pieces_ + threadIdx.x * kPieces; }
  DUALGEMM_DEVICE static uint32_t step() { return blockDim.x * kPieces; }

  // at: first() + i * step().
  DUALGEMM_DEVICE static WideBlock<kType> block(const uint4* at) {
    const uint32_t changed = threadIdx.x / (8 / kPieces) % kPieces;
    WideBlock<kType> raw;
#pragma unroll
    for (uint32_t i = 0; i < kPieces; ++i) {
      const uint4 four = at[i ^ changed];
      raw.words[4 * i] = four.x, raw.words[4 * i + 1] = four.y;
      raw.words[4 * i + 2] = four.z, raw.words[4 * i + 3] = four.w;
    }
    return raw;
  }

 private:
  uint4* pieces_;
  uint32_t blocks_;
};

}  // namespace dualgemm::cuda
