// Decodes A and puts k into the order in which packed weights come out of registers.
//
// In a k-tile of 256, thread q = lane % 4 of the main kernel holds codes 64q .. 64q+63 as
// eight words of eight. Word w feeds MMAs 2w and 2w+1; with i = 2*(step % 2) + half, nibbles i and
// i+4 of it are the pair of that half of k. So slot 8*half + 2q + e of step j is
//   k = 64q + 8*(j/2) + 2*(j%2) + half + 4e.
// With prepared weights it holds codes 16q .. 16q+15 of each chunk of 64: the first two terms are
// then 64*(j/4) + 16q + 8*(j/2 % 2).
#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/device/group_tiles.cuh"
#include "cuda/kernels/hopper/decode.cuh"
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/kernels/sm90a/prepare.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::sm90a {
namespace {

[[maybe_unused]] constexpr int kQuadK = 64;  // elements along k of a thread q
constexpr int kPrepareThreads = 256;
constexpr uint32_t kWarps = kPrepareThreads / 32;
constexpr int kCtasOfSm = 4;
constexpr uint32_t kMaxCtas = 132 * kCtasOfSm;  // that an H200 holds at once; the rest in turn
[[maybe_unused]] constexpr int kUnroll = 4;     // row pieces whose loads a warp has under way

// A lane's part of one warp's work: a row's 256 elements of one k-tile, eight a thread. Lane
// 4 * word + q reads word `word` of the main kernel's thread q.
struct RowPiece {
  const uint8_t* data;   // null: beyond the end of the row, or a blank one, zeros
  const uint8_t* scale;  // of codes
  uint8_t* to;           // null: nothing to do
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

// Where a row of A lies, and where it goes: column k_tile + k_tiles * batch of decoded A.
struct RowPlace {
  uint32_t batch, row;    // batch: or expert
  uint32_t swizzled_row;  // of its scales, where they are swizzled
  uint32_t k_tile, column;
  enum { kNone, kBlank, kExists } state;  // kBlank: zeros
};

[[maybe_unused]] __device__ const uint8_t* scale_at(const PrepareParams& p, const RowPlace& place,
                                                    uint32_t col) {
  const uint8_t* const from = p.scales + place.batch * p.scale_batch_bytes;
  if (p.scale_ld != 0) return from + place.row * p.scale_ld + col;
  const uint32_t row = place.swizzled_row;
  const int64_t tile_cols = (p.k + 63) / 64;
  const int64_t tile = row / 128 * tile_cols + col / 4;
  return from + tile * kScaleTileBytes + row % 32 * 16 + row % 128 / 32 * 4 + col % 4;
}

// Rows behind the tile's last one that belong to no tile are zeros, as the main kernel's tensor
// copies take whole tiles and must read no unwritten byte: with masked groups those behind each
// expert's last tile, with contiguous ones those behind the last tile of all.
[[maybe_unused]] __device__ decltype(RowPlace::state) state_of(const PrepareParams& p,
                                                               const GroupTile& tile,
                                                               uint32_t number, uint32_t row) {
  if (row < tile.end) return RowPlace::kExists;
  const bool nobodys = !p.groups.one_batch || number + 1 == number_of_tiles(p.groups);
  return row < p.m.value && nobodys ? RowPlace::kBlank : RowPlace::kNone;
}

// The place of row piece `index` of groups: they are numbered rows first, tile_m rows of every tile
// of the table, some of which do not exist.
[[maybe_unused]] __device__ RowPlace place_of(const PrepareParams& p, uint32_t index) {
  const uint32_t column = quotient(index, p.tile_m), number = quotient(column, p.k_tiles);
  const uint32_t offset = index - column * p.tile_m.value;
  const uint32_t k_tile = column - number * p.k_tiles.value;
  const GroupTile tile = tile_of(p.groups, number);
  const uint32_t batch = p.groups.one_batch ? 0 : tile.expert;
  return {tile.expert,
          tile.begin + offset,
          tile.padded_begin + offset,
          k_tile,
          batch * p.k_tiles.value + k_tile,
          state_of(p, tile, number, tile.begin + offset)};
}

// Where word `word` of the main kernel's thread q begins in a k-tile.
[[maybe_unused]] __device__ uint32_t k_of_word(const PrepareParams& p, uint32_t q, uint32_t word) {
  if (p.packed_order) return word / 2 * kUnitK + q * (kUnitK / 4) + word % 2 * 8;
  return q * kQuadK + word * 8;
}

// What of a row's k-tile a lane reads and writes: 16 bytes of the 64 of steps 2*word and 2*word+1.
struct LanePlace {
  uint32_t k;                // of its eight elements
  uint32_t sub, sub_offset;  // sub-tile of the k-tile, and where in a row of it
};
[[maybe_unused]] __device__ LanePlace place_of_lane(const PrepareParams& p, uint32_t k_tile) {
  const uint32_t q = threadIdx.x % 4, word = threadIdx.x / 4 % 8;
  return {k_tile * kTileK + k_of_word(p, q, word), word / 2, word % 2 * 64 + q * 16};
}

[[maybe_unused]] __device__ uint8_t* out_at(const PrepareParams& p, const LanePlace& lane,
                                            uint32_t column, uint32_t row) {
  const uint64_t sub = static_cast<uint64_t>(column) * kSubs + lane.sub;
  return p.out + (sub * p.m.value + row) * kRowBytes + lane.sub_offset;
}

[[maybe_unused]] __device__ const uint8_t* data_at(const PrepareParams& p, uint32_t batch,
                                                   uint32_t row, uint32_t k) {
  const uint64_t bytes = p.type == AType::kE2M1 ? k / 2 : 2 * static_cast<uint64_t>(k);
  return p.a + batch * p.batch_bytes + row * p.row_bytes + bytes;
}

// A row piece of groups.
[[maybe_unused]] __device__ RowPiece locate(const PrepareParams& p, uint32_t index) {
  const RowPlace place = place_of(p, index);
  if (place.state == RowPlace::kNone) return {nullptr, nullptr, nullptr};
  const LanePlace lane = place_of_lane(p, place.k_tile);
  RowPiece at{nullptr, nullptr, out_at(p, lane, place.column, place.row)};
  if (lane.k >= p.k || place.state == RowPlace::kBlank) return at;
  at.data = data_at(p, place.batch, place.row, lane.k);
  at.scale = scale_at(p, place, lane.k / 16);
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
    place_word<false>(hopper::Shifts{}, words[0], pairs);
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

// Transposes the values of four lanes q: lane q's value i becomes lane i's value q.
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

[[maybe_unused]] __device__ void store_pairs(const PrepareParams& p, const Eight& eight,
                                             uint8_t* to) {
  uint32_t pairs[4];
  make_pairs(p, eight, pairs);
  transpose_quad(pairs);
  *reinterpret_cast<uint4*>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// Row pieces of a warp, of which some may be nothing to do.
struct Pieces {
  RowPiece at[kUnroll];
};

template <bool kAligned>
__device__ void prepare_pieces(const PrepareParams& p, const Pieces& pieces) {
  Eight eights[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (pieces.at[i].to == nullptr) continue;
    eights[i] = load_eight<kAligned>(p, pieces.at[i]);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (pieces.at[i].to == nullptr) continue;
    store_pairs(p, eights[i], pieces.at[i].to);
  }
}

// Row pieces first, first + stride, ... of groups, at most kUnroll, below `end`.
__device__ Pieces locate_all(const PrepareParams& p, uint32_t end, uint32_t first,
                             uint32_t stride) {
  Pieces pieces{};
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const uint32_t index = first + i * stride;  // below 2^31 + 4 * kMaxCtas * 8
    if (index >= end) break;
    pieces.at[i] = locate(p, index);
  }
  return pieces;
}

// What a warp prepares without groups: one k-tile of rows first, first + kWarps, ... of a batch.
struct WarpRows {
  uint32_t batch, first, count, k;
  // These are where the first row lies; without an index the others follow at constant distances.
  // Where each warp looked for its pieces by numbers, and divided for each, this kernel was bound
  // by that: 57 thousand pieces of 250 instructions at (2048, 7168).
  const uint8_t *data, *scale;
  uint8_t* to;
};

[[maybe_unused]] __device__ WarpRows rows_of_warp(const PrepareParams& p) {
  const uint32_t column = quotient(blockIdx.x, p.row_blocks);
  const uint32_t batch = quotient(column, p.k_tiles);
  const LanePlace lane = place_of_lane(p, column - batch * p.k_tiles.value);
  const uint32_t block = blockIdx.x - column * p.row_blocks.value;
  const uint32_t first = block * p.rows_of_warp * kWarps + threadIdx.x / 32;
  const uint32_t count = first < p.m.value ? (p.m.value - first + kWarps - 1) / kWarps : 0;
  const RowPlace place{batch, first, first, 0, 0, RowPlace::kExists};
  return {batch,
          first,
          min(count, p.rows_of_warp),
          lane.k,
          data_at(p, batch, first, lane.k),
          p.type == AType::kE2M1 ? scale_at(p, place, lane.k / 16) : nullptr,
          out_at(p, lane, column, first)};
}

// Number `number` of them.
template <bool kIndexed>
__device__ RowPiece locate_row(const PrepareParams& p, const WarpRows& rows, uint32_t number) {
  const uint32_t distance = number * kWarps;
  RowPiece at{nullptr, nullptr, rows.to + distance * kRowBytes};
  if (rows.k >= p.k) return at;
  const uint32_t row = kIndexed ? p.row_index(rows.first + distance) : rows.first + distance;
  at.data = kIndexed ? data_at(p, rows.batch, row, rows.k) : rows.data + distance * p.row_bytes;
  if (p.type != AType::kE2M1) return at;
  const RowPlace place{rows.batch, row, row, 0, 0, RowPlace::kExists};
  at.scale = kIndexed || p.scale_ld == 0 ? scale_at(p, place, rows.k / 16)
                                         : rows.scale + distance * p.scale_ld;
  return at;
}

template <bool kIndexed, bool kAligned>
__device__ void prepare_rows(const PrepareParams& p, const WarpRows& rows) {
#pragma unroll 1
  for (uint32_t begin = 0; begin < rows.count; begin += kUnroll) {
    Eight eights[kUnroll];
#pragma unroll
    for (uint32_t i = 0; i < kUnroll; ++i) {
      if (begin + i < rows.count)
        eights[i] = load_eight<kAligned>(p, locate_row<kIndexed>(p, rows, begin + i));
    }
    // Where they go is found anew: pointers of all pieces took 106 registers for 55.
#pragma unroll
    for (uint32_t i = 0; i < kUnroll; ++i) {
      if (begin + i < rows.count)
        store_pairs(p, eights[i], rows.to + (begin + i) * kWarps * kRowBytes);
    }
  }
}

template <bool kGrouped>
__device__ void prepare([[maybe_unused]] const PrepareParams& p) {
#if DUALGEMM_TARGET_SM90
  const uint32_t thread = blockIdx.x * kPrepareThreads + threadIdx.x;
  const uint32_t threads = gridDim.x * kPrepareThreads;
  const bool aligned = is_aligned(p);
  // Addresses need nothing of the kernel in front, which has perhaps not ended; with groups, that
  // kernel makes the table, and perhaps the index of rows.
  WarpRows rows{};
  if constexpr (!kGrouped) rows = rows_of_warp(p);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  for (uint32_t i = thread; i < p.num_flags; i += threads) p.flags[i] = 0;
  if constexpr (kGrouped) {
    const uint32_t end = number_of_tiles(p.groups) * p.tile_m.value * p.k_tiles.value;
#pragma unroll 1
    for (uint32_t first = thread / 32; first < end; first += kUnroll * threads / 32) {
      const Pieces pieces = locate_all(p, end, first, threads / 32);
      aligned ? prepare_pieces<true>(p, pieces) : prepare_pieces<false>(p, pieces);
    }
  } else if (p.row_index.of_a == nullptr) {
    aligned ? prepare_rows<false, true>(p, rows) : prepare_rows<false, false>(p, rows);
  } else {
    aligned ? prepare_rows<true, true>(p, rows) : prepare_rows<true, false>(p, rows);
  }
#else
  __trap();
#endif
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kPrepareThreads, kCtasOfSm)
    dual_gemm_sm90a_prepare(const __grid_constant__ PrepareParams p) {
  prepare<false>(p);
}
extern "C" __global__ void __launch_bounds__(kPrepareThreads)
    dual_gemm_sm90a_prepare_groups(const __grid_constant__ PrepareParams p) {
  prepare<true>(p);
}

KernelLaunch prepare_launch(const PrepareParams& params) {
  const bool grouped = params.groups.table != nullptr;
  const void* const kernel = grouped
                                 ? reinterpret_cast<const void*>(&dual_gemm_sm90a_prepare_groups)
                                 : reinterpret_cast<const void*>(&dual_gemm_sm90a_prepare);
  KernelLaunch launch{
      .kernel = {"prepare_sm90a",
                 grouped ? "dual_gemm_sm90a_prepare_groups" : "dual_gemm_sm90a_prepare", kernel},
      .threads = kPrepareThreads,
      .overlaps_previous = true};
  if (grouped) {
    launch.ctas = static_cast<uint32_t>(
        std::min<int64_t>(core::ceil_div(params.row_pieces, kWarps), kMaxCtas));
    launch.set_params(params);
    return launch;
  }
  // All CTAs at once, each with an equal part of the rows of a k-tile, up to kMostRows a warp.
  constexpr int64_t kMostRows = 32;
  const int64_t columns = params.row_pieces / params.m.value;
  const int64_t blocks = std::max<int64_t>(kMaxCtas / columns, 1);
  const int64_t rows_of_warp = std::min(core::ceil_div(params.m.value, blocks * kWarps), kMostRows);
  PrepareParams rows = params;
  rows.rows_of_warp = static_cast<uint32_t>(rows_of_warp);
  rows.row_blocks =
      Divisor(static_cast<uint32_t>(core::ceil_div(params.m.value, rows_of_warp * kWarps)));
  launch.ctas = static_cast<uint32_t>(columns * rows.row_blocks.value);
  launch.set_params(rows);
  return launch;
}

}  // namespace dualgemm::cuda::sm90a
