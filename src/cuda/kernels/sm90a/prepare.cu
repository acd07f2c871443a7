// Decodes A and puts k into the order in which packed weights come out of registers.
//
// In a k-tile of 256, thread q = lane % 4 of the main kernel holds codes 64q .. 64q+63 as
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
[[maybe_unused]] constexpr int kUnroll = 4;  // row pieces whose loads a warp has under way

// A lane's part of one warp's work: a row's 256 elements of one k-tile, eight a thread. Lane 4
// * word + q reads word `word` of the main kernel's thread q.
struct RowPiece {
  const uint8_t* data;   // null: beyond the end of the row, zeros
  const uint8_t* scale;  // of codes
  uint8_t* to;
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

[[maybe_unused]] __device__ const uint8_t* scale_at(const PrepareParams& p, uint32_t batch,
                                                    uint32_t row, uint32_t col) {
  const uint8_t* const from = p.scales + batch * p.scale_batch_bytes;
  if (p.scale_ld != 0) return from + row * p.scale_ld + col;
  const int64_t tile_cols = (p.k + 63) / 64;
  const int64_t tile = row / 128 * tile_cols + col / 4;
  return from + tile * kScaleTileBytes + row % 32 * 16 + row % 128 / 32 * 4 + col % 4;
}

// Where word `word` of the main kernel's thread q begins in a k-tile.
[[maybe_unused]] __device__ uint32_t k_of_word(const PrepareParams& p, uint32_t q, uint32_t word) {
  if (p.packed_order) return word / 2 * kUnitK + q * (kUnitK / 4) + word % 2 * 8;
  return q * kQuadK + word * 8;
}

// Row piece `index` of the call. They are numbered rows first: warps that are neighbours write
// neighbouring lines. A lane writes 16 bytes of the 64 of steps 2*word and 2*word+1 of a row.
[[maybe_unused]] __device__ RowPiece locate(const PrepareParams& p, uint32_t index) {
  const uint32_t q = threadIdx.x % 4, word = threadIdx.x / 4 % 8;
  const uint32_t column = quotient(index, p.m), batch = quotient(column, p.k_tiles);
  const uint32_t row = index - column * p.m.value, k_tile = column - batch * p.k_tiles.value;
  const uint32_t k = k_tile * kTileK + k_of_word(p, q, word);
  const uint64_t sub = static_cast<uint64_t>(column) * kSubs + word / 2;
  RowPiece at{nullptr, nullptr,
              p.out + (sub * p.m.value + row) * kRowBytes + word % 2 * 64 + q * 16};
  if (k >= p.k) return at;
  const uint64_t bytes = p.type == AType::kE2M1 ? k / 2 : 2 * static_cast<uint64_t>(k);
  at.data = p.a + batch * p.batch_bytes + row * p.row_bytes + bytes;
  at.scale = scale_at(p, batch, row, k / 16);
  return at;
}

// This lane's eight elements; zeros beyond the end of the row.
template <bool kAligned>
__device__ Eight load_eight(const PrepareParams& p, const RowPiece& at) {
  Eight eight{};
  if (at.data == nullptr) return eight;
  if (p.type == AType::kE2M1) {
    load_words<1, kAligned>(at.data, eight.words);
    eight.scale = *at.scale & 0x7Fu;
  } else {
    load_words<4, kAligned>(at.data, eight.words);
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
  for (int i = 0; i < 4; i += 2) {  // 1 x 1 in 2 x 2
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, odd ? values[i] : values[i + 1], 1);
    (odd ? values[i] : values[i + 1]) = other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // 2 x 2 in 4 x 4
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high ? values[i] : values[i + 2], 2);
    (high ? values[i] : values[i + 2]) = other;
  }
}

// Row pieces first, first + stride, ... of the call, at most kUnroll, below p.row_pieces.
struct Places {
  RowPiece at[kUnroll];
};

[[maybe_unused]] __device__ Places locate_all(const PrepareParams& p, uint32_t first,
                                              uint32_t stride) {
  Places places{};
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const uint32_t index = first + i * stride;  // below 2^31 + 4 * kMaxCtas * 8
    if (index >= p.row_pieces) break;
    places.at[i] = locate(p, index);
  }
  return places;
}

template <bool kAligned>
__device__ void prepare_pieces(const PrepareParams& p, const Places& places) {
  Eight eights[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (places.at[i].to == nullptr) break;
    eights[i] = load_eight<kAligned>(p, places.at[i]);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (places.at[i].to == nullptr) break;
    uint32_t pairs[4];
    make_pairs(p, eights[i], pairs);
    transpose_quad(pairs);
    *reinterpret_cast<uint4*>(places.at[i].to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

template <bool kAligned>
[[maybe_unused]] __device__ void prepare_all(const PrepareParams& p, uint32_t first,
                                             uint32_t stride, Places places) {
#pragma unroll 1
  while (first < p.row_pieces) {
    prepare_pieces<kAligned>(p, places);
    first += kUnroll * stride;
    places = locate_all(p, first, stride);
  }
}

}  // namespace

// One warp a row piece, several under way at once.
extern "C" __global__ void __launch_bounds__(kPrepareThreads)
    dual_gemm_sm90a_prepare(const __grid_constant__ PrepareParams p) {
#if DUALGEMM_TARGET_SM90
  const uint32_t thread = blockIdx.x * kPrepareThreads + threadIdx.x;
  const uint32_t threads = gridDim.x * kPrepareThreads;
  const bool aligned = is_aligned(p);
  // Addresses need nothing of the kernel in front, which has perhaps not ended.
  const Places places = locate_all(p, thread / 32, threads / 32);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  for (uint32_t i = thread; i < p.num_flags; i += threads) p.flags[i] = 0;
  if (aligned) {
    prepare_all<true>(p, thread / 32, threads / 32, places);
  } else {
    prepare_all<false>(p, thread / 32, threads / 32, places);
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
  const int64_t ctas = (params.row_pieces + kWarps - 1) / kWarps;
  launch.ctas = static_cast<uint32_t>(ctas < kMaxCtas ? ctas : kMaxCtas);
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm90a
