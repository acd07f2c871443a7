#include "cuda/kernels/portable/read_bytes.hpp"

#include <algorithm>

namespace dualgemm::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 8;     // loads of 16 bytes in flight
constexpr int kCtasPerSm = 4;  // all of its threads

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_read_bytes(const __grid_constant__ ReadBytesParams p) {
  const auto* const from = reinterpret_cast<const uint4*>(p.data);
  const int64_t count = p.bytes / 16, stride = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  uint32_t sum = 0;
  for (; at + (kUnroll - 1) * stride < count; at += kUnroll * stride) {
    uint4 words[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) words[i] = from[at + i * stride];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) sum += words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  }
  for (; at < count; at += stride) {
    const uint4 words = from[at];
    sum += words.x ^ words.y ^ words.z ^ words.w;
  }
  sum = __reduce_add_sync(0xFFFFFFFFu, sum);
  if (threadIdx.x % 32 == 0) atomicAdd(p.sum, sum);
}

KernelLaunch read_bytes_launch(const ReadBytesParams& params, int num_sms) {
  KernelLaunch launch{.kernel = {"read_bytes", "dual_gemm_read_bytes",
                                 reinterpret_cast<const void*>(&dual_gemm_read_bytes)},
                      .threads = kThreads};
  launch.ctas = static_cast<uint32_t>(std::max(num_sms, 1) * kCtasPerSm);
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda
