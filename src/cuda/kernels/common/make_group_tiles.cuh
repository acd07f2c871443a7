// The table of tiles of groups, made by all threads of a CTA, in memory or in shared memory:
// between the load of the offsets and the table lie one scan and, where it is read by the same CTA,
// two barriers, as kernels wait for it before they ask for weights.
//
// Experts in chunks of the threads: where each one's tiles begin is a prefix of what those before
// it have. A thread writes the first kOwn tiles of its expert, the warp the others, one expert
// after the other, as one may have nearly all. Where rows name their experts, rows in chunks of the
// threads.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.hpp"

namespace dualgemm::cuda {

// What warps tell each other, in shared memory. Scans that follow each other without a barrier
// between have places of their own.
struct GroupTilesScratch {
  uint32_t highest[1][32];
  uint32_t sums[2][32];
};

namespace group_tiles {

constexpr uint32_t kWholeWarp = 0xFFFFFFFFu;
constexpr uint32_t kScaleRows = 128;  // of a swizzled tile

// Behind branches that separate lanes; the barrier takes whole warps.
DUALGEMM_DEVICE void sync_cta() {
  __syncwarp();
  __syncthreads();
}

struct Add {
  static DUALGEMM_DEVICE uint32_t join(uint32_t a, uint32_t b) { return a + b; }
  static DUALGEMM_DEVICE uint32_t of_lanes(uint32_t x) { return __reduce_add_sync(kWholeWarp, x); }
};
struct Max {
  static DUALGEMM_DEVICE uint32_t join(uint32_t a, uint32_t b) { return max(a, b); }
  static DUALGEMM_DEVICE uint32_t of_lanes(uint32_t x) { return __reduce_max_sync(kWholeWarp, x); }
};

// Each of `values` becomes those of the threads up to this one, joined; all: those of all threads.
template <int kThreads, class Join, int kValues>
DUALGEMM_DEVICE void scan(uint32_t (*of_warps)[32], uint32_t (&values)[kValues],
                          uint32_t (&all)[kValues]) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (uint32_t& value : values) {
      const uint32_t before = __shfl_up_sync(kWholeWarp, value, distance);
      if (lane >= distance) value = Join::join(before, value);
    }
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    if (lane == 31) of_warps[i][warp] = values[i];
  }
  sync_cta();
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const uint32_t of_warp = lane < kThreads / 32 ? of_warps[i][lane] : 0;
    all[i] = Join::of_lanes(of_warp);
    values[i] = Join::join(Join::of_lanes(lane < warp ? of_warp : 0), values[i]);
  }
}

// Into 0 .. most.
DUALGEMM_DEVICE uint32_t cut(int32_t number, uint32_t most) {
  return number < 0 ? 0u : min(static_cast<uint32_t>(number), most);
}

struct Rows {
  uint32_t begin, end;
};

// The rows of a thread's expert; with contiguous experts, `before` is the highest offset of the
// chunks before, and is that of this one, too, where it matters: if offsets fall somewhere.
template <int kThreads>
DUALGEMM_DEVICE Rows rows_of_expert(const GroupRows& p, uint32_t expert, GroupTilesScratch& scratch,
                                    uint32_t& before) {
  const bool exists = expert < p.l;
  if (p.offsets == nullptr) return {0, exists ? cut(p.counts[expert], p.m) : 0};
  Rows rows{exists ? cut(p.offsets[expert], p.m) : before,
            exists ? cut(p.offsets[expert + 1], p.m) : before};
  __syncwarp();
  if (__syncthreads_and(before <= rows.begin && rows.begin <= rows.end)) return rows;
  uint32_t begin[1] = {rows.begin}, highest[1];
  scan<kThreads, Max>(scratch.highest, begin, highest);
  rows.begin = max(begin[0], before);
  rows.end = max(rows.end, rows.begin);
  before = max(highest[0], before);
  return rows;
}

// An expert's tiles, `count` of them from number `first` of the table on.
struct ExpertTiles {
  uint32_t expert, begin, end, padded_begin, first, count;
};

DUALGEMM_DEVICE void write_tile(GroupTile* table, const ExpertTiles& of, uint32_t number,
                                uint32_t tile_m) {
  const uint32_t offset = number * tile_m, begin = of.begin + offset;
  table[of.first + number] = {of.expert, number + 1 == of.count, begin, min(begin + tile_m, of.end),
                              of.padded_begin + offset};
}

// By whole warps: the tiles of each lane's expert.
template <uint32_t kOwn>
DUALGEMM_DEVICE void write_tiles(GroupTile* table, const ExpertTiles& own, uint32_t tile_m) {
#pragma unroll
  for (uint32_t number = 0; number < kOwn; ++number) {
    if (own.count > number) write_tile(table, own, number, tile_m);
  }
#pragma unroll 1
  for (uint32_t left = __ballot_sync(kWholeWarp, own.count > kOwn); left != 0; left &= left - 1) {
    const int lane = __ffs(static_cast<int>(left)) - 1;
    const ExpertTiles of{
        __shfl_sync(kWholeWarp, own.expert, lane), __shfl_sync(kWholeWarp, own.begin, lane),
        __shfl_sync(kWholeWarp, own.end, lane),    __shfl_sync(kWholeWarp, own.padded_begin, lane),
        __shfl_sync(kWholeWarp, own.first, lane),  __shfl_sync(kWholeWarp, own.count, lane)};
#pragma unroll 1
    for (uint32_t number = kOwn + threadIdx.x % 32; number < of.count; number += 32)
      write_tile(table, of, number, tile_m);
  }
  __syncwarp();
}

template <int kThreads, uint32_t kOwn>
DUALGEMM_DEVICE uint32_t tiles_of_experts(const GroupRows& p, GroupTilesScratch& scratch,
                                          GroupTile* table) {
  uint32_t highest = 0, tiles = 0, padded = 0;  // of the chunks before
#pragma unroll 1
  for (uint32_t first = 0;; first += kThreads) {
    const uint32_t expert = first + threadIdx.x;
    const Rows rows = rows_of_expert<kThreads>(p, expert, scratch, highest);
    const uint32_t count = rows.end - rows.begin;
    const uint32_t own[2] = {
        quotient(count + p.tile_m.value - 1, p.tile_m),
        p.offsets == nullptr ? 0 : (count + kScaleRows - 1) / kScaleRows * kScaleRows};
    uint32_t through[2] = {own[0], own[1]}, all[2];
    scan<kThreads, Add>(scratch.sums, through, all);
    write_tiles<kOwn>(table,
                      {expert, rows.begin, rows.end, padded + through[1] - own[1],
                       tiles + through[0] - own[0], own[0]},
                      p.tile_m.value);
    tiles += all[0], padded += all[1];
    if (p.l - first <= kThreads) return tiles;
    __syncthreads();  // the scratch has been read
  }
}

constexpr uint32_t kNobody = ~0u;

// Whose row it is.
DUALGEMM_DEVICE uint32_t owner_of_row(const GroupRows& p, uint32_t row) {
  if (row >= p.m) return kNobody;
  const auto expert = static_cast<uint32_t>(p.row_experts[row]);
  return expert < p.l ? expert : kNobody;
}

// A run of rows of one expert is cut into tiles; the thread of a tile's first row writes all but
// its end, that of its last row the end.
template <int kThreads>
DUALGEMM_DEVICE uint32_t tiles_of_rows(const GroupRows& p, GroupTilesScratch& scratch,
                                       GroupTile* table) {
  uint32_t run = 0, tiles = 0;  // where the run begins that the chunk before ends in; its tiles
#pragma unroll 1
  for (uint32_t first = 0; first < p.m; first += kThreads) {
    const uint32_t row = first + threadIdx.x, expert = owner_of_row(p, row);
    const bool begins = row == 0 || owner_of_row(p, row - 1) != expert;
    uint32_t own_run[1] = {begins ? row : 0}, last_run[1];
    scan<kThreads, Max>(scratch.highest, own_run, last_run);
    const uint32_t in_run = row - max(own_run[0], run);
    const uint32_t in_tile = in_run - quotient(in_run, p.tile_m) * p.tile_m.value;
    const bool exists = expert != kNobody, opens = exists && in_tile == 0;
    uint32_t through[1] = {opens ? 1u : 0u}, all[1];
    scan<kThreads, Add>(scratch.sums, through, all);
    through[0] += tiles;
    if (opens) {
      GroupTile& tile = table[through[0] - 1];
      tile.expert = expert, tile.last = 0;
      tile.begin = tile.padded_begin = row;
    }
    const bool closes =
        exists && (in_tile + 1 == p.tile_m.value || owner_of_row(p, row + 1) != expert);
    if (closes) table[through[0] - 1].end = row + 1;
    run = max(last_run[0], run), tiles += all[0];
    sync_cta();  // the scratch has been read; the tiles are there
  }
  if (threadIdx.x == 0 && tiles > 0) table[tiles - 1].last = 1;
  return tiles;
}

}  // namespace group_tiles

// By all kThreads threads of the CTA: writes the tiles from table[0] on and returns how many there
// are. Other threads than the writing one see them after a barrier. kOwn: tiles that an expert
// usually has at the most.
template <int kThreads, uint32_t kOwn>
DUALGEMM_DEVICE uint32_t make_group_tiles(const GroupRows& rows, GroupTilesScratch& scratch,
                                          GroupTile* table) {
  return rows.row_experts == nullptr
             ? group_tiles::tiles_of_experts<kThreads, kOwn>(rows, scratch, table)
             : group_tiles::tiles_of_rows<kThreads>(rows, scratch, table);
}

}  // namespace dualgemm::cuda
