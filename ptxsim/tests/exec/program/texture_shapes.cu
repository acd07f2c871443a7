// Texture objects of other shapes than boxes: layers, cubes, levels; gathers, gradients, texels of
// four channels.
#include "texture.hpp"

namespace {

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

__global__ void fetch_row_layer(cudaTextureObject_t texture, const Point* points, int layer,
                                float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex1DLayered<float>(texture, points[i].x, layer);
}

__global__ void fetch_cube_layer(cudaTextureObject_t texture, const Point* points, int layer,
                                 float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = texCubemapLayered<float>(texture, points[i].x, points[i].y, points[i].z, layer);
}

// A texture without levels is fetched as without gradients.
__global__ void fetch_gradient(cudaTextureObject_t texture, const Point* points, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  const float2 step = make_float2(points[i].x, 5), none = make_float2(0, 0);
  out[i] = tex2DGrad<float>(texture, points[i].x, points[i].y, step, none);
}

__global__ void fetch_colors(cudaTextureObject_t texture, uchar4* out, int* resident) {
  const int i = static_cast<int>(threadIdx.x);
  bool there = false;
  out[i] = tex2D<uchar4>(texture, static_cast<float>(i % kWidth), static_cast<float>(i / kWidth),
                         &there);
  resident[i] = there;
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
  for (int layer = 0; layer < kLayers + 1; ++layer) {  // the last stands for those beyond
    const int there = std::min(layer, kLayers - 1);
    model.texels.assign(texels.begin() + there * kWidth * kHeight,
                        texels.begin() + (there + 1) * kWidth * kHeight);
    fetches_as(model, [&](const Point* points, float* out) {
      fetch_layer<<<1, kPoints>>>(texture, points, layer, out);
    });
  }
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
}

// Directions to the middle of each texel of each face ("Cubemap Textures"); of several cubes each.
void cubes(int count) {
  constexpr int kSide = 4, kTexels = 6 * kSide * kSide;
  const std::vector<float> texels = numbers(kTexels * count);
  const cudaArray_t array = array_of(texels, make_cudaExtent(kSide, kSide, 6 * count),
                                     cudaArrayCubemap | (count > 1 ? cudaArrayLayered : 0));
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
  for (int layer = 0; layer < count; ++layer) {
    if (count == 1)
      fetch_cube<<<1, kTexels>>>(texture, device_points, out);
    else
      fetch_cube_layer<<<1, kTexels>>>(texture, device_points, layer, out);
    const std::vector<float> result = from_device(out, kTexels);
    for (int i = 0; i < kTexels; ++i) CHECK(result[i] == texels[layer * kTexels + i]);
  }
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

void layered_rows() {
  constexpr int kLayers = 4;
  const std::vector<float> texels = numbers(kWidth * kLayers);
  const cudaArray_t array = array_of(texels, make_cudaExtent(kWidth, 0, kLayers), cudaArrayLayered);
  const cudaTextureObject_t texture =
      texture_of(array, settings(cudaAddressModeMirror, true, true));
  Model model;
  model.extents[0] = kWidth, model.linear = true, model.normalized = true,
  model.mode = cudaAddressModeMirror;
  for (int layer = 0; layer < kLayers; ++layer) {
    model.texels.assign(texels.begin() + layer * kWidth, texels.begin() + (layer + 1) * kWidth);
    fetches_as(model, [&](const Point* points, float* out) {
      fetch_row_layer<<<1, kPoints>>>(texture, points, layer, out);
    });
  }
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
}

void gradients() {
  const std::vector<float> texels = numbers(kWidth * kHeight);
  const cudaArray_t array = array_of(texels, make_cudaExtent(kWidth, kHeight, 0));
  const cudaTextureObject_t texture = texture_of(array, settings(cudaAddressModeWrap, true, true));
  Model model;
  model.dimensions = 2, model.extents[0] = kWidth, model.extents[1] = kHeight;
  model.linear = true, model.normalized = true, model.mode = cudaAddressModeWrap;
  model.texels.assign(texels.begin(), texels.end());
  fetches_as(model, [&](const Point* points, float* out) {
    fetch_gradient<<<1, kPoints>>>(texture, points, out);
  });
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
}

void colors() {
  std::vector<uchar4> texels(kWidth * kHeight);
  for (size_t i = 0; i < texels.size(); ++i) {
    const auto first = static_cast<unsigned char>(7 * i);
    texels[i] = make_uchar4(first, first + 1, first ^ 0x80, static_cast<unsigned char>(255 - i));
  }
  const cudaArray_t array = array_of(texels, make_cudaExtent(kWidth, kHeight, 0));
  const cudaTextureObject_t texture =
      texture_of(array, settings(cudaAddressModeClamp, false, false));
  uchar4* out;
  int* resident;
  CHECK_CUDA(cudaMalloc(&out, texels.size() * sizeof(uchar4)));
  CHECK_CUDA(cudaMalloc(&resident, texels.size() * sizeof(int)));
  fetch_colors<<<1, kWidth * kHeight>>>(texture, out, resident);
  const std::vector<uchar4> result = from_device(out, texels.size());
  for (size_t i = 0; i < texels.size(); ++i) {
    CHECK(result[i].x == texels[i].x && result[i].y == texels[i].y);
    CHECK(result[i].z == texels[i].z && result[i].w == texels[i].w);
  }
  for (const int there : from_device(resident, texels.size())) CHECK(there == 1);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(out));
  CHECK_CUDA(cudaFree(resident));
}

}  // namespace

void texture_shapes() {
  layers();
  layered_rows();
  cubes(1);
  cubes(2);
  mipmap();
  gathers();
  gradients();
  colors();
}
