#include "cuda/kernels/portable/dequantize.hpp"

#include <algorithm>
#include <string>

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int kSfVec = 16;     // codes that share one scale
constexpr int kThreads = 256;  // per CTA; one thread decodes one 16-block
constexpr int64_t kMaxCtas = 65535;

// E4M3 without its sign: 4 exponent bits with bias 7, 3 mantissa bits, 0x7F is NaN, no infinities.
__device__ float decode_scale(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7F;
  if (magnitude == 0x7F) return __uint_as_float(0x7FC00000u);
  if (magnitude < 8) return static_cast<float>(magnitude) * 0x1p-9f;  // subnormal
  return __uint_as_float((magnitude << 20) + ((127u - 7u) << 23));
}

// Twice an E2M1 value is one of 0 1 2 3 4 6 8 12: eight nibbles of one constant hold them all.
__device__ float decode_code(uint32_t code) {
  const uint32_t twice = (0xC8643210u >> (4 * (code & 7))) & 0xF;
  const float value = static_cast<float>(twice) * 0.5f;
  return code & 8 ? -value : value;
}

__global__ void __launch_bounds__(kThreads)
    dequantize_blocks(const uint8_t* codes, const uint8_t* scales, int64_t num_blocks, float* out) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t block = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
       block < num_blocks; block += stride) {
    const float scale = decode_scale(scales[block]);
    const uint8_t* const pairs = codes + block * (kSfVec / 2);  // (kSfVec/2) bytes
    float* const values = out + block * kSfVec;                 // (kSfVec) floats
    for (int i = 0; i < kSfVec / 2; ++i) {
      values[2 * i] = decode_code(pairs[i] & 0xF) * scale;
      values[2 * i + 1] = decode_code(pairs[i] >> 4) * scale;
    }
  }
}

}  // namespace

Status dequantize_nvfp4(const uint8_t* codes, const uint8_t* scales, int64_t rows, int64_t cols,
                        float* out, cudaStream_t stream) {
  if (rows < 0) return Status::invalid("rows", std::to_string(rows), "must not be negative");
  if (cols < 0 || cols % kSfVec != 0) {
    return Status::invalid("cols", std::to_string(cols), "must be a multiple of 16");
  }
  int64_t num_blocks = 0;
  if (__builtin_mul_overflow(rows, cols / kSfVec, &num_blocks)) {
    return Status::error(StatusCode::kOverflow, "rows * cols", "more than 2^63 - 1",
                         "must fit in 64 bits");
  }
  if (num_blocks == 0) return {};
  const int64_t ctas = std::min((num_blocks + kThreads - 1) / kThreads, kMaxCtas);
  dequantize_blocks<<<static_cast<unsigned>(ctas), kThreads, 0, stream>>>(codes, scales, num_blocks,
                                                                          out);
  DUALGEMM_CUDA_TRY(cudaGetLastError());
  return {};
}

}  // namespace dualgemm::cuda
