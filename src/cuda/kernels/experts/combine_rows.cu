// y[t] = sum of its experts' rows, weighted: one thread for 16 columns of a token. Every row is
// read once: (top_k + 1) * cols * bytes for each token are the limit.
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/convert/wide_block.cuh"
#include "cuda/kernels/experts/routing_kernels.hpp"
#include "cuda/kernels/experts/row_weight.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda {
namespace {

using Sums = float[kBlock];

// Rows of a token whose loads a thread has under way.
template <OutputType kRows>
inline constexpr uint32_t kRowsAtOnce = kRows == OutputType::kF32 ? 4 : 8;

// sums += weight * row for at most kRowsAtOnce places from `first` on, in order.
template <OutputType kRows>
__device__ void add_rows(const CombineRowsParams& p, uint32_t first, uint32_t count, uint32_t block,
                         Sums& sums) {
  constexpr uint32_t kAtOnce = kRowsAtOnce<kRows>;
  uint32_t places[kAtOnce];
#pragma unroll
  for (uint32_t j = 0; j < kAtOnce; ++j)
    places[j] = j < count ? static_cast<uint32_t>(p.places[first + j]) : ~0u;
  WideBlock<kRows> rows[kAtOnce];
  float weights[kAtOnce];
#pragma unroll
  for (uint32_t j = 0; j < kAtOnce; ++j) {
    if (places[j] >= p.count) continue;
    rows[j].load(p.rows + places[j] * p.row_bytes +
                 static_cast<uint64_t>(block) * WideBlock<kRows>::kBytes);
    weights[j] = p.weights == nullptr ? 1.0f : load_weight(p.weight_type, p.weights, first + j);
  }
#pragma unroll
  for (uint32_t j = 0; j < kAtOnce; ++j) {
    if (places[j] >= p.count) continue;
    float values[kBlock];
    rows[j].values(values);
#pragma unroll
    for (int i = 0; i < kBlock; ++i) sums[i] = __fadd_rn(sums[i], __fmul_rn(weights[j], values[i]));
  }
}

template <OutputType kY>
__device__ void finish(const CombineRowsParams& p, uint32_t token, uint32_t block, Sums& sums) {
  const uint64_t at = token * static_cast<uint64_t>(p.y_bytes) +
                      static_cast<uint64_t>(block) * WideBlock<kY>::kBytes;
  if (p.residual != nullptr) {
    WideBlock<kY> residual;
    residual.load(p.residual + at);
    float values[kBlock];
    residual.values(values);
#pragma unroll
    for (int i = 0; i < kBlock; ++i) sums[i] = __fadd_rn(sums[i], values[i]);
  }
  uint32_t words[WideBlock<kY>::kWords];
  pack_words<kY>(sums, words);
#pragma unroll
  for (uint32_t& word : words) word = canonical<kY>(word);
  store_words<kY, kBlock>(p.y + at, words, kBlock);
}

template <OutputType kRows>
__device__ void combine_rows(const CombineRowsParams& p) {
#if __CUDA_ARCH__ >= 900
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
#endif
  const uint32_t unit = blockIdx.x * kCombineThreads + threadIdx.x;
  const uint32_t token = quotient(unit, p.blocks), block = unit - token * p.blocks.value;
  if (token >= p.tokens) return;
  Sums sums = {};
#pragma unroll 1
  for (uint32_t first = 0; first < p.top_k; first += kRowsAtOnce<kRows>)
    add_rows<kRows>(p, token * p.top_k + first, p.top_k - first, block, sums);
  switch (p.y_type) {
    case OutputType::kF16:
      return finish<OutputType::kF16>(p, token, block, sums);
    case OutputType::kBF16:
      return finish<OutputType::kBF16>(p, token, block, sums);
    default:
      return finish<OutputType::kF32>(p, token, block, sums);
  }
}

}  // namespace

#define DUALGEMM_COMBINE_ROWS(name, type)                                          \
  extern "C" __global__ void __launch_bounds__(kCombineThreads)                    \
      dual_gemm_combine_rows_##name(const __grid_constant__ CombineRowsParams p) { \
    combine_rows<OutputType::type>(p);                                             \
  }
DUALGEMM_COMBINE_ROWS(f16, kF16)
DUALGEMM_COMBINE_ROWS(bf16, kBF16)
DUALGEMM_COMBINE_ROWS(f32, kF32)
#undef DUALGEMM_COMBINE_ROWS

Kernel combine_rows_kernel(OutputType rows) {
#define DUALGEMM_KERNEL(name) \
  { "combine_rows", #name, reinterpret_cast<const void*>(&name) }
  static const Kernel kernels[3] = {DUALGEMM_KERNEL(dual_gemm_combine_rows_f16),
                                    DUALGEMM_KERNEL(dual_gemm_combine_rows_bf16),
                                    DUALGEMM_KERNEL(dual_gemm_combine_rows_f32)};
#undef DUALGEMM_KERNEL
  return kernels[static_cast<int>(rows)];
}

}  // namespace dualgemm::cuda
