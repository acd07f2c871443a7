// Quantising with a global scale of its own for each row: a CTA takes a row after the other, keeps
// it in registers as far as it goes, and reads the rest again. Of few rows several CTAs take one:
// each looks for the largest magnitude of all of it and encodes a part.
#include "cuda/kernels/convert/quantize_kernels.hpp"
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

// The CTAs that divide a row, and this one's part of it: every so many-th 32 blocks.
struct RowPart {
  uint32_t mask, index;
  __device__ explicit RowPart(const QuantizeParams& p)
      : mask((1u << p.row_shift) - 1), index(blockIdx.x & mask) {}
  __device__ bool has(uint32_t block) const { return (block / 32 & mask) == index; }
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

// prefetch: asks for the next row, while the threads wait for each other.
template <WideType kType, bool kFourOverSix, class Prefetch>
__device__ void quantize_row(const QuantizeParams& p, const RowPlace& at, const RowPart& part,
                             const KeptBlocks<kType>& kept, const Prefetch& prefetch) {
  const TensorParams& tensor = p.tensor;
  float amax = 0.0f, kept_amax[kKeptBlocks];
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    if (kept.number(i) >= tensor.blocks) continue;
    kept_amax[i] = kept.raw[i].amax();
    amax = ptx::max_nan(amax, kept_amax[i]);
  }
  prefetch();
  read_rest<kType>(tensor, at, [&](uint32_t, const WideBlock<kType>& raw) {
    amax = ptx::max_nan(amax, raw.amax());
  });
  const GlobalFactor factor = factor_of_amax(max_of_row(__float_as_uint(amax)));
  if (threadIdx.x == 0 && part.index == 0)
    p.found_scale[static_cast<int64_t>(at.batch) * tensor.rows.value + at.row] = factor.dequantize;
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    if (kept.number(i) >= tensor.blocks || !part.has(kept.number(i))) continue;
    store_block<kType, kFourOverSix>(tensor, at, kept.number(i), kept.raw[i], kept_amax[i],
                                     factor.quantize);
  }
  read_rest<kType>(tensor, at, [&](uint32_t block, const WideBlock<kType>& raw) {
    if (part.has(block))
      store_block<kType, kFourOverSix>(tensor, at, block, raw, raw.amax(), factor.quantize);
  });
}

DUALGEMM_DEVICE RowPlace place_of(const TensorParams& p, uint32_t index) {
  ExpertCursor cursor(p.groups, p.rows.value);
  if (p.groups.expert_offsets != nullptr) cursor.seek(p.row_begin + index);
  return place_of_row(p, cursor, index);
}

// Every so many-th row, or part of one. In FP32 each is on its way while the one before it
// is encoded. 16 bits have as much to compute for half the bytes: there the registers that this
// takes are worth more as warps (16384 x 7168 in bf16: 125 us, ahead 161; 8192 x 7168 in FP32: 110,
// ahead 96; H100, 2026-11-22).
template <WideType kType, bool kFourOverSix>
__device__ void quantize_rows(const QuantizeParams& p) {
  const TensorParams& tensor = p.tensor;
  constexpr bool kAhead = reads_ahead(kType);
  const RowPart part(p);
  const uint32_t step = gridDim.x >> p.row_shift;
  RowPlace next = place_of(tensor, blockIdx.x >> p.row_shift);
  KeptBlocks<kType> coming;
  if constexpr (kAhead) coming.load(tensor, next);
  for (uint32_t index = blockIdx.x >> p.row_shift;;) {
    const RowPlace at = kAhead ? next : place_of(tensor, index);
    if constexpr (!kAhead) coming.load(tensor, at);
    const KeptBlocks<kType> kept = coming;
    const bool last = tensor.count - index <= step;
    index += step;
    const auto prefetch = [&] {
      if (!kAhead || last) return;
      next = place_of(tensor, index);
      coming.load(tensor, next);
    };
    for (uint32_t block = threadIdx.x; block < tensor.row_units.value; block += blockDim.x) {
      if (!part.has(block)) continue;
      if (block >= tensor.blocks && at.has_scales) *scale_at(tensor, at, at.scale_row, block) = 0;
      clear_rows_below(tensor, at, block);
    }
    if (at.wanted) {  // the same in all threads
      quantize_row<kType, kFourOverSix>(p, at, part, kept, prefetch);
    } else {
      prefetch();
    }
    if (last) break;
  }
}

}  // namespace

#define DUALGEMM_QUANTIZE_ROWS(name, kType, four_over_six)                       \
  extern "C" __global__ void __launch_bounds__(                                  \
      kMaxRowThreads, reads_ahead(WideType::kType) || four_over_six ? 1 : 2)     \
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
