// Texture objects: what a fetch gives, beside the formulas of the CUDA C++ Programming Guide
// ("Texture Fetching") in double.
#include <cuda_fp16.h>

#include "texture.hpp"

namespace {

__global__ void fetch(cudaTextureObject_t texture, const Point* points, int dimensions,
                      float* out) {
  const int i = static_cast<int>(threadIdx.x);
  const Point p = points[i];
  out[i] = dimensions == 1   ? tex1D<float>(texture, p.x)
           : dimensions == 2 ? tex2D<float>(texture, p.x, p.y)
                             : tex3D<float>(texture, p.x, p.y, p.z);
}

template <class T>
__global__ void fetch_texels(cudaTextureObject_t texture, T* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex1Dfetch<T>(texture, i - 2);
}

__global__ void write_then_fetch(cudaTextureObject_t texture, float* memory, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  memory[i] = 1;
  __syncthreads();
  out[i] = tex1Dfetch<float>(texture, i);
}

constexpr cudaTextureAddressMode kModes[] = {cudaAddressModeWrap, cudaAddressModeClamp,
                                             cudaAddressModeMirror, cudaAddressModeBorder};

void every_mode(int dimensions) {
  const cudaExtent extent =
      make_cudaExtent(kWidth, dimensions > 1 ? kHeight : 0, dimensions > 2 ? kDepth : 0);
  Model model;
  model.dimensions = dimensions;
  model.extents[0] = kWidth;
  if (dimensions > 1) model.extents[1] = kHeight;
  if (dimensions > 2) model.extents[2] = kDepth;
  const std::vector<float> texels = numbers(model.extents[0] * model.extents[1] * model.extents[2]);
  model.texels.assign(texels.begin(), texels.end());
  const cudaArray_t array = array_of(texels, extent);
  for (const cudaTextureAddressMode mode : kModes)
    for (const bool linear : {false, true})
      for (const bool normalized : {false, true}) {
        model.mode = mode, model.linear = linear, model.normalized = normalized;
        cudaTextureDesc s = settings(mode, linear, normalized);
        s.borderColor[0] = 7;
        model.border = 7;
        const cudaTextureObject_t texture = texture_of(array, s);
        fetches_as(model, [&](const Point* points, float* out) {
          fetch<<<1, kPoints>>>(texture, points, dimensions, out);
        });
        CHECK_CUDA(cudaDestroyTextureObject(texture));
      }
  CHECK_CUDA(cudaFreeArray(array));
}

// Integers as they are and as normalized floats, halves, and rows of ordinary memory.
template <class T>
void normalized_reads(double scale, double least) {
  std::vector<T> texels(kWidth * kHeight);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<T>(i * 8191 + 3 * i);
  Model model;
  model.dimensions = 2, model.extents[0] = kWidth, model.extents[1] = kHeight, model.linear = true;
  for (const T t : texels) model.texels.push_back(std::max(t / scale, least));
  const cudaArray_t array = array_of(texels, make_cudaExtent(kWidth, kHeight, 0));
  cudaTextureDesc s = settings(cudaAddressModeClamp, true, false);
  s.readMode = cudaReadModeNormalizedFloat;
  const cudaTextureObject_t texture = texture_of(array, s);
  fetches_as(model, [&](const Point* points, float* out) {
    fetch<<<1, kPoints>>>(texture, points, 2, out);
  });
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
}

void rows_of_halves() {
  Model model;
  model.dimensions = 2, model.extents[0] = kWidth, model.extents[1] = kHeight;
  const std::vector<float> values = numbers(kWidth * kHeight);
  model.texels.assign(values.begin(), values.end());
  void* memory;
  size_t pitch;
  CHECK_CUDA(cudaMallocPitch(&memory, &pitch, kWidth * sizeof(__half), kHeight));
  std::vector<__half> halves;
  for (const float v : values) halves.push_back(__float2half(v));
  CHECK_CUDA(cudaMemcpy2D(memory, pitch, halves.data(), kWidth * sizeof(__half),
                          kWidth * sizeof(__half), kHeight, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.desc = cudaCreateChannelDescHalf();
  resource.res.pitch2D.width = kWidth;
  resource.res.pitch2D.height = kHeight;
  resource.res.pitch2D.pitchInBytes = pitch;
  const cudaTextureDesc s = settings(cudaAddressModeClamp, true, false);
  model.linear = true;
  cudaTextureObject_t texture;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &s, nullptr));
  fetches_as(model, [&](const Point* points, float* out) {
    fetch<<<1, kPoints>>>(texture, points, 2, out);
  });
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFree(memory));
}

cudaTextureObject_t linear_texture(void* memory, size_t bytes, cudaChannelFormatDesc format) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = format;
  resource.res.linear.sizeInBytes = bytes;
  const cudaTextureDesc s = {};
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &s, nullptr));
  return texture;
}

bool same(short2 a, short2 b) { return a.x == b.x && a.y == b.y; }
bool same(uint4 a, uint4 b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }
bool same(signed char a, signed char b) { return a == b; }

// Beyond both ends there are zeros.
template <class T>
void linear_memory(const std::vector<T>& values) {
  T* memory = on_device(values);
  const cudaTextureObject_t texture =
      linear_texture(memory, values.size() * sizeof(T), cudaCreateChannelDesc<T>());
  T* out;
  const int count = static_cast<int>(values.size()) + 4;
  CHECK_CUDA(cudaMalloc(&out, count * sizeof(T)));
  fetch_texels<<<1, count>>>(texture, out);
  const std::vector<T> result = from_device(out, count);
  for (int i = 0; i < count; ++i)
    CHECK(same(result[i], i < 2 || i >= count - 2 ? T{} : values[i - 2]));
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFree(memory));
  CHECK_CUDA(cudaFree(out));
}

}  // namespace

void textures() {
  for (int dimensions = 1; dimensions <= 3; ++dimensions) every_mode(dimensions);
  normalized_reads<unsigned char>(255, 0);
  normalized_reads<signed char>(127, -1);
  normalized_reads<unsigned short>(65535, 0);
  normalized_reads<short>(32767, -1);
  rows_of_halves();
  linear_memory<short2>({{1, -2}, {-32768, 32767}, {5, 6}});
  linear_memory<uint4>({{1, 2, 3, 4}, {0xffffffff, 6, 7, 8}});
  linear_memory<signed char>({-128, 127, -1, 0, 3});
}

// The texture's cache need not have what the same kernel wrote.
void texture_of_written() {
  float *memory = on_device(std::vector<float>(32)), *out;
  CHECK_CUDA(cudaMalloc(&out, 32 * sizeof(float)));
  const cudaTextureObject_t texture =
      linear_texture(memory, 32 * sizeof(float), cudaCreateChannelDesc<float>());
  write_then_fetch<<<1, 32>>>(texture, memory, out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFree(memory));
  CHECK_CUDA(cudaFree(out));
}
