// Rows transformed as RowTransform says, and quantised with whatever scale, or stored as they are.
// A CTA takes a row after the other; where there are few several take one, as in quantize_rows.cu.
// The transform of a block wants its neighbours only, which lie in the lanes of the same warp.
#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/kernels/convert/row_parts.cuh"
#include "cuda/kernels/convert/row_stores.cuh"
#include "cuda/kernels/convert/transformed_block.cuh"

namespace dualgemm::cuda {
namespace {

// One row, 32 blocks a warp at a time.
template <WideType kType>
class TransformedRow {
 public:
  __device__ TransformedRow(const TransformedParams& p, const uint8_t* x) : p_(p), x_(x) {}

  // The i-th block of the thread, by all lanes of the warp.
  __device__ WideBlock<kType> block(uint32_t number) const {
    WideBlock<kType> raw{};
    const bool exists = number < p_.quantize.tensor.blocks;
    if (exists) raw.load(x_ + static_cast<int64_t>(number) * WideBlock<kType>::kBytes);
    transform_block<kType>(p_, number, exists, raw);
    return raw;
  }

  // use(block, its values) for the thread's own from its `skipped`-th on of those that `wants`
  // names, the same for 32 blocks.
  template <class Wants, class Use>
  __device__ void each(uint32_t skipped, const Wants& wants, const Use& use) const {
    const uint32_t lane = threadIdx.x % 32, blocks = p_.quantize.tensor.blocks;
    for (uint32_t first = threadIdx.x - lane + skipped * blockDim.x; first < blocks;
         first += blockDim.x) {
      if (!wants(first)) continue;
      const WideBlock<kType> raw = block(first + lane);
      if (first + lane < blocks) use(first + lane, raw);
    }
  }

 private:
  const TransformedParams& p_;
  const uint8_t* x_;
};

template <WideType kType, bool kFourOverSix>
__device__ void encode_to(const RowStores& to, uint32_t block, const WideBlock<kType>& raw,
                          float factor) {
  float x[kBlock];
  uint32_t signs[2];
  raw.values(x);
  raw.signs(signs);
  to.store(block, encode_block<kFourOverSix>(x, signs, raw.amax(), factor));
}

// With a scale of its own, for which all of the row is looked at.
template <WideType kType, bool kFourOverSix>
__device__ void quantize_with_own_scale(const TransformedParams& p, const RowPlace& at,
                                        const RowPart& part) {
  const QuantizeParams& q = p.quantize;
  const TransformedRow<kType> row(p, x_at(q.tensor, at));
  const auto all = [](uint32_t) { return true; };
  const auto own = [&](uint32_t block) { return part.has(block); };
  WideBlock<kType> kept[kKeptBlocks];
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    const uint32_t block = threadIdx.x + i * blockDim.x;
    kept[i] = row.block(block);
    if (block < q.tensor.blocks) amax = ptx::max_nan(amax, kept[i].amax());
  }
  row.each(kKeptBlocks, all,
           [&](uint32_t, const WideBlock<kType>& raw) { amax = ptx::max_nan(amax, raw.amax()); });
  const GlobalFactor factor = factor_of_amax(max_of_row(__float_as_uint(amax)));
  if (threadIdx.x == 0 && part.index == 0) store_found_scale(q, at, factor.dequantize);
  const RowStores to(q.tensor, at);
#pragma unroll
  for (int i = 0; i < kKeptBlocks; ++i) {
    const uint32_t block = threadIdx.x + i * blockDim.x;
    if (block < q.tensor.blocks && own(block))
      encode_to<kType, kFourOverSix>(to, block, kept[i], factor.quantize);
  }
  row.each(kKeptBlocks, own, [&](uint32_t block, const WideBlock<kType>& raw) {
    encode_to<kType, kFourOverSix>(to, block, raw, factor.quantize);
  });
}

template <WideType kType, bool kFourOverSix>
__device__ void quantize_with_factor(const TransformedParams& p, const RowPlace& at,
                                     const RowPart& part, float factor) {
  const TransformedRow<kType> row(p, x_at(p.quantize.tensor, at));
  const RowStores to(p.quantize.tensor, at);
  row.each(
      0, [&](uint32_t block) { return part.has(block); },
      [&](uint32_t block, const WideBlock<kType>& raw) {
        encode_to<kType, kFourOverSix>(to, block, raw, factor);
      });
}

// The factor that all values share, if there is one.
__device__ float factor_of_all(const QuantizeParams& q) {
  if (q.tensor.factors == Factors::kOne) return factor_of_given(*q.tensor.global_scale);
  if (q.tensor.factors != Factors::kFromPartials) return 0.0f;
  uint32_t largest = 0;
  for (uint32_t i = threadIdx.x; i < q.num_partials; i += blockDim.x)
    largest = max(largest, q.partials[i]);
  const GlobalFactor factor = factor_of_amax(max_of_row(largest));
  if (blockIdx.x == 0 && threadIdx.x == 0 && q.found_scale != nullptr)
    *q.found_scale = factor.dequantize;
  return factor.quantize;
}

template <WideType kType, bool kFourOverSix>
__device__ void quantize_transformed(const TransformedParams& p) {
  const QuantizeParams& q = p.quantize;
  const RowPart part(q);
  const float factor = factor_of_all(q);
  const uint32_t step = gridDim.x >> q.row_shift;
  for (uint32_t index = blockIdx.x >> q.row_shift; index < q.tensor.count; index += step) {
    const RowPlace at = place_of(q.tensor, index);
    clear_padding(q.tensor, at, [&](uint32_t block) { return part.has(block); });
    if (!at.wanted) continue;  // the same in all threads
    if (q.tensor.factors == Factors::kPerRow) {
      quantize_with_own_scale<kType, kFourOverSix>(p, at, part);
      __syncthreads();  // max_of_row()
    } else {
      const bool by_expert = q.tensor.factors == Factors::kPerExpert;
      quantize_with_factor<kType, kFourOverSix>(
          p, at, part, by_expert ? factor_of_given(q.tensor.global_scale[at.expert]) : factor);
    }
  }
}

template <WideType kType>
__device__ void amax_transformed(const TransformedParams& p) {
  const QuantizeParams& q = p.quantize;
  const RowPart part(q);
  const uint32_t step = gridDim.x >> q.row_shift;
  float amax = 0.0f;
  for (uint32_t index = blockIdx.x >> q.row_shift; index < q.tensor.count; index += step) {
    const RowPlace at = place_of(q.tensor, index);
    if (!at.wanted) continue;
    const TransformedRow<kType> row(p, x_at(q.tensor, at));
    row.each(
        0, [&](uint32_t block) { return part.has(block); },
        [&](uint32_t, const WideBlock<kType>& raw) { amax = ptx::max_nan(amax, raw.amax()); });
  }
  const uint32_t largest = max_of_row(__float_as_uint(amax));
  if (threadIdx.x == 0) p.partials[blockIdx.x] = largest;
}

template <WideType kType>
__device__ void transform_all(const TransformedParams& p) {
  const QuantizeParams& q = p.quantize;
  const RowPart part(q);
  const uint32_t step = gridDim.x >> q.row_shift;
  for (uint32_t index = blockIdx.x >> q.row_shift; index < q.tensor.count; index += step) {
    const RowPlace at = place_of(q.tensor, index);
    uint8_t* const to = codes_at(q.tensor, at);
    const TransformedRow<kType> row(p, x_at(q.tensor, at));
    row.each(
        0, [&](uint32_t block) { return part.has(block); },
        [&](uint32_t block, WideBlock<kType> raw) {
#pragma unroll
          for (int i = 0; i < WideBlock<kType>::kWords; ++i)
            raw.words[i] = canonical<kType>(raw.words[i]);
          store_words<kType, kBlock>(to + static_cast<int64_t>(block) * WideBlock<kType>::kBytes,
                                     raw.words, kBlock);
        });
  }
}

}  // namespace

#define DUALGEMM_TRANSFORMED(name, body, ...)                         \
  extern "C" __global__ void __launch_bounds__(kMaxRowThreads)        \
      dual_gemm_##name(const __grid_constant__ TransformedParams p) { \
    body<__VA_ARGS__>(p);                                             \
  }
#define DUALGEMM_TRANSFORMED_TYPE(name, kType)                                                    \
  DUALGEMM_TRANSFORMED(quantize_transformed_##name, quantize_transformed, WideType::kType, false) \
  DUALGEMM_TRANSFORMED(quantize_transformed_##name##_four_over_six, quantize_transformed,         \
                       WideType::kType, true)                                                     \
  DUALGEMM_TRANSFORMED(amax_transformed_##name, amax_transformed, WideType::kType)                \
  DUALGEMM_TRANSFORMED(transform_##name, transform_all, WideType::kType)
DUALGEMM_TRANSFORMED_TYPE(f16, kF16)
DUALGEMM_TRANSFORMED_TYPE(bf16, kBF16)
DUALGEMM_TRANSFORMED_TYPE(f32, kF32)
#undef DUALGEMM_TRANSFORMED_TYPE
#undef DUALGEMM_TRANSFORMED

#define DUALGEMM_KERNEL(name) \
  { "quantize_transformed", #name, reinterpret_cast<const void*>(&name) }
#define DUALGEMM_KERNELS(name, end)                                                              \
  {                                                                                              \
    DUALGEMM_KERNEL(dual_gemm_##name##_f16##end), DUALGEMM_KERNEL(dual_gemm_##name##_bf16##end), \
        DUALGEMM_KERNEL(dual_gemm_##name##_f32##end)                                             \
  }
Kernel quantize_transformed_kernel(WideType type, bool four_over_six) {
  static const Kernel kernels[2][3] = {DUALGEMM_KERNELS(quantize_transformed, ),
                                       DUALGEMM_KERNELS(quantize_transformed, _four_over_six)};
  return kernels[four_over_six ? 1 : 0][static_cast<int>(type)];
}
Kernel amax_transformed_kernel(WideType type) {
  static const Kernel kernels[3] = DUALGEMM_KERNELS(amax_transformed, );
  return kernels[static_cast<int>(type)];
}
Kernel transform_kernel(WideType type) {
  static const Kernel kernels[3] = DUALGEMM_KERNELS(transform, );
  return kernels[static_cast<int>(type)];
}
#undef DUALGEMM_KERNELS
#undef DUALGEMM_KERNEL

}  // namespace dualgemm::cuda
