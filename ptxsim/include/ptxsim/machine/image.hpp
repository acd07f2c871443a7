// What bindless textures and surfaces are made of, and what a fetch reads (CUDA C++ Programming
// Guide, "Texture Fetching").
//
// An image lies in a buffer of global memory, row after row; nothing tells a kernel the address.
// Its sanitizer, bounds and unwritten bytes are those of that buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace ptxsim {

enum class ChannelKind : uint8_t { kSigned, kUnsigned, kFloat };  // cudaChannelFormatKind

struct TexelFormat {
  ChannelKind kind = ChannelKind::kFloat;
  uint8_t channels = 1;  // 1, 2 or 4
  uint8_t bits = 32;     // of each: 8, 16 or 32
  uint32_t bytes() const { return uint32_t{channels} * bits / 8; }
};

enum class ImageShape : uint8_t {
  kLinear,  // texels in a row, by their number alone (tex1Dfetch)
  k1d,
  k2d,
  k3d,
  k1dLayered,
  k2dLayered,
  kCube,  // six layers
  kCubeLayered,
};
const char* name_of(ImageShape shape);

struct ImageLevel {  // of a mipmap, the largest first
  uint64_t address = 0;
  std::array<uint32_t, 3> extents{1, 1, 1};  // texels
  uint32_t layers = 1;
  uint64_t row_bytes = 0, slice_bytes = 0;  // slices: of depth, or layers
};

enum class AddressMode : uint8_t { kWrap, kClamp, kMirror, kBorder };  // cudaTextureAddressMode

struct Sampler {
  std::array<AddressMode, 3> address{};
  bool filters_linearly = false;
  bool levels_linearly = false;
  bool normalized_coordinates = false;
  bool reads_normalized = false;  // integers as numbers of [0, 1] or [-1, 1]
  std::array<float, 4> border{};
  float level_bias = 0, least_level = 0, most_level = 0;
};

struct Image {
  bool is_surface = false;
  ImageShape shape = ImageShape::k1d;
  TexelFormat format;
  std::vector<ImageLevel> levels;
  Sampler sampler;

  uint32_t dimensions() const;  // of the coordinates within a layer
  bool is_layered() const { return shape >= ImageShape::k1dLayered; }
  bool is_cube() const { return shape >= ImageShape::kCube; }
  // What a fetch gives is a number of the filter, not a texel's bits.
  bool gives_floats() const {
    return format.kind == ChannelKind::kFloat || sampler.reads_normalized;
  }
};

// By the 64-bit values that kernels get for them.
using Images = std::map<uint64_t, Image>;

using Texel = std::array<uint32_t, 4>;  // bits of a result, as `tex` gives them
// Copies the bytes of one texel; a Fault when they may not be read.
using ReadTexel = std::function<void(uint64_t address, uint32_t bytes, std::byte* to)>;

struct FetchPlace {
  std::array<float, 3> at{};       // coordinates; for a cube a direction
  std::array<int32_t, 3> texel{};  // with `by_texel`
  bool by_texel = false;           // integer coordinates: neither filtered nor normalized
  int32_t texel_level = 0;         // of a mipmap, with them
  uint32_t layer = 0;
  std::array<int32_t, 3> offset{};  // texels
};

// `level`: that of a mipmap, before bias and clamps; nothing: the first.
Texel fetch(const Image& image, const FetchPlace& place, std::optional<float> level,
            const ReadTexel& read);
// The four texels that a linear filter would take, of one component, counter-clockwise from the
// lower left.
Texel gather(const Image& image, const FetchPlace& place, uint32_t component,
             const ReadTexel& read);

}  // namespace ptxsim
