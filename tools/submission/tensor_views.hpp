// The tensor maps of tight operands.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/runtime/small_tensor.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::submission {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

struct View {
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  uint32_t rank;
  const void* address;
  cuuint64_t dims[4];          // elements, innermost first
  cuuint64_t stride_bytes[3];  // of dims 1 .. rank - 1
  cuuint32_t box[4];           // elements
};

constexpr uint64_t kScaleTileBytes = 512;  // of 128 rows and 4 scales: 64 elements along k

// (k/2, rows, l) bytes; a box is 128 bytes of `box_rows` of them.
View rows_view(const uint8_t* data, uint64_t rows, uint64_t k, uint64_t l, uint32_t box_rows) {
  return {CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_SWIZZLE_128B, 3, data, {k / 2, rows, l},
          {k / 2, k / 2 * rows},         {128, box_rows, 1}};
}

// (256, k/64, ceil(rows/128), l) of 16 bits; a box is four neighbours along k, `box_tiles` along
// the rows.
View scales_view(const uint8_t* scales, uint64_t rows, uint64_t k, uint64_t l,
                 uint32_t box_tiles = 1) {
  const uint64_t tiles_k = k / 64, tiles_rows = (rows + 127) / 128;
  return {CU_TENSOR_MAP_DATA_TYPE_UINT16,
          CU_TENSOR_MAP_SWIZZLE_NONE,
          4,
          scales,
          {kScaleTileBytes / 2, tiles_k, tiles_rows, l},
          {kScaleTileBytes, tiles_k * kScaleTileBytes, tiles_rows * tiles_k * kScaleTileBytes},
          {kScaleTileBytes / 2, 4, box_tiles, 1}};
}

// Whether the driver took it.
bool encode(const View& view, EncodeTiled encode_tiled, cuda::TensorMap* map) {
  constexpr cuuint32_t kElementStrides[4] = {1, 1, 1, 1};
  auto* const encoded = reinterpret_cast<CUtensorMap*>(map);
  const CUresult result = encode_tiled(
      encoded, view.type, view.rank, const_cast<void*>(view.address), view.dims, view.stride_bytes,
      view.box, kElementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, view.swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) return false;
  cuda::correct_small_tensor(encoded, view.type, view.rank, view.dims, view.stride_bytes);
  return true;
}

}  // namespace
}  // namespace dualgemm::submission
