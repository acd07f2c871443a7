// What can be chosen about the sm_80 kernel, and what follows from the choice. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda::sm80 {

// What one launch computes. Every element of a product is summed in the same order by all of them,
// if they have the same warps_k.
enum class Pass : int32_t {
  kFused = 0,       // D, with Gate and Up in one loop over k: mma's 16 rows are 8 of each
  kSequential = 1,  // D, first all of Gate, then all of Up, 16 rows at a time
  kGate = 2,        // R1 = A * Gate^T, in FP32: mma's 16 rows are of one matrix
  kUp = 3,          // D, from R1 and Up, likewise
};
// Whether a launch makes one product alone: kernels of kFused for weights as they lie do, as Params
// says.
DUALGEMM_HOST_DEVICE constexpr bool makes_one_product(Pass pass) {
  return pass == Pass::kGate || pass == Pass::kUp;
}

// A kernel takes all types of A: each has loops over k of its own, the rest is the same.
struct Config {
  bool prepared;  // weights: PackedUnit
  int groups;     // of 8 rows of A, of each warp and of the tile
  int units;      // of 16 rows of weights, of a warp; a multiple of 2
  int warps_n;    // warps side by side along n, which share rows of A in shared memory
  int warps_k;    // warps that divide the k of a tile, if warps_n is 1
  Pass pass;
  bool operator==(const Config&) const = default;
};

inline constexpr int kMaxTileM = 128;
inline constexpr int kMmaRows = 16;  // of weights
inline constexpr int kHalfCols = kMmaRows / 2;
inline constexpr int kGroupRows = 8;                            // rows of A per mma: its N
inline constexpr int kChunkK = kUnitK;                          // elements along k of a stage
inline constexpr int kChunkK16 = kChunkK / 16;                  // the same in scales
inline constexpr int kRowBytes = 2 * kChunkK;                   // of A in a stage, 16 bits each
inline constexpr int kPieces = kRowBytes / 16;                  // of 16 bytes of such a row
inline constexpr int kCodeBytes = sizeof(PackedUnit::codes);    // of a unit in a stage
inline constexpr int kScaleBytes = sizeof(PackedUnit::scales);  // likewise
inline constexpr int kItemFloats = 8;  // sums of a lane that are finished together
// A word of A: eight numbers.
DUALGEMM_HOST_DEVICE constexpr uint32_t word_bytes_of(AType type) {
  return type == AType::kE2M1 ? 4 : 16;
}

// What a decoded number must be multiplied with (decode.cuh), and a sum of products of a type of A.
DUALGEMM_HOST_DEVICE constexpr float decoded_unit(bool bf16) { return bf16 ? 0x1p8f : 0x1p7f; }
DUALGEMM_HOST_DEVICE constexpr float sum_unit_of(AType type) {
  return decoded_unit(type == AType::kBF16) * (type == AType::kE2M1 ? decoded_unit(false) : 1.0f);
}

// Units that are multiplied in one loop over k.
DUALGEMM_HOST_DEVICE constexpr int loop_units_of(const Config& config) {
  return config.pass == Pass::kSequential ? config.units / 2 : config.units;
}
// Whether warps stand side by side; else each has all columns of the tile and a part of its k.
DUALGEMM_HOST_DEVICE constexpr bool is_wide(const Config& config) { return config.warps_n > 1; }
DUALGEMM_HOST_DEVICE constexpr int tile_m_of(const Config& config) {
  return config.groups * kGroupRows;
}
// Columns of D of a unit.
DUALGEMM_HOST_DEVICE constexpr int unit_cols_of(Pass pass) {
  return pass == Pass::kFused ? kHalfCols : kMmaRows;
}
// The same of a warp.
DUALGEMM_HOST_DEVICE constexpr int warp_cols_of(const Config& config) {
  return loop_units_of(config) * unit_cols_of(config.pass);
}
DUALGEMM_HOST_DEVICE constexpr int tile_n_of(const Config& config) {
  return config.warps_n * warp_cols_of(config);
}
// Whether prepared weights have units for all columns of all tiles.
DUALGEMM_HOST_DEVICE constexpr bool fills_tiles(const Config& config) {
  return tile_n_of(config) <= kUnitMultiple * kUnitCols;
}
DUALGEMM_HOST_DEVICE constexpr int warps_of(const Config& config) {
  return config.warps_n * config.warps_k;
}
DUALGEMM_HOST_DEVICE constexpr int threads_of(const Config& config) {
  return 32 * warps_of(config);
}
// Second number of __launch_bounds__: as many CTAs as 64 K registers are to hold.
DUALGEMM_HOST_DEVICE constexpr int min_ctas_of(const Config& config) {
  const bool many = is_wide(config) || (config.groups > 2 && !config.prepared);
  const int registers = many                                    ? 255
                        : config.groups == 1 && config.prepared ? 80
                        : config.groups <= 2                    ? 128
                                                                : 168;
  const int ctas = 65536 / (registers * threads_of(config));
  return ctas > 0 ? ctas : 1;
}

// Whether registers are so few that what is found anew instead of kept decides whether some are
// spilled: 8 to 50 bytes were, with all types of A in one kernel.
DUALGEMM_HOST_DEVICE constexpr bool lacks_registers(const Config& config) {
  return config.groups == 4 && min_ctas_of(config) == 3;
}

// Whether an A whose rows and k suit whole chunks (Params::a_plain) has a loop over k of its own,
// which takes a third more time to compile.
DUALGEMM_HOST_DEVICE constexpr bool has_plain_loop(const Config& config) { return config.prepared; }

// Whether a CTA that takes turns asks for the weights of its next tile before it makes the outputs
// of the one at hand. For weights as they lie that takes more registers than there are: with 128
// rows 4 to 84 bytes were spilled.
DUALGEMM_HOST_DEVICE constexpr bool begins_next_tile(const Config& config) {
  return is_wide(config) && config.pass == Pass::kFused && config.prepared;
}

// Whether a lane keeps where its weights as they lie are; else it finds them anew for each chunk,
// 60 instructions of 700, as 128 rows leave no registers: 4 to 130 bytes were spilled.
DUALGEMM_HOST_DEVICE constexpr bool keeps_cursor(const Config& config) {
  return tile_m_of(config) < kMaxTileM;
}

// A warp's stage of weights as they lie, and the CTA's of rows of A.
DUALGEMM_HOST_DEVICE constexpr int weights_bytes_of(const Config& config) {
  return loop_units_of(config) * (kCodeBytes + kScaleBytes);
}
DUALGEMM_HOST_DEVICE constexpr int rows_bytes_of(const Config& config) {
  return tile_m_of(config) * kRowBytes;
}
// Stages of a warp's weights. Tiles with few rows have two: with three or four (4096, 7168) took 4
// to 7 % longer (H200, M = 1, 8, 16), as a warp that asks for copies stops while many are on the
// way.
DUALGEMM_HOST_DEVICE constexpr int stages_of(const Config& config) {
  return is_wide(config) ? 3 : 2;
}
inline constexpr int kRowStages = 4;
// Groups of rows whose words a wide tile's warp holds at a time. Three warps a scheduler have
// registers for fewer.
DUALGEMM_HOST_DEVICE constexpr int at_once_of(const Config& config) {
  if (config.warps_n > 8 && config.groups % 4 == 0) return 4;
  return config.groups % 8 == 0 ? 8 : 6;
}
// What the sums of an item are.
enum class ItemKind : int32_t {
  kBoth,        // of Gate and of Up, of two units of kFused
  kSequential,  // the same of a unit of Gate and one of Up
  kAny,         // kBoth, or of one product, as Params::pass says
};
DUALGEMM_HOST_DEVICE constexpr ItemKind item_kind_of(const Config& config) {
  if (config.pass == Pass::kSequential) return ItemKind::kSequential;
  return config.prepared ? ItemKind::kBoth : ItemKind::kAny;
}
// Items that a warp's sums are; each is finished by one of the warps that divide k.
DUALGEMM_HOST_DEVICE constexpr int items_of(const Config& config) {
  return config.units / 2 * config.groups;
}
inline constexpr int kItemBytes = kItemFloats * 32 * 4;
// Those of a warp that are in shared memory at the same time: of wide tiles as many as the stages
// of rows have room for, as weights of the next tile are on their way into the others.
DUALGEMM_HOST_DEVICE constexpr int batch_items_of(const Config& config) {
  if (!is_wide(config)) return items_of(config);
  const int room = kRowStages * rows_bytes_of(config) / (config.warps_n * kItemBytes);
  return items_of(config) < room ? items_of(config) : room;
}
DUALGEMM_HOST_DEVICE constexpr int sums_bytes_of(const Config& config) {
  const int slots = is_wide(config) ? config.warps_n : config.warps_k - 1;
  return slots * batch_items_of(config) * kItemBytes;
}
// Wide tiles begin with a table of rows and a barrier; then stages, whose place sums take.
inline constexpr int kFrontBytes = 2 * 8 * kMaxTileM + kRowBytes;
DUALGEMM_HOST_DEVICE constexpr int smem_bytes_of(const Config& config) {
  const int weights = warps_of(config) * stages_of(config) * weights_bytes_of(config);
  const int stages = is_wide(config) ? kRowStages * rows_bytes_of(config) + weights : weights;
  const int most = stages > sums_bytes_of(config) ? stages : sums_bytes_of(config);
  return is_wide(config) ? kFrontBytes + most : most;
}
// What a CTA can have on every GPU from compute capability 8.0 on: CUDA C++ Programming Guide 13.0,
// "Compute Capabilities", table "Technical Specifications".
inline constexpr int kMaxSmemBytes = 99 << 10;

// What of a Config decides where its warps work.
struct TileShape {
  uint32_t tile_m, tile_n;
  uint32_t groups, warp_cols, warps_n;
};
DUALGEMM_HOST_DEVICE constexpr TileShape tile_shape_of(const Config& config) {
  return {static_cast<uint32_t>(tile_m_of(config)), static_cast<uint32_t>(tile_n_of(config)),
          static_cast<uint32_t>(config.groups), static_cast<uint32_t>(warp_cols_of(config)),
          static_cast<uint32_t>(config.warps_n)};
}

}  // namespace dualgemm::cuda::sm80
