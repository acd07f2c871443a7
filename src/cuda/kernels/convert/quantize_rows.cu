// Quantising with a global scale of its own for each row: a CTA takes a row, keeps it in registers
// as far as it goes, and reads the rest again.
#include "cuda/kernels/convert/quantize.hpp"
#include "cuda/kernels/convert/tensor_rows.cuh"
#include "cuda/kernels/convert/wide_block.cuh"

namespace dualgemm::cuda {
namespace {

// The largest of all threads' numbers, in every thread. Ends with a barrier behind the last use of
// the shared words.
__device__ uint32_t max_of_row(uint32_t value) {
  __shared__ uint32_t of_warp[kMaxRowThreads / 32];
  const uint32_t warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const uint32_t largest = __reduce_max_sync(0xFFFFFFFFu, value);
  if (lane == 0) of_warp[threadIdx.x / 32] = largest;
  __syncthreads();
  const uint32_t all = __reduce_max_sync(0xFFFFFFFFu, lane < warps ? of_warp[lane] : 0u);
  __syncthreads();
  return all;
}

template <WideType kType>
__device__ float amax_of(const WideBlock<kType>& raw) {
  float x[kBlock];
  raw.values(x);
  return amax_of_block(x);
}

template <WideType kType, bool kFourOverSix>
__device__ void store_block(const TensorParams& p, const RowPlace& at, uint32_t block,
                            const WideBlock<kType>& raw, float amax, float factor) {
  float x[kBlock];
  uint32_t signs[2];
  raw.values(x);
  raw.signs(signs);
  const EncodedBlock encoded = encode_block<kFourOverSix>(x, signs, amax, factor);
  store_codes(codes_at(p, at) + block * (kBlock / 2), encoded.words);
  *scale_at(p, at, at.scale_row, block) = static_cast<uint8_t>(encoded.scale);
}

template <WideType kType, bool kFourOverSix>
__device__ void quantize_row(const QuantizeParams& p, const RowPlace& at) {
  const TensorParams& tensor = p.tensor;
  const uint8_t* const x = x_at(tensor, at);
  const uint32_t stride = blockDim.x;
  const auto address = [&](uint32_t block) {
    return x + static_cast<int64_t>(block) * WideBlock<kType>::kBytes;
  };
  WideBlock<kType> kept[kKeptBlocks];
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    const uint32_t block = threadIdx.x + i * stride;
    if (block < tensor.blocks) kept[i].load(address(block));
  }
  float amax = 0.0f, kept_amax[kKeptBlocks];
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    if (threadIdx.x + i * stride >= tensor.blocks) continue;
    kept_amax[i] = amax_of(kept[i]);
    amax = ptx::max_nan(amax, kept_amax[i]);
  }
  for (uint32_t block = threadIdx.x + kKeptBlocks * stride; block < tensor.blocks;
       block += stride) {
    WideBlock<kType> raw;
    raw.load(address(block));
    amax = ptx::max_nan(amax, amax_of(raw));
  }
  const GlobalFactor factor = factor_of_amax(max_of_row(__float_as_uint(amax)));
  if (threadIdx.x == 0)
    p.found_scale[static_cast<int64_t>(at.batch) * tensor.rows.value + at.row] = factor.dequantize;
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    const uint32_t block = threadIdx.x + i * stride;
    if (block < tensor.blocks)
      store_block<kType, kFourOverSix>(tensor, at, block, kept[i], kept_amax[i], factor.quantize);
  }
  for (uint32_t block = threadIdx.x + kKeptBlocks * stride; block < tensor.blocks;
       block += stride) {
    WideBlock<kType> raw;
    raw.load(address(block));
    store_block<kType, kFourOverSix>(tensor, at, block, raw, amax_of(raw), factor.quantize);
  }
}

template <WideType kType, bool kFourOverSix>
__device__ void quantize_rows(const QuantizeParams& p) {
  const TensorParams& tensor = p.tensor;
  for (uint32_t index = blockIdx.x; index < tensor.count; index += gridDim.x) {
    ExpertCursor cursor(tensor.groups, tensor.rows.value);
    if (tensor.groups.expert_offsets != nullptr) cursor.seek(tensor.row_begin + index);
    const RowPlace at = place_of_row(tensor, cursor, index);
    for (uint32_t block = threadIdx.x; block < tensor.row_units.value; block += blockDim.x) {
      if (block >= tensor.blocks && at.has_scales) *scale_at(tensor, at, at.scale_row, block) = 0;
      clear_rows_below(tensor, at, block);
    }
    if (at.wanted) quantize_row<kType, kFourOverSix>(p, at);  // the same in all threads
    if (tensor.count - index <= gridDim.x) break;
  }
}

}  // namespace

#define DUALGEMM_QUANTIZE_ROWS(name, kType, four_over_six)                       \
  extern "C" __global__ void __launch_bounds__(kMaxRowThreads)                   \
      dual_gemm_quantize_rows_##name(const __grid_constant__ QuantizeParams p) { \
    quantize_rows<WideType::kType, four_over_six>(p);                            \
  }
DUALGEMM_QUANTIZE_ROWS(f16, kF16, false)
DUALGEMM_QUANTIZE_ROWS(bf16, kBF16, false)
DUALGEMM_QUANTIZE_ROWS(f32, kF32, false)
DUALGEMM_QUANTIZE_ROWS(f16_four_over_six, kF16, true)
DUALGEMM_QUANTIZE_ROWS(bf16_four_over_six, kBF16, true)
DUALGEMM_QUANTIZE_ROWS(f32_four_over_six, kF32, true)
#undef DUALGEMM_QUANTIZE_ROWS

Kernel quantize_rows_kernel(WideType type, bool four_over_six) {
#define DUALGEMM_KERNEL(name) \
  { "quantize_rows", #name, reinterpret_cast<const void*>(&name) }
  static const Kernel kernels[2][3] = {
      {DUALGEMM_KERNEL(dual_gemm_quantize_rows_f16), DUALGEMM_KERNEL(dual_gemm_quantize_rows_bf16),
       DUALGEMM_KERNEL(dual_gemm_quantize_rows_f32)},
      {DUALGEMM_KERNEL(dual_gemm_quantize_rows_f16_four_over_six),
       DUALGEMM_KERNEL(dual_gemm_quantize_rows_bf16_four_over_six),
       DUALGEMM_KERNEL(dual_gemm_quantize_rows_f32_four_over_six)}};
#undef DUALGEMM_KERNEL
  return kernels[four_over_six ? 1 : 0][static_cast<int>(type)];
}

}  // namespace dualgemm::cuda
