// Brings NVFP4 weights into units of codes and of scales. Done once for weights that are used
// often: it reads bytes one at a time where they lie so, and is not tuned.
#include <algorithm>

#include "cuda/kernels/blackwell/extents.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/common/nvfp4_source.hpp"
#include "cuda/kernels/common/source.cuh"

namespace dualgemm::cuda::blackwell {
namespace {

using core::round_up;

struct PackParams {
  Nvfp4Source sources[2];  // Gate, Up
  SourceExtent extent;     // of each
  uint8_t* out;
  int64_t batch_stride;
  int64_t k_tiles, units;
};

constexpr int kBlocks = kTileK / 16;                   // of a row in a k-tile
constexpr int kPackThreads = 2 * kUnitCols * kBlocks;  // a 16-block each, of a unit's k-tile
constexpr int kChunkBytes = 16;                        // what the swizzle moves: two 16-blocks
constexpr int64_t kMaxPackCtas = 65535;

int64_t k_tiles_of(const Problem& p) { return ceil_div(p.k, kTileK); }
int64_t units_of(const Problem& p) { return ceil_div(p.n, kUnitCols); }

// Rank 4: (`part_bytes` of a unit in words of 8, units, k-tiles, batches).
TensorView view_of_units(const Problem& p, const char* name, const uint8_t* address,
                         int64_t part_bytes, int64_t unit_bytes, int64_t box_units) {
  constexpr int64_t kWordBytes = 8;
  const auto words = static_cast<uint64_t>(part_bytes / kWordBytes);
  return {.name = name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT64,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
          .rank = 4,
          .address = address,
          .dims = {words, static_cast<uint64_t>(units_of(p)), static_cast<uint64_t>(k_tiles_of(p)),
                   static_cast<uint64_t>(p.l)},
          .stride_bytes = {static_cast<uint64_t>(unit_bytes),
                           static_cast<uint64_t>(units_of(p) * kUnitBytes),
                           static_cast<uint64_t>(packed_batch_stride(p))},
          .box = {static_cast<uint32_t>(words), static_cast<uint32_t>(box_units), 1, 1}};
}

// Behind the codes of all units of a k-tile.
const uint8_t* scales_of(const Problem& p, const uint8_t* packed) {
  return packed + units_of(p) * static_cast<int64_t>(sizeof(UnitCodes));
}

}  // namespace

// A CTA a k-tile of a unit at a time, a thread one 16-block.
extern "C" __global__ void __launch_bounds__(kPackThreads)
    dual_gemm_sm100a_pair_pack_weights(const __grid_constant__ PackParams p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int block = thread % kBlocks, row = thread / kBlocks % kUnitCols;
  const int matrix = thread / (kBlocks * kUnitCols);
  const int64_t per_batch = p.k_tiles * p.units;
  for (int64_t i = blockIdx.x; i < p.extent.batches * per_batch; i += gridDim.x) {
    const int64_t batch = i / per_batch, k_tile = i % per_batch / p.units, unit = i % p.units;
    const int64_t k = k_tile * kTileK + block * 16;
    const RawBlock raw =
        load_block(p.sources[matrix], p.extent, {batch, unit * kUnitCols + row}, k);
    uint8_t* const stage = p.out + batch * p.batch_stride + k_tile * p.units * kUnitBytes;
    auto& codes = reinterpret_cast<UnitCodes*>(stage)[unit].rows[matrix][row];
    auto& scales = reinterpret_cast<UnitScales*>(stage + p.units * sizeof(UnitCodes))[unit];
    const int chunk = block / 2 ^ row;
    *reinterpret_cast<uint2*>(&codes[chunk * kChunkBytes + block % 2 * (kChunkBytes / 2)]) =
        make_uint2(raw.codes[0], raw.codes[1]);
    scales.rows[matrix][row][block] = raw.scale;
  }
}

int64_t packed_batch_bytes(const Problem& p) { return k_tiles_of(p) * units_of(p) * kUnitBytes; }

int64_t packed_batch_stride(const Problem& p) {
  constexpr int64_t kMultiple = 256;
  return round_up(kPreparedHeaderBytes + packed_batch_bytes(p), kMultiple);
}

int64_t packed_bytes(const Problem& p) { return p.l * packed_batch_stride(p); }

TensorView unit_codes_view(const Problem& p, const uint8_t* packed, int64_t tile_n) {
  return view_of_units(p, "prepared weights", packed, sizeof(UnitCodes), sizeof(UnitCodes),
                       tile_n / kPairCtas / kUnitCols);
}

TensorView unit_scales_view(const Problem& p, const uint8_t* packed, int64_t tile_n) {
  return view_of_units(p, "prepared scales", scales_of(p, packed), sizeof(UnitScales),
                       sizeof(UnitScales), tile_n / kPairCtas / kUnitCols);
}

Status encode_weights(const Problem& p, const uint8_t* packed, int64_t cols,
                      EncodeTiled encode_tiled, const WeightMaps& maps) {
  const auto encode_one = [&](const char* name, const uint8_t* first, int64_t unit_bytes,
                              TensorMap* map) {
    return encode(view_of_units(p, name, first, unit_bytes / 2, unit_bytes, cols / kUnitCols),
                  encode_tiled, map);
  };
  constexpr int64_t kCodes = sizeof(UnitCodes), kScales = sizeof(UnitScales);
  const uint8_t* const scales = scales_of(p, packed);
  DUALGEMM_TRY(encode_one("prepared gate", packed, kCodes, maps.gate));
  DUALGEMM_TRY(encode_one("prepared up", packed + kCodes / 2, kCodes, maps.up));
  DUALGEMM_TRY(encode_one("prepared gate_scales", scales, kScales, maps.sf_gate));
  return encode_one("prepared up_scales", scales + kScales / 2, kScales, maps.sf_up);
}

KernelLaunch pack_weights_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                 uint8_t* out) {
  const Problem& p = problem.problem;
  PackParams params{.sources = {nvfp4_source(problem.gate, buffers.gate, buffers.gate_scales),
                                nvfp4_source(problem.up, buffers.up, buffers.up_scales)},
                    .extent = {.rows = p.n, .out_rows = p.n, .batches = p.l, .cols = p.k},
                    .out = out,
                    .batch_stride = packed_batch_stride(p),
                    .k_tiles = k_tiles_of(p),
                    .units = units_of(p)};
  KernelLaunch launch{
      .kernel = {"pack_weights_sm100a", "dual_gemm_sm100a_pair_pack_weights",
                 reinterpret_cast<const void*>(&dual_gemm_sm100a_pair_pack_weights)},
      .threads = kPackThreads};
  launch.ctas = static_cast<uint32_t>(std::min(p.l * k_tiles_of(p) * units_of(p), kMaxPackCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::blackwell
