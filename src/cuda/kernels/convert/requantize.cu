#include "cuda/kernels/convert/requantize.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "cuda/kernels/common/source.cuh"

namespace dualgemm::cuda {
namespace {

constexpr int kLanes = 32;
constexpr int kThreads = 256;  // of a CTA, which takes a row
constexpr int64_t kMaxCtas = 1 << 20;
constexpr float kE4M3Max = 448.0f;

struct Nvfp4Decoder {
  static constexpr bool kNeverSubnormal = true;  // a value is 0 or 2^-10 .. 2688
  static __device__ void chunk(const Nvfp4Source& source, const SourceExtent& extent, SourceRow at,
                               uint32_t chunk, float (&values)[kChunk]) {
    const RawChunk raw = load_chunk(source, extent, at, chunk);
    decode_chunk(raw.codes, decode_scale(raw.scale), values);
  }
};

__device__ float to_float(__half_raw bits) { return __half2float(__half(bits)); }
__device__ float to_float(__nv_bfloat16_raw bits) { return __bfloat162float(__nv_bfloat16(bits)); }

template <class Raw>
struct HalfDecoder {
  static constexpr bool kNeverSubnormal = false;
  static __device__ void chunk(const HalfSource& source, const SourceExtent& extent, SourceRow at,
                               uint32_t chunk, float (&values)[kChunk]) {
    const uint8_t* const from = source.values + at.batch * source.batch_bytes +
                                at.row * source.row_bytes + chunk * (kChunk * sizeof(Raw));
    Raw raw[kChunk] = {};
    if (at.row < extent.rows && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
      *reinterpret_cast<uint4*>(raw) = *reinterpret_cast<const uint4*>(from);
    } else if (at.row < extent.rows) {
      for (int i = 0; i < kChunk; ++i) raw[i] = reinterpret_cast<const Raw*>(from)[i];
    }
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = to_float(raw[i]);
  }
};

// value / divisor, rounded to nearest, without the division's slow path, which every zero takes.
// One correction gives the rounded quotient for every NVFP4 value and the scale of every amax
// (all pairs were tried).
__device__ float divide(float value, float divisor, float reciprocal) {
  float quotient = value * reciprocal;
  quotient = fmaf(fmaf(-quotient, divisor, value), reciprocal, quotient);
  return copysignf(quotient, value);
}

// Eight codes, the first in the lowest byte.
template <bool kNeverSubnormal>
__device__ uint2 encode_chunk(const float (&values)[kChunk], float divisor) {
  const float reciprocal = 1.0f / divisor;
  const auto quotient = [&](float value) {
    return kNeverSubnormal ? divide(value, divisor, reciprocal) : value / divisor;
  };
  uint32_t words[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < kChunk; i += 2) {
    const float2 pair = make_float2(quotient(values[i]), quotient(values[i + 1]));
    const uint32_t codes = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
    words[i / 4] |= codes << (8 * (i % 4));
  }
  return make_uint2(words[0], words[1]);
}

// The largest of all threads' values, in every thread. Ends with a barrier behind the last use of
// the shared words.
__device__ uint32_t max_of_cta(uint32_t value) {
  __shared__ uint32_t of_warp[kThreads / kLanes];
  const uint32_t largest = __reduce_max_sync(0xFFFFFFFFu, value);
  if (threadIdx.x % kLanes == 0) of_warp[threadIdx.x / kLanes] = largest;
  __syncthreads();
  const uint32_t all = __reduce_max_sync(0xFFFFFFFFu, of_warp[threadIdx.x % (kThreads / kLanes)]);
  __syncthreads();
  return all;
}

// A row is read twice; the second time it comes from a cache.
template <class OperandDecoder, class Source>
__device__ void requantize_all(const RequantizeParams<Source>& p) {
  const auto row_chunks = static_cast<uint32_t>(p.extent.cols / kChunk);
  const int64_t rows = p.extent.out_rows * p.extent.batches;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const SourceRow at = source_row(p.extent, row);
    float values[kChunk];
    uint32_t amax = 0;  // magnitudes order like their bits, and any NaN lies above infinity
    for (uint32_t chunk = threadIdx.x; chunk < row_chunks; chunk += kThreads) {
      OperandDecoder::chunk(p.source, p.extent, at, chunk, values);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) amax = max(amax, __float_as_uint(values[i]) & 0x7FFFFFFF);
    }
    const float scale = __uint_as_float(max_of_cta(amax)) / kE4M3Max;
    if (threadIdx.x == 0) p.scales[row] = scale;
    uint8_t* const out = p.codes + row * p.extent.cols;
    for (uint32_t chunk = threadIdx.x; chunk < row_chunks; chunk += kThreads) {
      OperandDecoder::chunk(p.source, p.extent, at, chunk, values);
      *reinterpret_cast<uint2*>(out + chunk * kChunk) =
          encode_chunk<OperandDecoder::kNeverSubnormal>(values, scale == 0.0f ? 1.0f : scale);
    }
  }
}

template <class Source>
KernelLaunch launch_of(const Kernel& kernel, const RequantizeParams<Source>& params) {
  KernelLaunch launch{.kernel = kernel, .threads = kThreads};
  const int64_t rows = params.extent.out_rows * params.extent.batches;
  launch.ctas = static_cast<uint32_t>(std::clamp<int64_t>(rows, 1, kMaxCtas));
  launch.set_params(params);
  return launch;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_requantize_nvfp4(const __grid_constant__ RequantizeParams<Nvfp4Source> p) {
  requantize_all<Nvfp4Decoder>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_requantize_f16(const __grid_constant__ RequantizeParams<HalfSource> p) {
  requantize_all<HalfDecoder<__half_raw>>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_requantize_bf16(const __grid_constant__ RequantizeParams<HalfSource> p) {
  requantize_all<HalfDecoder<__nv_bfloat16_raw>>(p);
}

KernelLaunch requantize_launch(const RequantizeParams<Nvfp4Source>& params) {
  return launch_of({"requantize", "dual_gemm_requantize_nvfp4",
                    reinterpret_cast<const void*>(&dual_gemm_requantize_nvfp4)},
                   params);
}

KernelLaunch requantize_launch(const RequantizeParams<HalfSource>& params, HalfType type) {
  if (type == HalfType::kF16) {
    return launch_of({"requantize", "dual_gemm_requantize_f16",
                      reinterpret_cast<const void*>(&dual_gemm_requantize_f16)},
                     params);
  }
  return launch_of({"requantize", "dual_gemm_requantize_bf16",
                    reinterpret_cast<const void*>(&dual_gemm_requantize_bf16)},
                   params);
}

}  // namespace dualgemm::cuda
