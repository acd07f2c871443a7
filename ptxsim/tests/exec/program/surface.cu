// Surface objects: accesses by bytes, what happens outside, reductions, and queries.
#include <algorithm>
#include <vector>

#include "program.hpp"

namespace {

constexpr int kWidth = 8, kHeight = 4, kDepth = 3;

template <class T>
cudaArray_t array_of(cudaExtent extent, unsigned flags = 0) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t array;
  CHECK_CUDA(cudaMalloc3DArray(&array, &format, extent, flags | cudaArraySurfaceLoadStore));
  return array;
}

cudaResourceDesc resource_of(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaSurfaceObject_t surface_of(cudaArray_t array) {
  const cudaResourceDesc resource = resource_of(array);
  cudaSurfaceObject_t surface = 0;
  CHECK_CUDA(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

template <class T>
std::vector<T> texels_of(cudaArray_t array, cudaExtent extent) {
  std::vector<T> texels(extent.width * extent.height * extent.depth);
  cudaMemcpy3DParms copy = {};
  copy.srcArray = array;
  copy.dstPtr =
      make_cudaPitchedPtr(texels.data(), extent.width * sizeof(T), extent.width, extent.height);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK_CUDA(cudaMemcpy3D(&copy));
  return texels;
}

__global__ void number_2d(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const float v = static_cast<float>(10 * y + x);
  surf2Dwrite(make_float4(v, v + 0.25f, v + 0.5f, v + 0.75f), surface, x * 16, y);
}

__global__ void transpose_2d(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  surf2Dwrite(surf2Dread<float4>(from, x * 16, y), to, y * 16, x);
}

// Each thread one step beyond the edges.
__global__ void outside(cudaSurfaceObject_t surface, short* clamped, short* zeroed) {
  const int x = static_cast<int>(threadIdx.x) - 1, y = static_cast<int>(threadIdx.y) - 1;
  const int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  clamped[i] = surf2Dread<short>(surface, x * 2, y, cudaBoundaryModeClamp);
  zeroed[i] = surf2Dread<short>(surface, x * 2, y, cudaBoundaryModeZero);
}

__global__ void write_outside(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x) - 1;
  surf2Dwrite(static_cast<short>(100 + x), surface, x * 2, 1, cudaBoundaryModeZero);
}

__global__ void number_3d(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y),
            z = static_cast<int>(threadIdx.z);
  surf3Dwrite(make_uint2(x + 10 * y, z), surface, x * 8, y, z);
}

__global__ void number_layers(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y),
            z = static_cast<int>(threadIdx.z);
  surf2DLayeredwrite(make_uint2(x + 10 * y, z), surface, x * 8, y, z);
}

__global__ void number_faces(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y),
            z = static_cast<int>(threadIdx.z);
  surfCubemapwrite(make_uint2(x + 10 * y, z), surface, x * 8, y, z);
}

__global__ void bytes_1d(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x);
  surf1Dwrite(static_cast<unsigned char>(2 * x + 1), surface, x);
}

__global__ void count(cudaSurfaceObject_t surface) {
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(surface),
               "r"(threadIdx.x % kWidth * 4), "r"(threadIdx.x / 32 % kHeight), "r"(threadIdx.x)
               : "memory");
  asm volatile("sured.b.max.2d.s32.zero [%0, {%1, %2}], %3;" ::"l"(surface), "r"(kWidth * 4),
               "r"(0), "r"(1)
               : "memory");
}

__global__ void ask(cudaSurfaceObject_t surface, cudaTextureObject_t texture, unsigned* out) {
  asm("suq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(surface));
  asm("suq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(surface));
  asm("suq.array_size.b32 %0, [%1];" : "=r"(out[2]) : "l"(surface));
  asm("txq.width.b32 %0, [%1];" : "=r"(out[3]) : "l"(texture));
  asm("txq.depth.b32 %0, [%1];" : "=r"(out[4]) : "l"(texture));
  asm("txq.normalized_coords.b32 %0, [%1];" : "=r"(out[5]) : "l"(texture));
  asm("{ .reg .pred p; istypep.texref p, %1; selp.u32 %0, 1, 0, p; }"
      : "=r"(out[6])
      : "l"(surface));
  asm("{ .reg .pred p; istypep.surfref p, %1; selp.u32 %0, 1, 0, p; }"
      : "=r"(out[7])
      : "l"(surface));
}

__global__ void write_at(cudaSurfaceObject_t surface, int x) {
  surf1Dwrite(static_cast<unsigned char>(1), surface, x);
}

void planes_of_floats() {
  const cudaExtent extent = make_cudaExtent(kWidth, kHeight, 0),
                   turned = make_cudaExtent(kHeight, kWidth, 0);
  const cudaArray_t a = array_of<float4>(extent), b = array_of<float4>(turned);
  const cudaSurfaceObject_t from = surface_of(a), to = surface_of(b);
  number_2d<<<1, dim3(kWidth, kHeight)>>>(from);
  transpose_2d<<<1, dim3(kWidth, kHeight)>>>(from, to);
  std::vector<float4> result(kWidth * kHeight);
  CHECK_CUDA(cudaMemcpy2DFromArray(result.data(), kHeight * sizeof(float4), b, 0, 0,
                                   kHeight * sizeof(float4), kWidth, cudaMemcpyDeviceToHost));
  for (int x = 0; x < kWidth; ++x)
    for (int y = 0; y < kHeight; ++y) {
      const float4 v = result[x * kHeight + y];
      const auto first = static_cast<float>(10 * y + x);
      CHECK(v.x == first && v.y == first + 0.25f && v.z == first + 0.5f && v.w == first + 0.75f);
    }
  CHECK_CUDA(cudaDestroySurfaceObject(from));
  CHECK_CUDA(cudaDestroySurfaceObject(to));
  CHECK_CUDA(cudaFreeArray(a));
  CHECK_CUDA(cudaFreeArray(b));
}

void edges() {
  const cudaExtent extent = make_cudaExtent(kWidth, kHeight, 0);
  const cudaArray_t array = array_of<short>(extent);
  std::vector<short> texels(kWidth * kHeight);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<short>(i * 7 - 50);
  CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), kWidth * 2, kWidth * 2, kHeight,
                                 cudaMemcpyHostToDevice));
  const cudaSurfaceObject_t surface = surface_of(array);
  constexpr int kCount = (kWidth + 2) * (kHeight + 2);
  short *clamped, *zeroed, result[2][kCount];
  CHECK_CUDA(cudaMalloc(&clamped, sizeof result[0]));
  CHECK_CUDA(cudaMalloc(&zeroed, sizeof result[0]));
  outside<<<1, dim3(kWidth + 2, kHeight + 2)>>>(surface, clamped, zeroed);
  CHECK_CUDA(cudaMemcpy(result[0], clamped, sizeof result[0], cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(result[1], zeroed, sizeof result[1], cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    const int x = i % (kWidth + 2) - 1, y = i / (kWidth + 2) - 1;
    const int near_x = std::min(std::max(x, 0), kWidth - 1),
              near_y = std::min(std::max(y, 0), kHeight - 1);
    CHECK(result[0][i] == texels[near_y * kWidth + near_x]);
    CHECK(result[1][i] == (x == near_x && y == near_y ? texels[y * kWidth + x] : 0));
  }
  write_outside<<<1, kWidth + 2>>>(surface);
  const std::vector<short> written = texels_of<short>(array, make_cudaExtent(kWidth, kHeight, 1));
  for (int i = 0; i < kWidth * kHeight; ++i)
    CHECK(written[i] == (i / kWidth == 1 ? 100 + i % kWidth : texels[i]));
  CHECK_CUDA(cudaDestroySurfaceObject(surface));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(clamped));
  CHECK_CUDA(cudaFree(zeroed));
}

void slices(void (*kernel)(cudaSurfaceObject_t), int width, int height, int depth, unsigned flags) {
  const cudaExtent extent = make_cudaExtent(width, height, depth);
  const cudaArray_t array = array_of<uint2>(extent, flags);
  const cudaSurfaceObject_t surface = surface_of(array);
  kernel<<<1, dim3(width, height, depth)>>>(surface);
  const std::vector<uint2> texels = texels_of<uint2>(array, extent);
  for (int i = 0; i < width * height * depth; ++i) {
    CHECK(static_cast<int>(texels[i].x) == i % width + 10 * (i / width % height));
    CHECK(static_cast<int>(texels[i].y) == i / (width * height));
  }
  CHECK_CUDA(cudaDestroySurfaceObject(surface));
  CHECK_CUDA(cudaFreeArray(array));
}

void rows_of_bytes() {
  const cudaArray_t array = array_of<unsigned char>(make_cudaExtent(32, 0, 0));
  const cudaSurfaceObject_t surface = surface_of(array);
  bytes_1d<<<1, 32>>>(surface);
  const std::vector<unsigned char> texels =
      texels_of<unsigned char>(array, make_cudaExtent(32, 1, 1));
  for (int i = 0; i < 32; ++i) CHECK(texels[i] == 2 * i + 1);
  CHECK_CUDA(cudaDestroySurfaceObject(surface));
  CHECK_CUDA(cudaFreeArray(array));
}

void reductions_and_queries() {
  const cudaExtent extent = make_cudaExtent(kWidth, kHeight, 0);
  const cudaArray_t array = array_of<unsigned>(extent);
  const std::vector<unsigned> zeros(kWidth * kHeight);
  CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, zeros.data(), kWidth * 4, kWidth * 4, kHeight,
                                 cudaMemcpyHostToDevice));
  const cudaSurfaceObject_t surface = surface_of(array);
  count<<<2, 128>>>(surface);
  std::vector<unsigned> expected(kWidth * kHeight);
  for (unsigned i = 0; i < 256; ++i) expected[i / 32 % kHeight * kWidth + i % kWidth] += i % 128;
  CHECK(texels_of<unsigned>(array, make_cudaExtent(kWidth, kHeight, 1)) == expected);
  const cudaArray_t volume = array_of<float>(make_cudaExtent(5, 6, 7));
  const cudaResourceDesc resource = resource_of(volume);
  cudaTextureDesc settings = {};
  settings.normalizedCoords = 1;
  cudaTextureObject_t texture;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &settings, nullptr));
  unsigned *out, answers[8];
  CHECK_CUDA(cudaMalloc(&out, sizeof answers));
  ask<<<1, 1>>>(surface, texture, out);
  CHECK_CUDA(cudaMemcpy(answers, out, sizeof answers, cudaMemcpyDeviceToHost));
  const unsigned right[8] = {kWidth, kHeight, 0, 5, 7, 1, 0, 1};
  for (int i = 0; i < 8; ++i) CHECK(answers[i] == right[i]);
  cudaChannelFormatDesc format;
  cudaExtent asked;
  unsigned flags;
  CHECK_CUDA(cudaArrayGetInfo(&format, &asked, &flags, volume));
  CHECK(format.x == 32 && format.y == 0 && format.f == cudaChannelFormatKindFloat);
  CHECK(asked.width == 5 && asked.height == 6 && asked.depth == 7 &&
        flags == cudaArraySurfaceLoadStore);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaDestroySurfaceObject(surface));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFreeArray(volume));
  CHECK_CUDA(cudaFree(out));
}

// From the middle of a row on into the next: calls that CUDA still has, deprecated.
#pragma nv_diag_suppress 1444
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void runs() {
  const cudaExtent extent = make_cudaExtent(4, 4, 0);
  const cudaArray_t array = array_of<int>(extent), other = array_of<int>(extent);
  int numbers[16], back[3] = {};
  for (int i = 0; i < 16; ++i) numbers[i] = i * i;
  CHECK_CUDA(cudaMemcpyToArray(array, 0, 0, numbers, 64, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpyToArrayAsync(array, 12, 1, numbers, 8, cudaMemcpyHostToDevice, nullptr));
  CHECK_CUDA(cudaMemcpyArrayToArray(other, 4, 0, array, 8, 1, 12, cudaMemcpyDeviceToDevice));
  CHECK_CUDA(cudaMemcpyFromArray(back, other, 4, 0, 12, cudaMemcpyDeviceToHost));
  CHECK(back[0] == 36 && back[1] == 0 && back[2] == 1);
  CHECK_CUDA(cudaMemcpyFromArrayAsync(back, array, 8, 2, 12, cudaMemcpyDeviceToHost, nullptr));
  CHECK(back[0] == 100 && back[1] == 121 && back[2] == 144);
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFreeArray(other));
}

}  // namespace

void surfaces() {
  planes_of_floats();
  edges();
  slices(number_3d, kWidth, kHeight, kDepth, 0);
  slices(number_layers, kWidth, kHeight, kDepth, cudaArrayLayered);
  slices(number_faces, 4, 4, 6, cudaArrayCubemap);
  rows_of_bytes();
  runs();
  reductions_and_queries();
}

// Outside, with .trap: the kernel ends.
void surface_trap() {
  const cudaArray_t array = array_of<unsigned char>(make_cudaExtent(32, 0, 0));
  write_at<<<1, 1>>>(surface_of(array), 32);
  CHECK(cudaDeviceSynchronize() != cudaSuccess);
}

// What CUDA refuses, and what is not modelled.
void image_errors() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>(),
                              ints = cudaCreateChannelDesc<int>();
  cudaArray_t array, odd;
  cudaSurfaceObject_t surface;
  cudaTextureObject_t texture;
  CHECK_CUDA(cudaMallocArray(&array, &ints, 4, 4));
  const cudaChannelFormatDesc three = {8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  CHECK(cudaMallocArray(&odd, &three, 4, 4) == cudaErrorInvalidValue);
  CHECK(cudaMallocArray(&odd, &floats, 0, 4) == cudaErrorInvalidValue);
  const cudaResourceDesc resource = resource_of(array);
  CHECK(cudaCreateSurfaceObject(&surface, &resource) == cudaErrorInvalidValue);  // not for surfaces
  cudaTextureDesc settings = {};
  settings.filterMode = cudaFilterModeLinear;
  CHECK(cudaCreateTextureObject(&texture, &resource, &settings, nullptr) == cudaErrorInvalidValue);
  const int row[5] = {};
  CHECK(cudaMemcpy2DToArray(array, 0, 0, row, 20, 20, 1, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemcpyToArray(array, 12, 3, row, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  settings = {};
  settings.maxAnisotropy = 4;
  CHECK(cudaCreateTextureObject(&texture, &resource, &settings, nullptr) != cudaSuccess);
  CHECK_CUDA(cudaFreeArray(array));
}
