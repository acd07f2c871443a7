// What the parts about textures share: the formulas of the CUDA C++ Programming Guide ("Texture
// Fetching") in double, and arrays, objects and places.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "program.hpp"

constexpr int kWidth = 8, kHeight = 4, kDepth = 4, kPoints = 256;

struct Point {
  float x, y, z;
};

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
      // 21 fractional bits of normalized coordinates count, as on an H100.
      const double at = normalized ? std::floor(coordinates[i] * 0x1p21) / 0x1p21 * extents[i]
                                   : double(coordinates[i]);
      const double x = at - (linear ? 0.5 : 0.0);
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

inline bool close(double a, double b) {
  return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b));
}

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

inline cudaTextureDesc settings(cudaTextureAddressMode mode, bool linear, bool normalized) {
  cudaTextureDesc s = {};
  for (auto& m : s.addressMode) m = mode;
  s.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  s.normalizedCoords = normalized;
  return s;
}

inline cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc& s) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &s, nullptr));
  return texture;
}

// Inside, outside, on edges and between texels; in steps of 1/64 of a texel.
inline std::vector<Point> points_for(const Model& model) {
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

inline std::vector<float> numbers(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 31 % 97));
  return values;
}

// fetch(points, out) fills kPoints values, one for each point: all as the model has them.
template <class Fetch>
void fetches_as(const Model& model, const Fetch& fetch) {
  const std::vector<Point> points = points_for(model);
  Point* device_points = on_device(points);
  float* out;
  CHECK_CUDA(cudaMalloc(&out, kPoints * sizeof(float)));
  fetch(device_points, out);
  const std::vector<float> result = from_device(out, kPoints);
  for (int i = 0; i < kPoints; ++i) CHECK(close(result[i], model.at(&points[i].x)));
  CHECK_CUDA(cudaFree(device_points));
  CHECK_CUDA(cudaFree(out));
}
