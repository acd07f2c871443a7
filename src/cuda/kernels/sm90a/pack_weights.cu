// Brings NVFP4 weights into the order of PackedUnit. Done once for weights that are used often: it
// reads bytes one at a time where they lie so, and is not tuned.
#include <algorithm>

#include "cuda/kernels/sm90a/extents.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a/packed_weights.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

struct PackSource {
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t row_bytes, batch_bytes;
  int64_t scale_ld;  // linear: from row to row; 0: swizzled 128x4
  int64_t scale_batch_bytes;
};

struct PackParams {
  PackSource sources[2];  // gate, up
  uint8_t* out;
  int64_t n, k;
  int64_t chunks, units, batches;
  bool bf16;
};

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 65535;

// A chunk of a unit.
struct UnitPlace {
  int64_t batch, chunk, unit;
};

__device__ uint32_t load_codes(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % 4 == 0) return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(from[i]) << (8 * i);
  return word;
}

__device__ uint8_t load_scale(const PackParams& p, const PackSource& source, int64_t batch,
                              int64_t row, int64_t col) {
  const uint8_t* const from = source.scales + batch * source.scale_batch_bytes;
  if (source.scale_ld != 0) return from[row * source.scale_ld + col];
  const int64_t block = row / 128 * ((p.k + 63) / 64) + col / 4;
  return from[block * kScaleBlockBytes + row % 32 * 16 + row % 128 / 32 * 4 + col % 4];
}

// What lane `lane` has of one matrix: a 16-block and its scale.
__device__ void pack_lane(const PackParams& p, const UnitPlace& at, int lane, int matrix,
                          PackedUnit& out) {
  const PackSource& source = p.sources[matrix];
  const int64_t row = at.unit * kUnitCols + lane / 4, k = at.chunk * kUnitK + lane % 4 * 16;
  const bool exists = row < p.n && k < p.k;
  for (int i = 0; i < 2; ++i) {
    uint32_t word = 0;
    if (exists) {
      word = load_codes(source.codes + at.batch * source.batch_bytes + row * source.row_bytes +
                        k / 2 + 4 * i);
    }
    out.codes[lane][matrix][i] = p.bf16 ? pack_word<true>(word) : pack_word<false>(word);
  }
  out.scales[lane][matrix] = exists ? load_scale(p, source, at.batch, row, k / 16) : 0;
}

PackSource source_of(const core::ResolvedMatrix& matrix, const void* codes, const uint8_t* scales) {
  return {.codes = static_cast<const uint8_t*>(codes),
          .scales = scales,
          .row_bytes = matrix.ld / 2,
          .batch_bytes = matrix.batch_stride / 2,
          .scale_ld = matrix.scale_layout == ScaleLayout::kLinear ? matrix.scale_ld : 0,
          .scale_batch_bytes = matrix.scale_batch_stride};
}

int64_t chunks_of(const Problem& p) { return k_blocks_of(p) * (kBlockK / kUnitK); }

int64_t units_of(const Problem& p) { return round_up(ceil_div(p.n, kUnitCols), kUnitMultiple); }

}  // namespace

// One thread a lane of one matrix of a unit.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_sm90a_pack_weights(const __grid_constant__ PackParams p) {
  constexpr int kPieces = 2 * kUnitLanes;
  const int64_t units = p.batches * p.chunks * p.units;
  const int64_t stride = gridDim.x * int64_t{kThreads};
  auto* const out = reinterpret_cast<PackedUnit*>(p.out);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
       i < (units + kUnitsBeyond) * kPieces; i += stride) {
    const int64_t index = i / kPieces, column = index / p.units;
    const int piece = static_cast<int>(i % kPieces), lane = piece / 2, matrix = piece % 2;
    UnitPlace at{column / p.chunks, column % p.chunks, index - column * p.units};
    if (index >= units) at = {0, 0, p.n};  // beyond: zeros
    pack_lane(p, at, lane, matrix, out[index]);
  }
}

int64_t packed_bytes(const Problem& p) {
  return (p.l * chunks_of(p) * units_of(p) + kUnitsBeyond) * kUnitBytes;
}

PackedWeights packed_weights(const Problem& p, const uint8_t* units) {
  const int64_t chunk_bytes = units_of(p) * kUnitBytes;
  return {units, chunk_bytes, chunk_bytes * chunks_of(p)};
}

KernelLaunch pack_weights_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                 uint8_t* out) {
  const Problem& p = problem.problem;
  PackParams params{.sources = {source_of(problem.gate, buffers.gate, buffers.gate_scales),
                                source_of(problem.up, buffers.up, buffers.up_scales)},
                    .out = out,
                    .n = p.n,
                    .k = p.k,
                    .chunks = chunks_of(p),
                    .units = units_of(p),
                    .batches = p.l,
                    .bf16 = multiplies_bf16(p)};
  KernelLaunch launch{.kernel = {"pack_weights_sm90a", "dual_gemm_sm90a_pack_weights",
                                 reinterpret_cast<const void*>(&dual_gemm_sm90a_pack_weights)},
                      .threads = kThreads};
  const int64_t lanes = packed_bytes(p) / kUnitBytes * kUnitLanes;
  launch.ctas = static_cast<uint32_t>(std::min(ceil_div(2 * lanes, kThreads), kMaxCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm90a
