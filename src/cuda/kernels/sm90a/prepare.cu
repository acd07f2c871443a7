// Decodes a and puts k into the order in which packed weights come out of registers.
//
// In a block of 256 along k, thread q = lane % 4 of the main kernel holds codes 64q .. 64q+63 as
// eight words of eight. Word w feeds MMAs 2w and 2w+1; with i = 2*(step % 2) + half, nibbles i and
// i+4 of it are the pair of that half of k. So slot 8*half + 2q + e of step j is
//   k = 64q + 8*(j/2) + 2*(j%2) + half + 4e.
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/kernels/sm90a/decode.cuh"
#include "cuda/kernels/sm90a/prepare.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::sm90a {
namespace {

constexpr int kPrepareThreads = 128;
constexpr int kQuads = 4;                   // threads that share a row of the MMA's operand
[[maybe_unused]] constexpr int kWords = 8;  // of eight elements that each of them holds of a block
constexpr int kQuadK = 64;                  // elements along k of one of them
constexpr int64_t kMaxCtas = 1 << 16;

// Where one thread's 4 x 8 elements come from.
struct Piece {
  uint32_t batch, row, block, word;
};

// 4 * kWordsRead bytes at any address.
template <int kWordsRead>
__device__ void load_words(const uint8_t* from, uint32_t (&words)[kWordsRead]) {
  if (reinterpret_cast<uintptr_t>(from) % (4 * kWordsRead) == 0) {
    if constexpr (kWordsRead == 4) {
      const uint4 all = *reinterpret_cast<const uint4*>(from);
      words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
    } else {
      words[0] = *reinterpret_cast<const uint32_t*>(from);
    }
    return;
  }
  for (int i = 0; i < kWordsRead; ++i) {
    words[i] = 0;
    for (int byte = 0; byte < 4; ++byte)
      words[i] |= static_cast<uint32_t>(from[4 * i + byte]) << (8 * byte);
  }
}

__device__ uint8_t load_scale(const PrepareParams& p, const Piece& piece, uint32_t col) {
  const uint8_t* const from = p.scales + piece.batch * p.scale_batch_bytes;
  if (p.scale_ld != 0) return from[piece.row * p.scale_ld + col];
  const int64_t col_blocks = (p.k + 63) / 64;
  const int64_t block = piece.row / 128 * col_blocks + col / 4;
  return from[block * kScaleBlockBytes + piece.row % 32 * 16 + piece.row % 128 / 32 * 4 + col % 4];
}

// pairs[i] = elements k+i and k+i+4, i = 0 .. 3.
__device__ void load_pairs(const PrepareParams& p, const Piece& piece, uint32_t k,
                           uint32_t (&pairs)[4]) {
  const uint8_t* const row = p.a + piece.batch * p.batch_bytes + piece.row * p.row_bytes;
  if (p.type == ActivationsType::kE2M1) {
    uint32_t codes[1];
    load_words(row + k / 2, codes);
    const uint16_t scale = load_scale(p, piece, k / 16) & 0x7F;
    const uint32_t both = ptx::cvt_f16x2_e4m3x2(static_cast<uint16_t>(scale << 8 | scale));
    const uint32_t placed[4] = {place_pair<false, 0>(codes[0]), place_pair<false, 1>(codes[0]),
                                place_pair<false, 2>(codes[0]), place_pair<false, 3>(codes[0])};
    for (int i = 0; i < 4; ++i) {
      pairs[i] = ptx::mul_f16x2(ptx::mul_f16x2(placed[i], 0x74007400u), both);  // 2^14
    }
    return;
  }
  uint32_t words[4];  // elements 2j, 2j+1
  load_words(row + 2 * static_cast<int64_t>(k), words);
  pairs[0] = __byte_perm(words[0], words[2], 0x5410);
  pairs[1] = __byte_perm(words[0], words[2], 0x7632);
  pairs[2] = __byte_perm(words[1], words[3], 0x5410);
  pairs[3] = __byte_perm(words[1], words[3], 0x7632);
}

[[maybe_unused]] __device__ void prepare_piece(const PrepareParams& p, const Piece& piece) {
  uint32_t pairs[kQuads][4] = {};
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    const uint32_t k = piece.block * kBlockK + q * kQuadK + piece.word * 8;
    if (k < p.k) load_pairs(p, piece, k, pairs[q]);
  }
  // Steps 2*word and 2*word+1: 64 bytes of one row of 128.
  const uint64_t sub = static_cast<uint64_t>(piece.batch) * p.k_blocks * kSubs +
                       piece.block * kSubs + piece.word / 2;
  uint8_t* const to = p.out + (sub * p.m + piece.row) * kRowBytes + piece.word % 2 * 64;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    reinterpret_cast<uint4*>(to)[i] =
        make_uint4(pairs[0][i], pairs[1][i], pairs[2][i], pairs[3][i]);
  }
}

}  // namespace

// One thread a piece: word `word` of all four threads q, for one row of a and one block of k.
extern "C" __global__ void __launch_bounds__(kPrepareThreads)
    dual_gemm_sm90a_prepare(const __grid_constant__ PrepareParams p) {
#if DUALGEMM_TARGET_SM90
  ptx::griddepcontrol_launch_dependents();
  const int64_t first = blockIdx.x * static_cast<int64_t>(kPrepareThreads) + threadIdx.x;
  const int64_t stride = gridDim.x * static_cast<int64_t>(kPrepareThreads);
  for (int64_t i = first; i < p.num_flags; i += stride) p.flags[i] = 0;
  for (int64_t i = first; i < p.pieces; i += stride) {
    const int64_t row_block = i / kWords;
    const int64_t flat_row = row_block / p.k_blocks;
    const int64_t batch = flat_row / p.m;
    prepare_piece(p, {static_cast<uint32_t>(batch), static_cast<uint32_t>(flat_row - batch * p.m),
                      static_cast<uint32_t>(row_block - flat_row * p.k_blocks),
                      static_cast<uint32_t>(i % kWords)});
  }
#else
  __trap();
#endif
}

KernelLaunch prepare_launch(const PrepareParams& params) {
  KernelLaunch launch{.kernel = {"prepare_sm90a", "dual_gemm_sm90a_prepare",
                                 reinterpret_cast<const void*>(&dual_gemm_sm90a_prepare)},
                      .threads = kPrepareThreads};
  const int64_t ctas = (params.pieces + kPrepareThreads - 1) / kPrepareThreads;
  launch.ctas = static_cast<uint32_t>(ctas < kMaxCtas ? ctas : kMaxCtas);
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm90a
