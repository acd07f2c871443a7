// A strided convolution of images whose pixels come through an im2col tensor map, beside the loops
// that define it.
#include <cuda.h>

#include <vector>

#include "program.hpp"

namespace {

constexpr int kChannels = 8, kWidth = 9, kHeight = 7, kImages = 2;
constexpr int kFilter = 3, kStride = 2, kPadding = 1;
constexpr int kColumns = (kWidth + 2 * kPadding - kFilter) / kStride + 1;
constexpr int kRows = (kHeight + 2 * kPadding - kFilter) / kStride + 1;
constexpr int kOutputs = kImages * kRows * kColumns, kPixels = 16;

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void load_pixels(const CUtensorMap& map, int* tile, unsigned long long* barrier, int x,
                            int y, int image, int s, int r) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(kPixels * kChannels * 4)
      : "memory");
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, "
      "{%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared_address(tile)),
      "l"(&map), "r"(0), "r"(x), "r"(y), "r"(image), "r"(shared_address(barrier)),
      "h"(static_cast<short>(s)), "h"(static_cast<short>(r))
      : "memory");
}

__device__ void wait(unsigned long long* barrier, int phase) {
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(phase)
        : "memory");
}

// A thread for each output of a block's kPixels; the filter goes from element to element.
__global__ void convolve(const __grid_constant__ CUtensorMap map, const int* filter, int* out) {
  __shared__ alignas(128) int tile[kPixels * kChannels];
  __shared__ alignas(8) unsigned long long barrier;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  const int first = static_cast<int>(blockIdx.x) * kPixels;
  int sum = 0;
  for (int tap = 0; tap < kFilter * kFilter; ++tap) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the tile has been read
    __syncthreads();
    if (threadIdx.x == 0)
      load_pixels(map, tile, &barrier, first % kColumns * kStride - kPadding,
                  first / kColumns % kRows * kStride - kPadding, first / (kColumns * kRows),
                  tap % kFilter, tap / kFilter);
    wait(&barrier, tap % 2);
    for (int c = 0; c < kChannels; ++c)
      sum += tile[threadIdx.x * kChannels + c] * filter[tap * kChannels + c];
  }
  if (first + threadIdx.x < kOutputs) out[first + threadIdx.x] = sum;
}

int expected(const std::vector<int>& images, const std::vector<int>& filter, int output) {
  const int q = output % kColumns, p = output / kColumns % kRows, n = output / (kColumns * kRows);
  int sum = 0;
  for (int r = 0; r < kFilter; ++r)
    for (int s = 0; s < kFilter; ++s) {
      const int h = p * kStride - kPadding + r, w = q * kStride - kPadding + s;
      if (h < 0 || h >= kHeight || w < 0 || w >= kWidth) continue;
      for (int c = 0; c < kChannels; ++c)
        sum += images[((n * kHeight + h) * kWidth + w) * kChannels + c] *
               filter[(r * kFilter + s) * kChannels + c];
    }
  return sum;
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t,
                            const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

CUtensorMap map_of(int* images) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &function, 12000,
                                              cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess);
  const cuuint64_t extents[4] = {kChannels, kWidth, kHeight, kImages};
  const cuuint64_t strides[3] = {kChannels * 4, kWidth * kChannels * 4,
                                 kHeight * kWidth * kChannels * 4};
  const int lower[2] = {-kPadding, -kPadding};
  const int upper[2] = {kPadding - (kFilter - 1), kPadding - (kFilter - 1)};
  const cuuint32_t steps[4] = {1, kStride, kStride, 1};
  CUtensorMap map;
  CHECK(reinterpret_cast<Encode>(function)(
            &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, images, extents, strides, lower, upper,
            kChannels, kPixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

}  // namespace

void convolution() {
  std::vector<int> images(kImages * kHeight * kWidth * kChannels),
      filter(kFilter * kFilter * kChannels);
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<int>(i * 37 % 101);
  for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<int>(i * 13 % 29) - 14;
  int *device_images, *device_filter, *out;
  CHECK_CUDA(cudaMalloc(&device_images, images.size() * 4));
  CHECK_CUDA(cudaMalloc(&device_filter, filter.size() * 4));
  CHECK_CUDA(cudaMalloc(&out, kOutputs * 4));
  CHECK_CUDA(cudaMemcpy(device_images, images.data(), images.size() * 4, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(device_filter, filter.data(), filter.size() * 4, cudaMemcpyHostToDevice));
  convolve<<<(kOutputs + kPixels - 1) / kPixels, kPixels>>>(map_of(device_images), device_filter,
                                                            out);
  std::vector<int> result(kOutputs);
  CHECK_CUDA(cudaMemcpy(result.data(), out, kOutputs * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kOutputs; ++i) CHECK(result[i] == expected(images, filter, i));
  CHECK_CUDA(cudaFree(device_images));
  CHECK_CUDA(cudaFree(device_filter));
  CHECK_CUDA(cudaFree(out));
}
