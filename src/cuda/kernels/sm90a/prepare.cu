// Decodes a and puts k into the order in which packed weights come out of registers.
//
// In a block of 256 along k, thread q = lane % 4 of the main kernel holds codes 64q .. 64q+63 as
// eight words of eight. Word w feeds MMAs 2w and 2w+1; with i = 2*(step % 2) + half, nibbles i and
// i+4 of it are the pair of that half of k. So slot 8*half + 2q + e of step j is
//   k = 64q + 8*(j/2) + 2*(j%2) + half + 4e.
// Of prepared weights it holds codes 16q .. 16q+15 of each chunk of 64: the first two terms are
// then 64*(j/4) + 16q + 8*(j/2 % 2).
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/kernels/sm90a/decode.cuh"
#include "cuda/kernels/sm90a/prepare.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::sm90a {
namespace {

[[maybe_unused]] constexpr int kQuadK = 64;  // elements along k of a thread q
constexpr int kPrepareThreads = 256;
constexpr int64_t kMaxCtas = 132 * 4;        // that an H200 holds at once; the rest in turn
[[maybe_unused]] constexpr int kUnroll = 4;  // row blocks whose loads a warp has under way

// A row's 256 elements of one block of k: one warp's work, eight elements a thread. Lane 4 * word +
// q reads word `word` of the main kernel's thread q.
struct RowBlock {
  uint32_t batch, row, block;
};

struct Eight {
  uint32_t words[4];  // codes: one word; halves: elements 2j, 2j+1
  uint32_t scale;     // of codes
};

// 4 * kCount bytes; kAligned: to that many.
template <int kCount, bool kAligned>
__device__ void load_words(const uint8_t* from, uint32_t (&words)[4]) {
  if constexpr (kAligned && kCount == 4) {
    const uint4 all = *reinterpret_cast<const uint4*>(from);
    words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
  } else if constexpr (kAligned) {
    words[0] = *reinterpret_cast<const uint32_t*>(from);
  } else {
    for (int i = 0; i < kCount; ++i) {
      words[i] = 0;
      for (int byte = 0; byte < 4; ++byte)
        words[i] |= static_cast<uint32_t>(from[4 * i + byte]) << (8 * byte);
    }
  }
}

// Whether load_words finds its words aligned in every row.
[[maybe_unused]] __device__ bool is_aligned(const PrepareParams& p) {
  const uint64_t all = reinterpret_cast<uintptr_t>(p.a) | static_cast<uint64_t>(p.row_bytes) |
                       static_cast<uint64_t>(p.batch_bytes);
  return all % (p.type == AType::kE2M1 ? 4 : 16) == 0;
}

[[maybe_unused]] __device__ uint8_t load_scale(const PrepareParams& p, const RowBlock& at,
                                               uint32_t col) {
  const uint8_t* const from = p.scales + at.batch * p.scale_batch_bytes;
  if (p.scale_ld != 0) return from[at.row * p.scale_ld + col];
  const int64_t col_blocks = (p.k + 63) / 64;
  const int64_t block = at.row / 128 * col_blocks + col / 4;
  return from[block * kScaleBlockBytes + at.row % 32 * 16 + at.row % 128 / 32 * 4 + col % 4];
}

// This lane's eight elements, k .. k+7; zeros beyond the end of the row.
template <bool kAligned>
__device__ Eight load_eight(const PrepareParams& p, const RowBlock& at, uint32_t k) {
  Eight eight{};
  if (k >= p.k) return eight;
  const uint8_t* const row = p.a + at.batch * p.batch_bytes + at.row * p.row_bytes;
  if (p.type == AType::kE2M1) {
    load_words<1, kAligned>(row + k / 2, eight.words);
    eight.scale = load_scale(p, at, k / 16) & 0x7Fu;
  } else {
    load_words<4, kAligned>(row + 2 * static_cast<int64_t>(k), eight.words);
  }
  return eight;
}

// pairs[i] = elements i and i+4.
[[maybe_unused]] __device__ void make_pairs(const PrepareParams& p, const Eight& eight,
                                            uint32_t (&pairs)[4]) {
  const uint32_t(&words)[4] = eight.words;
  if (p.type == AType::kE2M1) {
    const uint32_t both =
        ptx::cvt_f16x2_e4m3x2(static_cast<uint16_t>(eight.scale << 8 | eight.scale));
    place_word<false>(Shifts{}, words[0], pairs);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i] = ptx::mul_f16x2(ptx::mul_f16x2(pairs[i], 0x74007400u), both);  // 2^14
    }
    return;
  }
  pairs[0] = __byte_perm(words[0], words[2], 0x5410);
  pairs[1] = __byte_perm(words[0], words[2], 0x7632);
  pairs[2] = __byte_perm(words[1], words[3], 0x5410);
  pairs[3] = __byte_perm(words[1], words[3], 0x7632);
}

// Of four lanes q: lane q's value i becomes lane i's value q.
[[maybe_unused]] __device__ void transpose_quad(uint32_t (&values)[4]) {
  const bool odd = threadIdx.x % 2 != 0, high = threadIdx.x % 4 >= 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {  // blocks of 1 x 1 in blocks of 2 x 2
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, odd ? values[i] : values[i + 1], 1);
    (odd ? values[i] : values[i + 1]) = other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // blocks of 2 x 2
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high ? values[i] : values[i + 2], 2);
    (high ? values[i] : values[i + 2]) = other;
  }
}

// Steps 2*word and 2*word+1 of a row: 64 bytes of the 128, 16 from each of four lanes.
[[maybe_unused]] __device__ void store_eight(const PrepareParams& p, const RowBlock& at,
                                             const uint32_t (&quads)[4]) {
  const uint32_t q = threadIdx.x % 4, word = threadIdx.x / 4 % 8;
  const uint64_t sub = (static_cast<uint64_t>(at.batch) * p.k_blocks + at.block) * kSubs + word / 2;
  uint8_t* const to = p.out + (sub * p.m + at.row) * kRowBytes + word % 2 * 64 + q * 16;
  *reinterpret_cast<uint4*>(to) = make_uint4(quads[0], quads[1], quads[2], quads[3]);
}

// Where word `word` of the main kernel's thread q begins in a block of k.
[[maybe_unused]] __device__ uint32_t k_of_word(const PrepareParams& p, uint32_t q, uint32_t word) {
  if (p.packed_order) return word / 2 * kUnitK + q * (kUnitK / 4) + word % 2 * 8;
  return q * kQuadK + word * 8;
}

// Row blocks first, first + stride, ... of the call, at most kUnroll, below p.row_blocks. They are
// numbered rows first: warps that are neighbours write neighbouring lines.
template <bool kAligned>
__device__ void prepare_blocks(const PrepareParams& p, uint32_t first, uint32_t stride) {
  const uint32_t k_in_block = k_of_word(p, threadIdx.x % 4, threadIdx.x / 4 % 8);
  Eight eights[kUnroll];
  RowBlock at[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i) * stride;
    if (index >= p.row_blocks) break;
    const uint32_t column = static_cast<uint32_t>(index) / p.m;
    at[i].row = static_cast<uint32_t>(index) - column * p.m;
    at[i].batch = column / p.k_blocks;
    at[i].block = column - at[i].batch * p.k_blocks;
    eights[i] = load_eight<kAligned>(p, at[i], at[i].block * kBlockK + k_in_block);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (first + static_cast<uint64_t>(i) * stride >= p.row_blocks) break;
    uint32_t pairs[4];
    make_pairs(p, eights[i], pairs);
    transpose_quad(pairs);
    store_eight(p, at[i], pairs);
  }
}

template <bool kAligned>
[[maybe_unused]] __device__ void prepare_all(const PrepareParams& p, uint32_t warp,
                                             uint32_t warps) {
  for (uint64_t first = warp; first < p.row_blocks; first += uint64_t{kUnroll} * warps)
    prepare_blocks<kAligned>(p, static_cast<uint32_t>(first), warps);
}

}  // namespace

// One warp a row block, several under way at once.
extern "C" __global__ void __launch_bounds__(kPrepareThreads)
    dual_gemm_sm90a_prepare(const __grid_constant__ PrepareParams p) {
#if DUALGEMM_TARGET_SM90
  ptx::griddepcontrol_wait();  // may begin before the kernel in front of it has ended
  ptx::griddepcontrol_launch_dependents();
  const uint32_t thread = blockIdx.x * kPrepareThreads + threadIdx.x;
  const uint32_t threads = gridDim.x * kPrepareThreads;
  for (uint32_t i = thread; i < p.num_flags; i += threads) p.flags[i] = 0;
  if (is_aligned(p)) {
    prepare_all<true>(p, thread / 32, threads / 32);
  } else {
    prepare_all<false>(p, thread / 32, threads / 32);
  }
#else
  __trap();
#endif
}

KernelLaunch prepare_launch(const PrepareParams& params) {
  KernelLaunch launch{.kernel = {"prepare_sm90a", "dual_gemm_sm90a_prepare",
                                 reinterpret_cast<const void*>(&dual_gemm_sm90a_prepare)},
                      .threads = kPrepareThreads,
                      .overlaps_previous = true};
  constexpr int64_t kWarps = kPrepareThreads / 32;
  const int64_t ctas = (params.row_blocks + kWarps - 1) / kWarps;
  launch.ctas = static_cast<uint32_t>(ctas < kMaxCtas ? ctas : kMaxCtas);
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm90a
