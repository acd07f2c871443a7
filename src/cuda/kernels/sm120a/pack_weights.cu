// Brings NVFP4 weights into the order of PackedUnit. Done once for weights that are used often: it
// reads bytes one at a time where they lie so, and is not tuned. For any GPU.
#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/kernels/common/nvfp4_source.hpp"
#include "cuda/kernels/common/source.cuh"
#include "cuda/kernels/sm120a/packed_weights.hpp"

namespace dualgemm::cuda::sm120a {
namespace {

using core::ceil_div;

struct PackParams {
  Nvfp4Source sources[2];  // Gate, Up
  SourceExtent extent;     // of each
  uint8_t* out;
  int64_t batch_stride;
  int64_t chunks, units;
};

constexpr int kThreads = 256;
constexpr int64_t kMaxPackCtas = 65535;
constexpr int kBlocks = kMmaRows * kStageK16;  // 16-blocks of a chunk of a unit

int64_t chunks_of(const Problem& p) { return ceil_div(p.k, kStageK); }
int64_t units_of(const Problem& p) { return ceil_div(p.n, kTileN) * (kTileN / kUnitCols); }

}  // namespace

// One thread a 16-block of a unit.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_sm120a_pack_weights(const __grid_constant__ PackParams p) {
  const int64_t of_batch = p.chunks * p.units, stride = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
       i < p.extent.batches * of_batch * kBlocks; i += stride) {
    const int64_t index = i / kBlocks, batch = index / of_batch;
    const int64_t chunk = index % of_batch / p.units, unit = index % of_batch % p.units;
    const int block = static_cast<int>(i % kBlocks) % kStageK16;
    const int row = static_cast<int>(i % kBlocks) / kStageK16;
    const int64_t k = chunk * kStageK + block * 16;
    const RawBlock raw = load_block(p.sources[row / kUnitCols], p.extent,
                                    {batch, unit * kUnitCols + row % kUnitCols}, k);
    auto& out = reinterpret_cast<PackedUnit*>(p.out + batch * p.batch_stride)[index % of_batch];
    *reinterpret_cast<uint2*>(&out.codes[row][block * 8]) = make_uint2(raw.codes[0], raw.codes[1]);
    out.scales[row][block] = raw.scale;
  }
}

int64_t packed_batch_bytes(const Problem& p) { return chunks_of(p) * units_of(p) * kUnitBytes; }

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
                    .units = units_of(p)};
  KernelLaunch launch{.kernel = {"pack_weights_sm120a", "dual_gemm_sm120a_pack_weights",
                                 reinterpret_cast<const void*>(&dual_gemm_sm120a_pack_weights)},
                      .threads = kThreads};
  const int64_t blocks = p.l * chunks_of(p) * units_of(p) * kBlocks;
  launch.ctas = static_cast<uint32_t>(std::min(ceil_div(blocks, kThreads), kMaxPackCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm120a
