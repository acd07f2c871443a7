#include "cuda/kernels/convert/dequantize.hpp"

#include <algorithm>

#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/source.cuh"

namespace dualgemm::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // chunks that a thread loads before it decodes the first
constexpr int kUnit = kThreads * kUnroll;
constexpr int64_t kMaxCtas = 1 << 20;

int64_t num_chunks(const SourceExtent& extent) {
  return extent.out_rows * extent.batches * (extent.cols / kChunk);
}

// Row of a chunk whose place is counted from the beginning of a row; a unit has kUnit of them.
__device__ uint32_t rows_before(uint32_t offset, uint32_t row_chunks) {
  if (2 * row_chunks < kUnit) return offset / row_chunks;
  return (offset >= row_chunks) + (offset >= 2 * row_chunks);  // a unit touches three rows at most
}

template <OutputType kType>
__device__ void store_chunk(RawChunk raw, uint8_t* out) {
  const float scale = decode_scale(raw.scale);
  if constexpr (kType == OutputType::kF16) {
    uint32_t pairs[kChunk / 2];
    decode_chunk_f16(raw.codes, ptx::cvt_f16x2(scale, scale), pairs);
    *reinterpret_cast<uint4*>(out) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  } else {
    float values[kChunk];
    decode_chunk(raw.codes, scale, values);
    store_row<kType, kChunk>(out, values, kChunk);
  }
}

// Consecutive threads take consecutive chunks: a warp reads 128 and writes 512 bytes without a gap.
template <OutputType kType>
__device__ void dequantize_all(const DequantizeParams& p) {
  const auto row_chunks = static_cast<uint32_t>(p.extent.cols / kChunk);
  const int64_t chunks = p.extent.out_rows * p.extent.batches * row_chunks;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kUnit; first < chunks;
       first += static_cast<int64_t>(gridDim.x) * kUnit) {
    const int64_t first_row = first / row_chunks;  // the same in all threads
    const auto first_chunk = static_cast<uint32_t>(first - first_row * row_chunks);
    RawChunk raw[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const uint32_t offset = first_chunk + i * kThreads + threadIdx.x,
                     row = rows_before(offset, row_chunks);
      if (first + i * kThreads + threadIdx.x >= chunks) continue;
      raw[i] = load_chunk(p.source, p.extent, source_row(p.extent, first_row + row),
                          offset - row * row_chunks);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t chunk = first + i * kThreads + threadIdx.x;
      if (chunk >= chunks) continue;
      store_chunk<kType>(raw[i], p.out + chunk * kChunk * bytes_of(kType));
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_dequantize_f16(const __grid_constant__ DequantizeParams p) {
  dequantize_all<OutputType::kF16>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_dequantize_bf16(const __grid_constant__ DequantizeParams p) {
  dequantize_all<OutputType::kBF16>(p);
}

KernelLaunch dequantize_launch(const DequantizeParams& params, OutputType type) {
  const bool bf16 = type == OutputType::kBF16;
  KernelLaunch launch{
      .kernel = {"dequantize", bf16 ? "dual_gemm_dequantize_bf16" : "dual_gemm_dequantize_f16",
                 bf16 ? reinterpret_cast<const void*>(&dual_gemm_dequantize_bf16)
                      : reinterpret_cast<const void*>(&dual_gemm_dequantize_f16)},
      .threads = kThreads};
  launch.ctas = static_cast<uint32_t>(
      std::clamp<int64_t>((num_chunks(params.extent) + kUnit - 1) / kUnit, 1, kMaxCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda
