// What a warp does with prepared weights. Part of dual_gemm.cuh.
#pragma once

#include "cuda/kernels/sm90a_skinny/multiply.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// The chunks of 64 along k that a warp does of every tile: `count` from `begin` on. Neighbours:
// their parts of a share lines. Finishers have none.
struct ChunkRange {
  uint32_t begin, count;
};

template <Config kCfg>
DUALGEMM_DEVICE ChunkRange chunks_of_warp(const Params& params, uint32_t warp) {
  constexpr uint32_t kWarpsOfCta = Budget<kCfg>::kMultipliers;
  if (warp >= kWarpsOfCta) return {0, 0};
  const uint32_t begin = warp * params.chunks / kWarpsOfCta;
  return {begin, (warp + 1) * params.chunks / kWarpsOfCta - begin};
}

// Initialises the barriers of all warps' rings, by one thread of a finisher, before a
// __syncthreads(): the other warps make addresses in the meantime, and where warps initialise
// mbarriers at the same time synccheck loses count of them.
template <Config kCfg>
DUALGEMM_DEVICE void init_barriers(SharedStorage<kCfg>& smem) {
  if (threadIdx.x != 32 * Budget<kCfg>::kMultipliers) return;
#pragma unroll
  for (int warp = 0; warp < Budget<kCfg>::kMultipliers; ++warp) {
#pragma unroll
    for (int slot = 0; slot < Budget<kCfg>::kSlots; ++slot)
      ptx::mbarrier_init(&smem.full[warp][slot], 1);
  }
  if constexpr (plans_tiles(kCfg)) ptx::mbarrier_init(&smem.begun, 32 * Budget<kCfg>::kFinishers);
  if constexpr (kCfg.many) {
#pragma unroll
    for (int at = 0; at < Budget<kCfg>::kTilesInFlight; ++at) {
      ptx::mbarrier_init(&smem.left[at], 32 * Budget<kCfg>::kMultipliers);
      ptx::mbarrier_init(&smem.free[at], 32 * Budget<kCfg>::kFinishers);
    }
  }
  ptx::fence_mbarrier_init();
}

// The same object in shared memory, of the warp, at an address that the compiler has to keep. It
// made the address from a special register before each wait for a chunk (-0.2 to -0.4 us).
template <class T>
DUALGEMM_DEVICE T& at_kept_address(T& shared) {
  const uint32_t address = __shfl_sync(0xFFFFFFFFu, ptx::shared_address(&shared), 0);
  return *static_cast<T*>(__cvta_shared_to_generic(address));
}

// A warp's chunks of the CTA's tiles, copied ahead of their use. One lane asks for all units of the
// tile at once.
template <Config kCfg>
class ChunkRing {
 public:
  static constexpr int kSlots = Budget<kCfg>::kSlots;

  DUALGEMM_DEVICE ChunkRing(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp,
                            const ChunkRange& range, const Tiles<kCfg>& tiles)
      : smem_(smem),
        chunks_(at_kept_address(smem.rings[warp].chunks)),
        full_(at_kept_address(smem.full[warp])),
        policy_(ptx::createpolicy_evict_first()),
        range_(range),
        tiles_(tiles),
        tile_(range.count > 0 ? blockIdx.x : tiles.count(params)),
        left_(range.count) {
    if (tile_ < tiles_.count(params)) find_tile(params);
  }

  // The first copies, slots `first` to `end` - 1; init_barriers() has been called.
  DUALGEMM_DEVICE void fill(const Params& params, uint32_t first, uint32_t end) {
#pragma unroll
    for (uint32_t slot = first; slot < end; ++slot) copy_chunk(params, slot);
  }

  // The chunk that comes next, when it is there.
  DUALGEMM_DEVICE const ChunkStorage<kCfg>& await() const {
    ptx::mbarrier_wait_parity(&full_[slot_], parity_);
    return chunks_[slot_];
  }

  // After a __syncwarp() behind the chunk's last use: asks for another one.
  DUALGEMM_DEVICE void refill(const Params& params) {
    copy_chunk(params, slot_);
    if (++slot_ == kSlots) slot_ = 0, parity_ ^= 1;
  }

  DUALGEMM_DEVICE const Tiles<kCfg>& tiles() const { return tiles_; }

 private:
  // Nothing after the last tile.
  DUALGEMM_DEVICE void copy_chunk(const Params& params, uint32_t slot) {
    if (tile_ >= tiles_.count(params)) return;
    if constexpr (plans_tiles(kCfg)) {
      if (left_ == range_.count && order_ > 0) {
        const PlannedTile& tile = smem_.planned[order_ % (2 * kPlanned)];
        units_ = tile.units + range_.begin * params.packed.chunk_bytes;
      }
    }
    if (threadIdx.x % 32 == 0) {
      const uint32_t bytes = has_narrow_tiles(kCfg) ? bytes_ : sizeof(chunks_[slot].units);
      ptx::mbarrier_arrive_expect_tx(&full_[slot], bytes);
      ptx::cp_async_bulk(chunks_[slot].units, units_, bytes, &full_[slot], policy_);
    }
    units_ += params.packed.chunk_bytes;
    if (--left_ > 0) return;
    left_ = range_.count;
    tile_ += gridDim.x, ++order_;
    if (!plans_tiles(kCfg) && tile_ < tiles_.count(params)) find_tile(params);
  }

  DUALGEMM_DEVICE void find_tile(const Params& params) {
    const Tile tile = tiles_.locate(params, tile_);
    const uint32_t first = tile.n_begin / kUnitCols;
    if constexpr (has_narrow_tiles(kCfg)) bytes_ = tile.units * kUnitBytes;
    units_ = params.packed.unit(tile.batch, range_.begin, first);
  }

  SharedStorage<kCfg>& smem_;
  ChunkStorage<kCfg> (&chunks_)[kSlots];
  ptx::Barrier (&full_)[kSlots];
  ptx::CachePolicy policy_;
  ChunkRange range_;
  uint32_t slot_ = 0, parity_ = 0;  // that is used next
  Tiles<kCfg> tiles_;
  uint32_t tile_, left_;  // that is asked for next; chunks of it that have not been
  uint32_t order_ = 0;    // of that tile among the CTA's, if it plans tiles
  const uint8_t* units_;  // that are asked for next
  uint32_t bytes_;        // of them, if tiles differ
};

// A thread's part of a chunk of its row of A, lane / 4: the 16 neighbours 16q .. 16q+15, q = lane %
// 4, as of the weights.
template <AType kType>
struct RawChunk {
  uint4 halves[2];
};
template <>
struct RawChunk<AType::kE2M1> {
  uint2 codes;
  uint32_t scale;
};

// Loads A's chunks in the order of the warp's, of row lane / 4 of each group. Loads as of
// load_row(), and always some: a row that does not exist is the last one (its sums are not used),
// after the last chunk comes the last one again, or, if `kWraps`, the first one, which the next
// tile begins with. With a branch around them the compiler copied a loaded word at once, and so
// waited for a before it asked for weights: 12.3 instead of 11.7 us at (4096, 7168), M = 1.
template <Config kCfg>
struct ChunkCursor {
  static constexpr AType kType = kCfg.a_type;
  static constexpr int kGroups = Budget<kCfg>::kGroups;
  static constexpr bool kWraps = kCfg.many && !kCfg.grouped;
  static constexpr int kChunkBytes = kType == AType::kE2M1 ? kChunkK / 2 : 2 * kChunkK;
  const uint8_t* data[kGroups];  // of the first chunk
  const uint8_t* scales[kGroups];
  uint32_t next, last;  // chunks, counted from the warp's first

  DUALGEMM_DEVICE void find(const Params& params, const Tiles<kCfg>& tiles, const Tile& tile,
                            const ChunkRange& range) {
    const uint32_t lane = threadIdx.x % 32, q = lane % 4;
    next = 0;
    last = max(range.count, 1) - 1;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const uint32_t row = min(group * kGroupRows + lane / 4, tile.rows - 1);
      begin_at(params, group, row_of_a<kCfg>(params, tiles, tile, row), range, q);
    }
  }

  DUALGEMM_DEVICE void find(const Params& params, const PlannedTile& tile,
                            const ChunkRange& range) {
    const uint32_t row = threadIdx.x % 32 / 4;
    next = 0;
    begin_at(params, 0, {tile.data[row], tile.scales[row]}, range, threadIdx.x % 4);
  }

  DUALGEMM_DEVICE void begin_at(const Params& params, int group, const RowCursor& at,
                                const ChunkRange& range, uint32_t q) {
    data[group] =
        at.data + static_cast<uint64_t>(range.begin) * kChunkBytes + q * (kChunkBytes / 4);
    if constexpr (kType == AType::kE2M1)
      scales[group] = at.scales + range.begin * scale_step(params.a) + q;
  }

  DUALGEMM_DEVICE RawChunk<kType> load(const Params& params, int group) const {
    RawChunk<kType> raw;
    const uint8_t* const from = data[group] + next * kChunkBytes;
    if constexpr (kType == AType::kE2M1) {
      raw.codes = ptx::ld_global(reinterpret_cast<const uint2*>(from));
      raw.scale = ptx::ld_global(scales[group] + next * scale_step(params.a));
    } else {
      raw.halves[0] = ptx::ld_global(reinterpret_cast<const uint4*>(from));
      raw.halves[1] = ptx::ld_global(reinterpret_cast<const uint4*>(from) + 1);
    }
    return raw;
  }

  DUALGEMM_DEVICE void advance() {
    next = kWraps ? (next == last ? 0 : next + 1) : min(next + 1, last);
  }
};

// b operands of a chunk's 4 steps: [step][half of k].
using ChunkSteps = uint32_t[4][2];

template <AType kType>
DUALGEMM_DEVICE void decode_chunk(const Params& params, const RawChunk<kType>& raw,
                                  ChunkSteps& steps) {
  if constexpr (kType == AType::kE2M1) {
    uint32_t scales[2];
    expand_two<false>(raw.scale, scales);
    decode_steps(params, raw.codes.x, scales[0], &steps[0]);
    decode_steps(params, raw.codes.y, scales[0], &steps[2]);
  } else {
#pragma unroll
    for (int i = 0; i < 2; ++i) pair_halves(raw.halves[i], &steps[2 * i]);
  }
}

// A lane's part of a chunk of one unit.
template <Config kCfg>
struct PackedLane {
  uint4 words;         // Gate, Gate, Up, Up
  uint32_t scales[2];  // of Gate, Up; expanded

  DUALGEMM_DEVICE void load(const PackedUnit& unit) {
    const uint32_t lane = threadIdx.x % 32;
    words = *reinterpret_cast<const uint4*>(unit.codes[lane]);
    expand_two<kCfg.a_type == AType::kBF16>(*reinterpret_cast<const uint16_t*>(unit.scales[lane]),
                                            scales);
  }

  // acc += the products of half of the chunk.
  DUALGEMM_DEVICE void multiply(const Params& params, int half,
                                const ChunkSteps (&steps)[Budget<kCfg>::kGroups],
                                float (*acc)[4]) const {
    multiply_word<kCfg>(params, half == 0 ? words.x : words.y, half == 0 ? words.z : words.w,
                        scales[0], scales[1], steps, 2 * half, acc);
  }
};

// acc += the products of a chunk. With two units at a time the words come first, and half of each
// is multiplied before the other half of the first: so chains of mma overlap. Two groups of rows
// are two chains already.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_chunk(const Params& params, const ChunkStorage<kCfg>& chunk,
                                    const ChunkSteps (&steps)[Budget<kCfg>::kGroups],
                                    Accumulators<kCfg>& acc) {
  constexpr int kAtOnce = kCfg.a_type == AType::kBF16                         ? kCfg.units
                          : kCfg.units % 2 == 0 && Budget<kCfg>::kGroups == 1 ? 2
                                                                              : 1;
#pragma unroll
  for (int first = 0; first < kCfg.units; first += kAtOnce) {
    PackedLane<kCfg> lanes[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) lanes[i].load(chunk.units[first + i]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        lanes[i].multiply(params, half, steps, &acc[(first + i) * Budget<kCfg>::kGroups]);
    }
  }
}

// The same of a narrow tile: as many units as it has, one after the other.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_narrow_chunk(const Params& params, const ChunkStorage<kCfg>& chunk,
                                           uint32_t units,
                                           const ChunkSteps (&steps)[Budget<kCfg>::kGroups],
                                           Accumulators<kCfg>& acc) {
#pragma unroll
  for (int unit = 0; unit + 1 < kCfg.units; ++unit) {
    if (unit >= units) break;
    PackedLane<kCfg> lane;
    lane.load(chunk.units[unit]);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      lane.multiply(params, half, steps, &acc[unit * Budget<kCfg>::kGroups]);
  }
}

// The same as CopyingWarp, for prepared weights; does nothing in a warp that only finishes tiles.
template <Config kCfg>
class PackedWarp {
 public:
  DUALGEMM_DEVICE PackedWarp(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp,
                             const Tiles<kCfg>& tiles)
      : smem_(smem),
        range_(chunks_of_warp<kCfg>(params, warp)),
        ring_(params, smem, min(warp, Budget<kCfg>::kMultipliers - 1), range_, tiles) {}

  // Prepared weights are complete before any call can use them (packed_weights.hpp), whatever the
  // grid before this one does: half of the first chunks are asked for at once, before all else. A
  // warp with fewer chunks of a tile than that waits for the plan of the next tile.
  DUALGEMM_DEVICE void begin_early(const Params& params) {
    if (plans_tiles(kCfg) && range_.count == 0) return;
    ring_.fill(params, 0, 1);
    if (range_.count < kEarly) await_plan();
    ring_.fill(params, 1, kEarly);
    find_a(params, ring_.tiles().locate(params, blockIdx.x));
  }

  DUALGEMM_DEVICE void begin(const Params& params) {
    if (range_.count == 0) return;
    load_a(params);
    if (range_.count < ChunkRing<kCfg>::kSlots) await_plan();
    ring_.fill(params, kEarly, ChunkRing<kCfg>::kSlots);
  }

  // Where CTAs have many tiles the first chunk of A of the tile that comes then is asked for with
  // the last one of this tile's: with groups that of the CTA's tile number `next`, in one batch
  // that of every tile. With groups `tile` is not used.
  DUALGEMM_DEVICE void multiply_tile(const Params& params, const Tile& tile,
                                     [[maybe_unused]] uint32_t next, bool first,
                                     Accumulators<kCfg>& acc) {
    if (range_.count == 0) return;
    if (first) await_plan();
    const bool has_chunk = ChunkCursor<kCfg>::kWraps && params.tiles == params.tiles_n.value;
    if (!kCfg.grouped && !first && !has_chunk) {
      find_a(params, tile);
      load_a(params);
    }
    if constexpr (has_narrow_tiles(kCfg)) {
      if (tile.units != kCfg.units) return multiply_chunks<true>(params, tile, next, acc);
    }
    multiply_chunks<false>(params, tile, next, acc);
  }

 private:
  static constexpr int kEarly = Budget<kCfg>::kSlots / 2;
  static constexpr int kGroups = Budget<kCfg>::kGroups;

  // Narrow tiles have a loop of their own: in the same one they cost every tile 4 %.
  template <bool kNarrow>
  DUALGEMM_DEVICE void multiply_chunks(const Params& params, const Tile& tile,
                                       [[maybe_unused]] uint32_t next, Accumulators<kCfg>& acc) {
#pragma unroll 1
    for (uint32_t i = 0; i < range_.count; ++i) {
      ChunkSteps steps[kGroups];
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        decode_chunk<kCfg.a_type>(params, raw_[group], steps[group]);
      if constexpr (plans_tiles(kCfg)) {
        if (i + 1 == range_.count)
          cursor_.find(params, smem_.planned[next % (2 * kPlanned)], range_);
      }
      load_a(params);
      if constexpr (kNarrow) {
        multiply_narrow_chunk<kCfg>(params, ring_.await(), tile.units, steps, acc);
      } else {
        multiply_chunk<kCfg>(params, ring_.await(), steps, acc);
      }
      __syncwarp();  // all have used their words
      ring_.refill(params);
    }
  }

  // Before the first look at it.
  DUALGEMM_DEVICE void await_plan() const {
    if constexpr (plans_tiles(kCfg)) ptx::mbarrier_wait_parity(&smem_.begun, 0);
  }

  DUALGEMM_DEVICE void find_a(const Params& params, const Tile& tile) {
    cursor_.find(params, ring_.tiles(), tile, range_);
  }

  DUALGEMM_DEVICE void load_a(const Params& params) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) raw_[group] = cursor_.load(params, group);
    cursor_.advance();
  }

  SharedStorage<kCfg>& smem_;
  ChunkRange range_;
  ChunkRing<kCfg> ring_;
  ChunkCursor<kCfg> cursor_;
  RawChunk<kCfg.a_type> raw_[kGroups];  // of the chunk that comes next
};

}  // namespace dualgemm::cuda::sm90a_skinny
