// The driver's encoders of tensor maps as the calling convention sees them.
#include <algorithm>
#include <cstring>

#include "tensor_map_encoder/checks.hpp"

namespace ptxsim {
namespace {

thread_local std::string last_error;

int refuse_with(std::string message) {
  constexpr int kInvalidValue = 1;  // CUDA_ERROR_INVALID_VALUE
  last_error = std::move(message);
  return kInvalidValue;
}

int refuse(const std::string& message) { return refuse_with("tensor map: " + message); }

// What all of them take.
struct Arguments {
  void* tensor_map;
  uint32_t type, rank;
  void* address;
  const uint64_t *extents, *stride_bytes;
  const uint32_t* element_strides;
  uint32_t interleave, swizzle, l2_promotion, fill;
};

int check_pointers(const Arguments& a) {
  if (a.tensor_map == nullptr) return refuse("tensorMap is a null pointer");
  const uint64_t place = reinterpret_cast<uintptr_t>(a.tensor_map);
  if (place % 64 != 0)
    return refuse(observed("tensorMap", place, "the address must be a multiple of 64"));
  if (a.extents == nullptr || a.element_strides == nullptr)
    return refuse("globalDim or elementStrides is a null pointer");
  if (a.stride_bytes == nullptr && a.rank > 1)
    return refuse("globalStrides is a null pointer; needed from rank 2 on");
  return 0;
}

TensorMap read(const Arguments& a) {
  TensorMap map;
  map.type = static_cast<TensorMapType>(a.type);
  map.rank = a.rank;
  map.address = reinterpret_cast<uintptr_t>(a.address);
  for (uint32_t i = 0; i < std::min(a.rank, kTensorMapMaxRank); ++i) {
    map.extents[i] = a.extents[i];
    map.element_strides[i] = a.element_strides[i];
    if (i > 0) map.stride_bytes[i - 1] = a.stride_bytes[i - 1];
  }
  map.interleave = static_cast<TensorMapInterleave>(a.interleave);
  map.swizzle = static_cast<TensorMapSwizzle>(a.swizzle);
  map.l2_promotion = static_cast<TensorMapL2Promotion>(a.l2_promotion);
  map.fill = static_cast<TensorMapFill>(a.fill);
  return map;
}

int encode_to(void* place, const TensorMap& map) {
  const Result<TensorMapRecord> record = encode_tensor_map(map);
  if (!record.ok()) return refuse_with(record.error().message);
  std::memcpy(place, &record.value(), sizeof(TensorMapRecord));
  return 0;
}

}  // namespace

int encode_tiled_abi(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                     const uint64_t* extents, const uint64_t* stride_bytes, const uint32_t* box,
                     const uint32_t* element_strides, uint32_t interleave, uint32_t swizzle,
                     uint32_t l2_promotion, uint32_t fill) {
  const Arguments a{tensor_map,      type,       rank,    address,      extents, stride_bytes,
                    element_strides, interleave, swizzle, l2_promotion, fill};
  if (const int status = check_pointers(a); status != 0) return status;
  if (box == nullptr) return refuse("boxDim is a null pointer");
  TensorMap map = read(a);
  for (uint32_t i = 0; i < std::min(rank, kTensorMapMaxRank); ++i) map.box[i] = box[i];
  return encode_to(tensor_map, map);
}

int encode_im2col_abi(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                      const uint64_t* extents, const uint64_t* stride_bytes,
                      const int32_t* lower_corner, const int32_t* upper_corner, uint32_t channels,
                      uint32_t pixels, const uint32_t* element_strides, uint32_t interleave,
                      uint32_t swizzle, uint32_t l2_promotion, uint32_t fill) {
  const Arguments a{tensor_map,      type,       rank,    address,      extents, stride_bytes,
                    element_strides, interleave, swizzle, l2_promotion, fill};
  if (const int status = check_pointers(a); status != 0) return status;
  if (lower_corner == nullptr || upper_corner == nullptr)
    return refuse("pixelBoxLowerCorner or pixelBoxUpperCorner is a null pointer");
  TensorMap map = read(a);
  map.mode = TensorMapMode::kIm2col;
  for (uint32_t i = 0; i + 2 < std::min(rank, kTensorMapMaxRank); ++i) {
    map.pixels.lower[i] = lower_corner[i];
    map.pixels.upper[i] = upper_corner[i];
  }
  map.box[0] = channels;
  map.pixels.count = pixels;
  return encode_to(tensor_map, map);
}

int encode_im2col_wide_abi(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                           const uint64_t* extents, const uint64_t* stride_bytes,
                           int32_t lower_corner, int32_t upper_corner, uint32_t channels,
                           uint32_t pixels, const uint32_t* element_strides, uint32_t interleave,
                           uint32_t mode, uint32_t swizzle, uint32_t l2_promotion, uint32_t fill) {
  const Arguments a{tensor_map,      type,       rank,    address,      extents, stride_bytes,
                    element_strides, interleave, swizzle, l2_promotion, fill};
  if (const int status = check_pointers(a); status != 0) return status;
  if (mode > 1) return refuse(observed("mode", mode, "must be 0 (W) or 1 (W128)"));
  TensorMap map = read(a);
  map.mode = TensorMapMode::kIm2colWide;
  map.pixels.lower[0] = lower_corner;
  map.pixels.upper[0] = upper_corner;
  map.box[0] = channels;
  map.pixels.count = mode == 1 ? kWidePixels : pixels;  // which is ignored then
  return encode_to(tensor_map, map);
}

const std::string& last_encode_error() { return last_error; }

}  // namespace ptxsim
