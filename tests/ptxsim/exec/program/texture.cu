// Texture objects: what a fetch gives, beside the formulas of the CUDA C++ Programming Guide ("Texture Fetching") in double.
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "program.hpp"

namespace {

constexpr int kWidth = 8, kHeight = 4, kDepth = 4, kPoints = 256;

// ---- The formulas ----

struct Model {
  int extents[3] = {1, 1, 1};
  int dimensions = 1;
  std::vector<double> texels;
  cudaTextureAddressMode mode = cudaAddressModeClamp;
  bool normalized = false, linear = false;
  double border = 0;

  double texel(const int (&at)[3]) const {
    int place[3] = {0, 0, 0};
    for (int i = 0; i < dimensions; ++i) {
      const int n = extents[i];
      int p = at[i];
      const bool repeats =
          normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror);
      if (repeats && mode == cudaAddressModeWrap) {
        while (p < 0) p += n;
        while (p >= n) p -= n;
      } else if (repeats) {
        while (p < 0 || p >= n) p = p < 0 ? -1 - p : 2 * n - 1 - p;
      } else if (mode == cudaAddressModeBorder) {
        if (p < 0 || p >= n) return border;
      } else {
        p = std::min(std::max(p, 0), n - 1);
      }
      place[i] = p;
    }
    return texels[(place[2] * extents[1] + place[1]) * extents[0] + place[0]];
  }

  double at(const float* coordinates) const {
    int first[3] = {0, 0, 0};
    double fraction[3] = {0, 0, 0};
    for (int i = 0; i < dimensions; ++i) {
      const double x = coordinates[i] * double(normalized ? extents[i] : 1) - (linear ? 0.5 : 0.0);
      first[i] = int(std::floor(x));
      fraction[i] = std::floor((x - first[i]) * 256 + 0.5) /
                    256;  // "9-bit fixed point with 8 bits of fraction"
    }
    if (!linear) return texel(first);
    double sum = 0;
    for (int z = 0; z < (dimensions > 2 ? 2 : 1); ++z)
      for (int y = 0; y < (dimensions > 1 ? 2 : 1); ++y)
        for (int x = 0; x < 2; ++x) {
          const int corner[3] = {first[0] + x, first[1] + y, first[2] + z};
          const double weight = (x ? fraction[0] : 1 - fraction[0]) *
                                (dimensions < 2 ? 1
                                 : y            ? fraction[1]
                                                : 1 - fraction[1]) *
                                (dimensions < 3 ? 1
                                 : z            ? fraction[2]
                                                : 1 - fraction[2]);
          if (weight != 0) sum += weight * texel(corner);
        }
    return sum;
  }
};

bool close(double a, double b) { return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b)); }

// ---- Kernels ----

struct Point {
  float x, y, z;
};

__global__ void fetch(cudaTextureObject_t texture, const Point* points, int dimensions,
                      float* out) {
  const int i = static_cast<int>(threadIdx.x);
  const Point p = points[i];
  out[i] = dimensions == 1   ? tex1D<float>(texture, p.x)
           : dimensions == 2 ? tex2D<float>(texture, p.x, p.y)
                             : tex3D<float>(texture, p.x, p.y, p.z);
}

__global__ void fetch_layer(cudaTextureObject_t texture, const Point* points, int layer,
                            float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex2DLayered<float>(texture, points[i].x, points[i].y, layer);
}

__global__ void fetch_cube(cudaTextureObject_t texture, const Point* points, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = texCubemap<float>(texture, points[i].x, points[i].y, points[i].z);
}

__global__ void fetch_level(cudaTextureObject_t texture, float level, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex2DLod<float>(texture, (static_cast<float>(i % 4) + 0.5f) / 4,
                           (static_cast<float>(i / 4 % 4) + 0.5f) / 4, level);
}

__global__ void gather(cudaTextureObject_t texture, const Point* points, float4* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex2Dgather<float4>(texture, points[i].x, points[i].y, 0);
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

// ---- Set-up ----

template <class T>
T* on_device(const std::vector<T>& values) {
  T* memory;
  CHECK_CUDA(cudaMalloc(&memory, values.size() * sizeof(T)));
  CHECK_CUDA(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <class T>
std::vector<T> from_device(const T* memory, size_t count) {
  std::vector<T> values(count);
  CHECK_CUDA(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

template <class T>
cudaArray_t array_of(const std::vector<T>& texels, cudaExtent extent, unsigned flags = 0) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t array;
  CHECK_CUDA(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy = {};
  const size_t height = std::max<size_t>(extent.height, 1);
  copy.srcPtr = make_cudaPitchedPtr(const_cast<T*>(texels.data()), extent.width * sizeof(T),
                                    extent.width, height);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(extent.width, height, std::max<size_t>(extent.depth, 1));
  copy.kind = cudaMemcpyHostToDevice;
  CHECK_CUDA(cudaMemcpy3D(&copy));
  return array;
}

cudaTextureDesc settings(cudaTextureAddressMode mode, bool linear, bool normalized) {
  cudaTextureDesc s = {};
  for (auto& m : s.addressMode) m = mode;
  s.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  s.normalizedCoords = normalized;
  return s;
}

cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc& s) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &s, nullptr));
  return texture;
}

// Inside, outside, on edges and between texels; in steps of 1/64 of a texel.
std::vector<Point> points_for(const Model& model) {
  std::vector<Point> points;
  for (int i = 0; i < kPoints; ++i) {
    const int steps[3] = {i * 37 % 1024 - 256, i * 53 % 640 - 192, i * 29 % 512 - 128};
    float p[3];
    for (int d = 0; d < 3; ++d)
      p[d] = static_cast<float>(steps[d]) / 64 /
             static_cast<float>(model.normalized ? model.extents[d] : 1);
    points.push_back({p[0], p[1], p[2]});
  }
  return points;
}

std::vector<float> numbers(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 31 % 97));
  return values;
}

constexpr cudaTextureAddressMode kModes[] = {cudaAddressModeWrap, cudaAddressModeClamp,
                                             cudaAddressModeMirror, cudaAddressModeBorder};

// ---- Parts ----

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
  float* out;
  CHECK_CUDA(cudaMalloc(&out, kPoints * sizeof(float)));
  for (const cudaTextureAddressMode mode : kModes)
    for (const bool linear : {false, true})
      for (const bool normalized : {false, true}) {
        model.mode = mode, model.linear = linear, model.normalized = normalized;
        cudaTextureDesc s = settings(mode, linear, normalized);
        s.borderColor[0] = 7;
        model.border = 7;
        const cudaTextureObject_t texture = texture_of(array, s);
        const std::vector<Point> points = points_for(model);
        Point* device_points = on_device(points);
        fetch<<<1, kPoints>>>(texture, device_points, dimensions, out);
        const std::vector<float> result = from_device(out, kPoints);
        for (int i = 0; i < kPoints; ++i) CHECK(close(result[i], model.at(&points[i].x)));
        CHECK_CUDA(cudaDestroyTextureObject(texture));
        CHECK_CUDA(cudaFree(device_points));
      }
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(out));
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
  const std::vector<Point> points = points_for(model);
  Point* device_points = on_device(points);
  float* out;
  CHECK_CUDA(cudaMalloc(&out, kPoints * sizeof(float)));
  fetch<<<1, kPoints>>>(texture, device_points, 2, out);
  const std::vector<float> result = from_device(out, kPoints);
  for (int i = 0; i < kPoints; ++i) CHECK(close(result[i], model.at(&points[i].x)));
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(device_points));
  CHECK_CUDA(cudaFree(out));
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
  const std::vector<Point> points = points_for(model);
  Point* device_points = on_device(points);
  float* out;
  CHECK_CUDA(cudaMalloc(&out, kPoints * sizeof(float)));
  fetch<<<1, kPoints>>>(texture, device_points, 2, out);
  const std::vector<float> result = from_device(out, kPoints);
  for (int i = 0; i < kPoints; ++i) CHECK(close(result[i], model.at(&points[i].x)));
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFree(memory));
  CHECK_CUDA(cudaFree(device_points));
  CHECK_CUDA(cudaFree(out));
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

void layers() {
  constexpr int kLayers = 3;
  const std::vector<float> texels = numbers(kWidth * kHeight * kLayers);
  const cudaArray_t array =
      array_of(texels, make_cudaExtent(kWidth, kHeight, kLayers), cudaArrayLayered);
  const cudaTextureObject_t texture =
      texture_of(array, settings(cudaAddressModeClamp, true, false));
  Model model;
  model.dimensions = 2, model.extents[0] = kWidth, model.extents[1] = kHeight, model.linear = true;
  const std::vector<Point> points = points_for(model);
  Point* device_points = on_device(points);
  float* out;
  CHECK_CUDA(cudaMalloc(&out, kPoints * sizeof(float)));
  for (int layer = 0; layer < kLayers + 1; ++layer) {  // the last stands for those beyond
    const int there = std::min(layer, kLayers - 1);
    model.texels.assign(texels.begin() + there * kWidth * kHeight,
                        texels.begin() + (there + 1) * kWidth * kHeight);
    fetch_layer<<<1, kPoints>>>(texture, device_points, layer, out);
    const std::vector<float> result = from_device(out, kPoints);
    for (int i = 0; i < kPoints; ++i) CHECK(close(result[i], model.at(&points[i].x)));
  }
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(device_points));
  CHECK_CUDA(cudaFree(out));
}

// Directions to the middle of each texel of each face ("Cubemap Textures").
void cube() {
  constexpr int kSide = 4, kTexels = 6 * kSide * kSide;
  const std::vector<float> texels = numbers(kTexels);
  const cudaArray_t array = array_of(texels, make_cudaExtent(kSide, kSide, 6), cudaArrayCubemap);
  const cudaTextureObject_t texture =
      texture_of(array, settings(cudaAddressModeClamp, false, true));
  std::vector<Point> points;
  for (int i = 0; i < kTexels; ++i) {
    const float s = (static_cast<float>(i % kSide) + 0.5f) * 2 / kSide - 1;
    const float t = (static_cast<float>(i / kSide % kSide) + 0.5f) * 2 / kSide - 1;
    const Point faces[6] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                            {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
    const Point p = faces[i / (kSide * kSide)];
    points.push_back({p.x * 3, p.y * 3, p.z * 3});
  }
  Point* device_points = on_device(points);
  float* out;
  CHECK_CUDA(cudaMalloc(&out, kTexels * sizeof(float)));
  fetch_cube<<<1, kTexels>>>(texture, device_points, out);
  const std::vector<float> result = from_device(out, kTexels);
  for (int i = 0; i < kTexels; ++i) CHECK(result[i] == texels[i]);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(device_points));
  CHECK_CUDA(cudaFree(out));
}

// Levels of one value each: what is fetched is the level, or what lies between two.
void mipmap() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmap;
  CHECK_CUDA(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(8, 8, 0), 4));
  for (unsigned level = 0; level < 4; ++level) {
    cudaArray_t array;
    CHECK_CUDA(cudaGetMipmappedArrayLevel(&array, mipmap, level));
    const int side = 8 >> level;
    const std::vector<float> texels(side * side, static_cast<float>(10 * level));
    CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), side * sizeof(float),
                                   side * sizeof(float), side, cudaMemcpyHostToDevice));
  }
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmap;
  cudaTextureDesc s = settings(cudaAddressModeClamp, false, true);
  s.mipmapFilterMode = cudaFilterModeLinear;
  s.maxMipmapLevelClamp = 2.5f;
  cudaTextureObject_t texture;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &s, nullptr));
  float* out;
  CHECK_CUDA(cudaMalloc(&out, 16 * sizeof(float)));
  for (const float level : {-1.0f, 0.0f, 0.25f, 1.0f, 1.5f, 2.0f, 3.0f}) {
    fetch_level<<<1, 16>>>(texture, level, out);
    const double expected = 10 * std::min(std::max(level, 0.0f), 2.5f);
    for (const float value : from_device(out, 16)) CHECK(close(value, expected));
  }
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeMipmappedArray(mipmap));
  CHECK_CUDA(cudaFree(out));
}

// The guide's example of a coordinate that rounds up, too ("Texture Gather").
void gathers() {
  const std::vector<float> texels = numbers(kWidth * kHeight);
  const cudaArray_t array =
      array_of(texels, make_cudaExtent(kWidth, kHeight, 0), cudaArrayTextureGather);
  const cudaTextureObject_t texture =
      texture_of(array, settings(cudaAddressModeClamp, false, false));
  const std::vector<Point> points = {
      {2.25f, 1.75f, 0}, {2.75f, 1.25f, 0}, {0, 0, 0}, {8, 4, 0}, {2.4990f, 1.0f, 0}};
  const int firsts[][2] = {{1, 1}, {2, 0}, {-1, -1}, {7, 3}, {2, 0}};
  Point* device_points = on_device(points);
  float4* out;
  const int count = static_cast<int>(points.size());
  CHECK_CUDA(cudaMalloc(&out, count * sizeof(float4)));
  gather<<<1, count>>>(texture, device_points, out);
  const std::vector<float4> result = from_device(out, count);
  const auto texel = [&](int x, int y) {
    return texels[std::min(std::max(y, 0), kHeight - 1) * kWidth +
                  std::min(std::max(x, 0), kWidth - 1)];
  };
  for (int i = 0; i < count; ++i) {
    const int x = firsts[i][0], y = firsts[i][1];
    CHECK(result[i].x == texel(x, y + 1) && result[i].y == texel(x + 1, y + 1));
    CHECK(result[i].z == texel(x + 1, y) && result[i].w == texel(x, y));
  }
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(device_points));
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
  layers();
  cube();
  mipmap();
  gathers();
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
