// Brings NVFP4 weights into the order of PackedUnit. Done once for weights that are used often: it
// reads bytes one at a time where they lie so, and is not tuned.
#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/kernels/common/nvfp4_source.hpp"
#include "cuda/kernels/common/source.cuh"
#include "cuda/kernels/packed/packed_weights.hpp"

namespace dualgemm::cuda {
namespace {

struct PackParams {
  Nvfp4Source sources[2];  // Gate, Up
  SourceExtent extent;     // of each
  uint8_t* out;
  int64_t batch_stride;
  int64_t chunks, units;
  bool bf16;
};

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 65535;

// A chunk of a unit.
struct UnitPlace {
  int64_t batch, chunk, unit;
};

// What lane `lane` has of one matrix: a 16-block and its scale.
__device__ void pack_lane(const PackParams& p, const UnitPlace& at, int lane, int matrix,
                          PackedUnit& out) {
  const int64_t row = at.unit * kUnitCols + lane / 4, k = at.chunk * kUnitK + lane % 4 * 16;
  const RawBlock raw = load_block(p.sources[matrix], p.extent, {at.batch, row}, k);
  for (int i = 0; i < 2; ++i) {
    out.codes[lane][matrix][i] =
        p.bf16 ? pack_word<true>(raw.codes[i]) : pack_word<false>(raw.codes[i]);
  }
  out.scales[lane][matrix] = raw.scale;
}

int64_t chunks_of(const Problem& p) { return core::round_up(p.k, kPackedK) / kUnitK; }

int64_t units_of(const Problem& p) {
  return core::round_up(core::ceil_div(p.n, kUnitCols), kUnitMultiple);
}

}  // namespace

// One thread a lane of one matrix of a unit.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_pack_weights(const __grid_constant__ PackParams p) {
  constexpr int kPieces = 2 * kUnitLanes;
  const int64_t units = p.chunks * p.units, with_those_beyond = units + kUnitsBeyond;
  const int64_t stride = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
       i < p.extent.batches * with_those_beyond * kPieces; i += stride) {
    const int64_t batch = i / kPieces / with_those_beyond;
    const int64_t index = i / kPieces - batch * with_those_beyond, chunk = index / p.units;
    const int piece = static_cast<int>(i % kPieces), lane = piece / 2, matrix = piece % 2;
    UnitPlace at{batch, chunk, index - chunk * p.units};
    if (index >= units) at = {batch, 0, p.extent.rows};  // beyond: zeros
    auto* const out = reinterpret_cast<PackedUnit*>(p.out + batch * p.batch_stride);
    pack_lane(p, at, lane, matrix, out[index]);
  }
}

int64_t packed_batch_bytes(const Problem& p) {
  return (chunks_of(p) * units_of(p) + kUnitsBeyond) * kUnitBytes;
}

int64_t packed_batch_stride(const Problem& p) {
  constexpr int64_t kMultiple = 256;
  return core::round_up(kPreparedHeaderBytes + packed_batch_bytes(p), kMultiple);
}

int64_t packed_bytes(const Problem& p) { return p.l * packed_batch_stride(p); }

PackedWeights packed_weights(const Problem& p, const uint8_t* units) {
  return {units, units_of(p) * kUnitBytes, packed_batch_stride(p)};
}

KernelLaunch pack_weights_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                 uint8_t* out) {
  const Problem& p = problem.problem;
  PackParams params{.sources = {nvfp4_source(problem.gate, buffers.gate, buffers.gate_scales),
                                nvfp4_source(problem.up, buffers.up, buffers.up_scales)},
                    .extent = {.rows = p.n, .out_rows = p.n, .batches = p.l, .cols = p.k},
                    .out = out,
                    .batch_stride = packed_batch_stride(p),
                    .chunks = chunks_of(p),
                    .units = units_of(p),
                    .bf16 = multiplies_bf16(p)};
  KernelLaunch launch{.kernel = {"pack_weights", "dual_gemm_pack_weights",
                                 reinterpret_cast<const void*>(&dual_gemm_pack_weights)},
                      .threads = kThreads};
  const int64_t lanes = p.l * packed_batch_bytes(p) / kUnitBytes * kUnitLanes;
  launch.ctas = static_cast<uint32_t>(std::min(core::ceil_div(2 * lanes, kThreads), kMaxCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda
