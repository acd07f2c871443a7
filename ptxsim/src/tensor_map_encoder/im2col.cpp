// Arguments of im2col maps (CUDA driver API 13.0, "cuTensorMapEncodeIm2col",
// "cuTensorMapEncodeIm2colWide").
#include "tensor_map_encoder/checks.hpp"

namespace ptxsim {
namespace {

Problem check_corner(const char* name, const TensorMap& map, uint32_t i, int32_t value) {
  const int32_t most = (1 << (corner_bits(map) - 1)) - 1;
  if (value >= -most - 1 && value <= most) return std::nullopt;
  return observed(
      map.mode == TensorMapMode::kIm2colWide ? name + std::string("Width") : at(name, i), value,
      "must be " + std::to_string(-most - 1) + " .. " + std::to_string(most));
}

Problem check_corners(const TensorMap& map) {
  for (uint32_t i = 0; i < pixel_dimensions(map); ++i) {
    if (auto p = check_corner("pixelBoxLowerCorner", map, i, map.pixels.lower[i])) return p;
    if (auto p = check_corner("pixelBoxUpperCorner", map, i, map.pixels.upper[i])) return p;
    const int64_t extent = static_cast<int64_t>(map.extents[i + 1]) + map.pixels.upper[i];
    if (extent <= map.pixels.lower[i])
      return observed(at("pixelBoxUpperCorner", i), map.pixels.upper[i],
                      "the box begins at " + std::to_string(map.pixels.lower[i]) +
                          " and ends before " + std::to_string(extent) + "; must hold a pixel");
  }
  return std::nullopt;
}

Problem check_wide(const TensorMap& map) {
  if (map.mode != TensorMapMode::kIm2colWide) return std::nullopt;
  if (map.interleave != TensorMapInterleave::kNone)
    return observed("interleave", static_cast<uint32_t>(map.interleave),
                    "must be 0 (none) with an im2col map of wide mode");
  if (map.swizzle != TensorMapSwizzle::k64 && map.swizzle != TensorMapSwizzle::k128 &&
      map.swizzle != TensorMapSwizzle::k128Atom32)
    return observed(
        "swizzle", static_cast<uint32_t>(map.swizzle),
        "must be 2 (64B), 3 (128B) or 4 (128B_ATOM_32B) with an im2col map of wide mode");
  return std::nullopt;
}

}  // namespace

Problem check_im2col(const TensorMap& map) {
  if (map.mode == TensorMapMode::kTiled) return std::nullopt;
  if (map.rank < 3) return observed("tensorRank", map.rank, "must be 3 .. 5 with an im2col map");
  if (auto problem = check_corners(map)) return problem;
  if (map.box[0] < 1 || map.box[0] > 256)
    return observed("channelsPerPixel", map.box[0], "must be 1 .. 256");
  constexpr uint32_t kMostPixels = 1024;
  if (map.pixels.count < 1 || map.pixels.count > kMostPixels)
    return observed("pixelsPerColumn", map.pixels.count, "must be 1 .. 1024");
  if (auto problem = check_innermost(map, "channelsPerPixel")) return problem;
  return check_wide(map);
}

}  // namespace ptxsim
