#include "cuda/kernels/common/join.hpp"

#include <cuda_fp16.h>

#include <algorithm>

#include "cuda/device/activation.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"

namespace dualgemm::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRun = 8;  // neighbouring outputs of a thread
constexpr int64_t kMaxCtas = 1 << 20;

// Eight values from a multiple of 16 bytes.
__device__ void load_run(const float* from, float (&values)[kRun]) {
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  const float all[kRun] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < kRun; ++i) values[i] = all[i];
}
__device__ void load_run(const __half* from, float (&values)[kRun]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  const uint32_t all[kRun / 2] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < kRun / 2; ++i) {
    const float2 pair = __half22float2(reinterpret_cast<const __half2&>(all[i]));
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// One of the two factors: product times alpha and scales, in FP32.
template <class Number>
__device__ void load_scaled(const Number* product, const float* column_scales, float alpha,
                            float row_scale, float (&values)[kRun]) {
  load_run(product, values);
  float columns[kRun] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
  if (column_scales != nullptr) load_run(column_scales, columns);
#pragma unroll
  for (int i = 0; i < kRun; ++i) values[i] = values[i] * columns[i] * alpha * row_scale;
}

template <class Number, OutputType kType>
__device__ void join_all(const JoinParams& p) {
  const auto row_runs = static_cast<uint32_t>((p.n + kRun - 1) / kRun);
  const int64_t runs = p.rows * p.batches * row_runs;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads; first < runs;
       first += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t first_row = first / row_runs;  // the same in all threads
    const uint32_t offset = static_cast<uint32_t>(first - first_row * row_runs) + threadIdx.x;
    const int64_t flat_row = first_row + offset / row_runs;
    const int64_t col = static_cast<int64_t>(offset % row_runs) * kRun;
    if (first + threadIdx.x >= runs) continue;
    const int64_t batch = p.batches == 1 ? 0 : flat_row / p.rows;
    float row_scale = p.a_row_scale == nullptr ? 1.0f : p.a_row_scale[flat_row];
    if (p.requantized_rows != nullptr) row_scale *= p.requantized_rows[flat_row];
    const auto columns = [&](const float* scales) {
      return scales == nullptr ? nullptr : scales + batch * p.requantized_stride + col;
    };
    const auto alpha = [&](const float* per_batch, float same) {
      return per_batch == nullptr ? same : per_batch[batch];
    };
    const int64_t at = flat_row * p.product_ld + col;
    float g[kRun], u[kRun];
    load_scaled(static_cast<const Number*>(p.gate) + at, columns(p.requantized_gate),
                alpha(p.alpha_gate_per_batch, p.alpha_gate), row_scale, g);
    load_scaled(static_cast<const Number*>(p.up) + at, columns(p.requantized_up),
                alpha(p.alpha_up_per_batch, p.alpha_up), row_scale, u);
    add_row_bias(p.bias, batch * p.bias.stride + col, col, p.n, g, u);
    activate_all(p.act, g, u);
    uint8_t* const row =
        p.d + batch * p.d_batch_bytes + (flat_row - batch * p.rows) * p.d_row_bytes;
    store_row<kType, kRun>(row + col * bytes_of(kType), g,
                           static_cast<int>(min(p.n - col, int64_t{kRun})));
  }
}

}  // namespace

#define DUALGEMM_JOIN(name, Number, kType)               \
  extern "C" __global__ void __launch_bounds__(kThreads) \
      name(const __grid_constant__ JoinParams p) {       \
    join_all<Number, OutputType::kType>(p);              \
  }
DUALGEMM_JOIN(dual_gemm_join_f32_f16, float, kF16)
DUALGEMM_JOIN(dual_gemm_join_f32_bf16, float, kBF16)
DUALGEMM_JOIN(dual_gemm_join_f32_f32, float, kF32)
DUALGEMM_JOIN(dual_gemm_join_f16_f16, __half, kF16)
DUALGEMM_JOIN(dual_gemm_join_f16_bf16, __half, kBF16)
DUALGEMM_JOIN(dual_gemm_join_f16_f32, __half, kF32)
#undef DUALGEMM_JOIN

KernelLaunch join_launch(const JoinParams& params, OutputType product, OutputType d) {
#define DUALGEMM_KERNEL(name) \
  { "join", #name, reinterpret_cast<const void*>(&name) }
  static const Kernel kernels[2][3] = {
      // [product is f16][d]
      {DUALGEMM_KERNEL(dual_gemm_join_f32_f16), DUALGEMM_KERNEL(dual_gemm_join_f32_bf16),
       DUALGEMM_KERNEL(dual_gemm_join_f32_f32)},
      {DUALGEMM_KERNEL(dual_gemm_join_f16_f16), DUALGEMM_KERNEL(dual_gemm_join_f16_bf16),
       DUALGEMM_KERNEL(dual_gemm_join_f16_f32)}};
#undef DUALGEMM_KERNEL
  KernelLaunch launch{.kernel = kernels[product == OutputType::kF16][static_cast<int>(d)],
                      .threads = kThreads};
  const int64_t runs = params.rows * params.batches * ((params.n + kRun - 1) / kRun);
  launch.ctas =
      static_cast<uint32_t>(std::clamp<int64_t>((runs + kThreads - 1) / kThreads, 1, kMaxCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda
