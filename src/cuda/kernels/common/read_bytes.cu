#include "cuda/kernels/common/read_bytes.hpp"

#include <algorithm>
#include <array>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {
namespace {

constexpr std::array kLoads{4, 8, 16};
constexpr uint32_t kUnlikely = 0x9E3779B9u;

// 16 loads may take 64 registers of their own.
DUALGEMM_HOST_DEVICE constexpr int max_threads(int loads) { return loads > 8 ? 512 : 1024; }

}  // namespace

// A thread's last round, too, has its loads side by side: at 33 MB there is hardly any other. ptxas
// keeps four to six of them in flight, to save registers (sm_90a, CUDA 13.0); 2048 threads of an SM
// with one each are as much as a GPU's memory asks for.
template <int kLoadsAtATime>
DUALGEMM_DEVICE void read_all(const ReadBytesParams& p) {
  const auto* const from = reinterpret_cast<const uint4*>(p.data);
  const int64_t count = p.bytes / 16, stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  uint32_t sum = 0;
#pragma unroll 1  // else rounds of 4 are unrolled to 16, which spills for sm_120a (CUDA 13.0)
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < count;
       at += kLoadsAtATime * stride) {
    uint4 words[kLoadsAtATime];
#pragma unroll
    for (int i = 0; i < kLoadsAtATime; ++i) {
      words[i] = at + i * stride < count ? __ldcs(from + at + i * stride) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < kLoadsAtATime; ++i)
      sum += words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  }
  if (sum == kUnlikely) *p.sum = sum;
}

#define DUALGEMM_READ_ENTRY(loads)                                                 \
  extern "C" __global__ void __launch_bounds__(max_threads(loads))                 \
      dual_gemm_read_bytes_by_##loads(const __grid_constant__ ReadBytesParams p) { \
    read_all<loads>(p);                                                            \
  }
DUALGEMM_READ_ENTRY(4)
DUALGEMM_READ_ENTRY(8)
DUALGEMM_READ_ENTRY(16)
#undef DUALGEMM_READ_ENTRY

std::span<const int> read_loads() { return kLoads; }
int max_read_threads(int loads) { return max_threads(loads); }

KernelLaunch read_bytes_launch(const ReadBytesParams& params, int num_sms, const ReadShape& shape) {
#define DUALGEMM_READ_KERNEL(loads)                       \
  Kernel{"read_bytes", "dual_gemm_read_bytes_by_" #loads, \
         reinterpret_cast<const void*>(&dual_gemm_read_bytes_by_##loads)}
  KernelLaunch launch{.kernel = shape.loads == 4    ? DUALGEMM_READ_KERNEL(4)
                                : shape.loads == 16 ? DUALGEMM_READ_KERNEL(16)
                                                    : DUALGEMM_READ_KERNEL(8)};
#undef DUALGEMM_READ_KERNEL
  launch.threads = static_cast<uint32_t>(std::clamp(shape.threads, 32, max_threads(shape.loads)));
  launch.ctas = static_cast<uint32_t>(std::max(num_sms, 1) * std::max(shape.ctas_per_sm, 1));
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda
