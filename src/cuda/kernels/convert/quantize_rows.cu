// Quantising with a global scale of its own for each row. Where there are many rows a small CTA
// takes one, which it has in shared memory. Else a CTA takes a row after the other, keeps it in
// registers as far as it goes, and reads the rest again; where there are few rows several CTAs take
// one: each looks for the largest magnitude of all of it and encodes a part.
#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/kernels/convert/row_parts.cuh"
#include "cuda/kernels/convert/row_stores.cuh"
#include "cuda/kernels/convert/staged_row.cuh"
#include "cuda/kernels/convert/wide_block.cuh"

namespace dualgemm::cuda {
namespace {

template <WideType kType, bool kFourOverSix>
__device__ EncodedBlock encoded_block(const WideBlock<kType>& raw, float amax, float factor) {
  float x[kBlock];
  uint32_t signs[2];
  raw.values(x);
  raw.signs(signs);
  return encode_block<kFourOverSix>(x, signs, amax, factor);
}

// The blocks of a row that a thread keeps in registers.
template <WideType kType>
struct KeptBlocks {
  WideBlock<kType> raw[kKeptBlocks];

  static __device__ uint32_t number(int i) { return threadIdx.x + i * blockDim.x; }

  __device__ void load(const TensorParams& p, const RowPlace& at) {
    const uint8_t* const x = x_at(p, at);
#pragma unroll
    for (int i = 0; i < kKeptBlocks; ++i) {
      if (at.wanted && number(i) < p.blocks)
        raw[i].load(x + static_cast<int64_t>(number(i)) * WideBlock<kType>::kBytes);
    }
  }
};

// Calls with what is beyond the kept blocks of a row.
template <WideType kType, class Use>
__device__ void read_rest(const TensorParams& p, const RowPlace& at, const Use& use) {
  for (uint32_t block = KeptBlocks<kType>::number(kKeptBlocks); block < p.blocks;
       block += blockDim.x) {
    WideBlock<kType> raw;
    raw.load(x_at(p, at) + static_cast<int64_t>(block) * WideBlock<kType>::kBytes);
    use(block, raw);
  }
}

template <WideType kType, bool kFourOverSix>
__device__ void quantize_row(const QuantizeParams& p, const RowPlace& at, const RowPart& part,
                             const KeptBlocks<kType>& kept) {
  const TensorParams& tensor = p.tensor;
  float amax = 0.0f, kept_amax[kKeptBlocks];
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    if (kept.number(i) >= tensor.blocks) continue;
    kept_amax[i] = kept.raw[i].amax();
    amax = ptx::max_nan(amax, kept_amax[i]);
  }
  read_rest<kType>(tensor, at, [&](uint32_t, const WideBlock<kType>& raw) {
    amax = ptx::max_nan(amax, raw.amax());
  });
  const GlobalFactor factor = factor_of_amax(max_of_row(__float_as_uint(amax)));
  if (threadIdx.x == 0 && part.index == 0) store_found_scale(p, at, factor.dequantize);
  const RowStores to(tensor, at);
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    if (kept.number(i) >= tensor.blocks || !part.has(kept.number(i))) continue;
    to.store(kept.number(i),
             encoded_block<kType, kFourOverSix>(kept.raw[i], kept_amax[i], factor.quantize));
  }
  read_rest<kType>(tensor, at, [&](uint32_t block, const WideBlock<kType>& raw) {
    if (part.has(block))
      to.store(block, encoded_block<kType, kFourOverSix>(raw, raw.amax(), factor.quantize));
  });
}

// Every so many-th row, or part of one.
template <WideType kType, bool kFourOverSix>
__device__ void quantize_rows(const QuantizeParams& p) {
  const TensorParams& tensor = p.tensor;
  const RowPart part(p);
  const uint32_t step = gridDim.x >> p.row_shift;
  for (uint32_t index = blockIdx.x >> p.row_shift;; index += step) {
    const RowPlace at = place_of(tensor, index);
    KeptBlocks<kType> kept;
    kept.load(tensor, at);
    clear_padding(tensor, at, [&](uint32_t block) { return part.has(block); });
    // The same in all threads.
    if (at.wanted) quantize_row<kType, kFourOverSix>(p, at, part, kept);
    if (tensor.count - index <= step) break;
    __syncthreads();  // max_of_row()
  }
}

// Row blockIdx.x. What counts is how many rows an SM has on their way, which are few in registers
// (16384 x 7168 in bf16 on an H200: 94 us, 114 in registers; half as many rows of FP32: 69, and 90
// in registers with the next row loaded ahead), and then instructions: with places as steps from
// block to block, which the compiler made anew for each, 82 and 66.
template <WideType kType>
__device__ void quantize_staged_row(const QuantizeParams& p) {
  extern __shared__ uint4 staged[];
  const TensorParams& tensor = p.tensor;
  const StagedRow<kType> row(staged, tensor.blocks);
  auto* const amax_of = reinterpret_cast<float*>(staged + tensor.blocks * row.kPieces);
  const RowPlace at = place_of(tensor, blockIdx.x);
  if (at.wanted) row.copy(x_at(tensor, at));
  clear_padding(tensor, at, [](uint32_t) { return true; });
  if (!at.wanted) return;
  const RowStores to(tensor, at);
  row.await();
  float amax = 0.0f;
  const uint4* pieces = row.first();
  float* own_amax = amax_of + threadIdx.x;
  for (uint32_t block = threadIdx.x; block < tensor.blocks; block += blockDim.x) {
    const float own = row.block(pieces).amax();
    *own_amax = own;
    amax = ptx::max_nan(amax, own);
    pieces += row.step(), own_amax += blockDim.x;
  }
  const GlobalFactor factor = factor_of_amax(max_of_row(__float_as_uint(amax)));
  if (threadIdx.x == 0) store_found_scale(p, at, factor.dequantize);
  pieces = row.first(), own_amax = amax_of + threadIdx.x;
  RowStores::Every places(to, threadIdx.x, blockDim.x);
#pragma unroll 1
  for (uint32_t block = threadIdx.x; block < tensor.blocks; block += blockDim.x) {
    places.store_next(encoded_block<kType, false>(row.block(pieces), *own_amax, factor.quantize));
    pieces += row.step(), own_amax += blockDim.x;
  }
}

}  // namespace

#define DUALGEMM_QUANTIZE_ROWS(name, kType, four_over_six)                        \
  extern "C" __global__ void __launch_bounds__(                                   \
      kMaxRowThreads, WideType::kType == WideType::kF32 || four_over_six ? 1 : 2) \
      dual_gemm_quantize_rows_##name(const __grid_constant__ QuantizeParams p) {  \
    quantize_rows<WideType::kType, four_over_six>(p);                             \
  }
DUALGEMM_QUANTIZE_ROWS(f16, kF16, false)
DUALGEMM_QUANTIZE_ROWS(bf16, kBF16, false)
DUALGEMM_QUANTIZE_ROWS(f32, kF32, false)
DUALGEMM_QUANTIZE_ROWS(f16_four_over_six, kF16, true)
DUALGEMM_QUANTIZE_ROWS(bf16_four_over_six, kBF16, true)
DUALGEMM_QUANTIZE_ROWS(f32_four_over_six, kF32, true)
#undef DUALGEMM_QUANTIZE_ROWS

#define DUALGEMM_QUANTIZE_STAGED_ROWS(name, kType)                                 \
  extern "C" __global__ void __launch_bounds__(kMaxRowThreads, 2)                  \
      dual_gemm_quantize_staged_##name(const __grid_constant__ QuantizeParams p) { \
    quantize_staged_row<WideType::kType>(p);                                       \
  }
DUALGEMM_QUANTIZE_STAGED_ROWS(f16, kF16)
DUALGEMM_QUANTIZE_STAGED_ROWS(bf16, kBF16)
DUALGEMM_QUANTIZE_STAGED_ROWS(f32, kF32)
#undef DUALGEMM_QUANTIZE_STAGED_ROWS

#define DUALGEMM_KERNEL(name) \
  { "quantize_rows", #name, reinterpret_cast<const void*>(&name) }
Kernel quantize_rows_kernel(WideType type, bool four_over_six) {
  static const Kernel kernels[2][3] = {
      {DUALGEMM_KERNEL(dual_gemm_quantize_rows_f16), DUALGEMM_KERNEL(dual_gemm_quantize_rows_bf16),
       DUALGEMM_KERNEL(dual_gemm_quantize_rows_f32)},
      {DUALGEMM_KERNEL(dual_gemm_quantize_rows_f16_four_over_six),
       DUALGEMM_KERNEL(dual_gemm_quantize_rows_bf16_four_over_six),
       DUALGEMM_KERNEL(dual_gemm_quantize_rows_f32_four_over_six)}};
  return kernels[four_over_six ? 1 : 0][static_cast<int>(type)];
}

Kernel quantize_staged_rows_kernel(WideType type) {
  static const Kernel kernels[3] = {DUALGEMM_KERNEL(dual_gemm_quantize_staged_f16),
                                    DUALGEMM_KERNEL(dual_gemm_quantize_staged_bf16),
                                    DUALGEMM_KERNEL(dual_gemm_quantize_staged_f32)};
  return kernels[static_cast<int>(type)];
}
#undef DUALGEMM_KERNEL

}  // namespace dualgemm::cuda
