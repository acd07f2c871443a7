// What the two kernels of a call get, as plain structs that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/divisor.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/device/row_index.hpp"
#include "cuda/kernels/hopper/shifts.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::cuda::sm90a {

// Decodes A to (l, k_tiles * 4, rows, 64) halves in the order of prepare.cu, zero from k on. Rows
// are those of the products, or, where the main kernel finds them by index, those of A.
struct PrepareParams {
  const uint8_t* a;       // any address that suits one element (kE2M1: one byte)
  const uint8_t* scales;  // kE2M1 only
  uint8_t* out;           // aligned to 16 bytes
  uint32_t* flags;        // num_flags words that become 0
  int64_t row_bytes, batch_bytes;
  int64_t scale_ld;  // linear: from row to row; 0: swizzled 128x4
  int64_t scale_batch_bytes;
  uint32_t k;
  Divisor m, k_tiles;
  uint32_t row_pieces;  // l * m * k_tiles: below 2^31; with groups the most there can be
  // Without groups: a CTA has one k-tile of rows_of_warp rows for each of its warps, and m rows
  // have row_blocks of such parts. prepare_launch() sets both.
  uint32_t rows_of_warp;
  Divisor row_blocks;
  uint32_t num_flags;
  bool packed_order;  // of k: as PackedUnit has it
  AType type;
  GroupTiles groups;   // whose rows alone are decoded; none: all
  Divisor tile_m;      // of the groups' tiles
  RowIndex row_index;  // without `groups`
};

// Which k-tiles of which tiles each CTA does. Tiles 0 .. whole_tiles-1 are done whole, tile t
// by CTA t mod ctas; the k-tiles of the others, numbered in order, are dealt out in contiguous
// ranges, the first `longer_ranges` of them of one k-tile more. Or, `paired`: CTAs 2t and 2t+1 are
// a cluster, do one half of tile t's k-tiles each and exchange their sums; there are no other
// tiles.
struct Schedule {
  uint32_t ctas;
  Divisor k_tiles;
  uint32_t whole_tiles;
  uint32_t shared_k_tiles;  // (tiles - whole_tiles) * k_tiles; paired: 0
  uint32_t range_k_tiles, longer_ranges;
  bool paired;
};
static_assert(sizeof(Schedule) <= kScheduleBytes);

// Without pairs, to at most `most` CTAs: whole tiles where they keep nine in ten CTAs busy or where
// there is too little to share out; else the last one to two waves are shared out evenly. tiles *
// k_tiles below 2^31. On the host, and for groups, whose number of tiles only a GPU knows, there.
DUALGEMM_HOST_DEVICE constexpr Schedule deal_out(uint32_t tiles, const Divisor& k_tiles,
                                                 uint32_t most, bool whole_tiles_only) {
  const uint32_t waves = (tiles + most - 1) / most;
  const uint64_t places = static_cast<uint64_t>(waves) * most;
  const bool whole =
      whole_tiles_only || uint64_t{tiles} * 10 >= places * 9 || tiles * k_tiles.value < 2 * most;
  Schedule schedule{};
  schedule.k_tiles = k_tiles;
  schedule.whole_tiles = whole ? tiles : waves > 2 ? (waves - 2) * most : 0;
  schedule.ctas = whole && tiles < most ? tiles : most;
  schedule.shared_k_tiles = (tiles - schedule.whole_tiles) * k_tiles.value;
  if (whole) return schedule;
  schedule.range_k_tiles = schedule.shared_k_tiles / schedule.ctas;
  schedule.longer_ranges = schedule.shared_k_tiles % schedule.ctas;
  return schedule;
}

// The schedule of tiles without groups: two CTAs for each tile where seven in ten of them then have
// work, else as deal_out() says.
constexpr Schedule pair_or_deal_out(const Config& config, int64_t tiles, const Divisor& k_tiles,
                                    int64_t most, bool batch_invariant) {
  Schedule pairs{};
  pairs.k_tiles = k_tiles;
  pairs.paired = can_pair(config) && !batch_invariant && k_tiles.value >= 4 && 2 * tiles <= most &&
                 20 * tiles >= 7 * most;
  pairs.ctas = static_cast<uint32_t>(2 * tiles);
  return pairs.paired ? pairs
                      : deal_out(static_cast<uint32_t>(tiles), k_tiles, static_cast<uint32_t>(most),
                                 batch_invariant);
}

// Views; boxes are one stage of one CTA, what is outside a view is zero.
//   map_a                   (64, rows of A, 4 * k_tiles, l) halves, box (64, tile_m, subs, 1),
//                           swizzled
//   map_gate, map_up        (k/2, n, l) bytes, box (128, tile_n, 1), 128-byte swizzle
//   map_sf_gate, map_sf_up  linear: (k/16, n, l) bytes, box (16, tile_n, 1); swizzled 128x4:
//                           (256, ceil(k/64), ceil(n/128), l) of 16 bits, box (256, 4, 1, 1)
// Prepared weights have no views but `packed`.
// Every scale that belongs to k .. 256*k_tiles is zero: from the view's end by the TMA unit, and
// before it in memory.
struct Params {
  TensorMap map_a;
  TensorMap map_gate, map_up;
  TensorMap map_sf_gate, map_sf_up;
  PackedWeights packed;
  uint8_t* d;  // (l, m, n) outputs, aligned to one element (codes: to a byte)
  int64_t d_row_bytes, d_batch_bytes;
  Nvfp4Output nvfp4;                  // kE2M1
  const float* a_row_scale;           // [l*m], or null: 1
  const float* alpha_gate_per_batch;  // [l], or null: alpha_gate
  const float* alpha_up_per_batch;
  float* partials;  // for each CTA one tile of sums, 16-byte aligned
  uint32_t* flags;  // for each CTA: 1 when its partial sums are there; 0 at the start
  float alpha_gate, alpha_up;
  BiasParams bias;
  CombineParams combine;
  // Side by side only: the sums are those of Up alone, and D = act(R1) * sum with Gate's product R1
  // in FP32, (l, m, columns of D) without gaps; null: D is the sum.
  const float* r1;
  ActParams act;
  OutputType output;
  bool linear_scales;
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  Divisor tiles_m, tiles_n;   // tile ((batch * tiles_m) + tile_m) * tiles_n + tile_n
  Schedule schedule;
  // In instances for groups a tile's number is the table's * tiles_n + tile_n. Only ctas and
  // k_tiles of the schedule count then, the rest follows from the table on the device; tiles_m says
  // only whether an expert usually has several.
  GroupTiles groups;
  bool whole_tiles_only;
  // Decoded A of groups whose rows the kernel finds by row_index; else null, and map_a has them.
  const uint8_t* activations;
  RowIndex row_index;
  hopper::Shifts shifts;
};

// In sequential instances Params has the halves of Gate, this those of Up. Only whole tiles are
// dealt out, and `combine` is side by side.
struct SequentialParams : Params {
  TensorMap map_up_first, map_up_second;
  TensorMap map_sf_up_first, map_sf_up_second;
};

}  // namespace dualgemm::cuda::sm90a
