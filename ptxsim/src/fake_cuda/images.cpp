#include "fake_cuda/images.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ptxsim::cuda {
namespace {

enum ResourceType : int { kArrayResource, kMipmapResource, kLinearResource, kRowsResource };

using MaybeRefusal = std::optional<Refusal>;

Refusal invalid(std::string reason) { return {kInvalidValue, std::move(reason)}; }
Refusal unsupported(std::string reason) { return {kNotSupported, std::move(reason)}; }

MaybeRefusal read_format(const abi::ChannelFormat& format, TexelFormat& texel) {
  if (format.kind > 3)
    return unsupported(fmt::format(
        "channel format kind {}: normalized, planar and block-compressed formats are not modelled",
        format.kind));
  if (format.kind < 0 || format.kind > 2)
    return invalid(fmt::format("channel format kind {}", format.kind));
  uint32_t channels = 0;
  while (channels < 4 && format.bits[channels] != 0) ++channels;
  const int bits = format.bits[0];
  for (uint32_t i = 0; i < 4; ++i)
    if (format.bits[i] != (i < channels ? bits : 0))
      return invalid("channels must be the first ones, of as many bits each");
  const bool known = bits == 32 || bits == 16 || (bits == 8 && format.kind != 2);
  if (!known || channels == 0 || channels == 3)
    return invalid(fmt::format("{} channels of {} bits, kind {}", channels, bits, format.kind));
  texel = {static_cast<ChannelKind>(format.kind), static_cast<uint8_t>(channels),
           static_cast<uint8_t>(bits)};
  return std::nullopt;
}

// The shape of what cudaMalloc3DArray allocates, and its extents.
MaybeRefusal read_shape(const abi::Extent& extent, unsigned flags, DeviceArray& array) {
  const bool layered = (flags & kArrayLayered) != 0, cube = (flags & kArrayCubemap) != 0;
  const auto [width, height, depth] = extent;
  constexpr size_t kMost = 1 << 17;  // of any texture on any GPU
  if (width == 0 || std::max({width, height, depth}) > kMost)
    return invalid(fmt::format("array of {} x {} x {}", width, height, depth));
  if (cube && (width != height || depth % 6 != 0 || depth == 0 || (depth != 6 && !layered)))
    return invalid(
        fmt::format("a cube needs square faces, six of them; {} x {} x {}", width, height, depth));
  if (layered && depth == 0) return invalid("a layered array needs layers: its depth");
  array.shape = cube          ? layered ? ImageShape::kCubeLayered : ImageShape::kCube
                : layered     ? height == 0 ? ImageShape::k1dLayered : ImageShape::k2dLayered
                : depth != 0  ? ImageShape::k3d
                : height != 0 ? ImageShape::k2d
                              : ImageShape::k1d;
  const auto at_least_one = [](size_t n) { return static_cast<uint32_t>(std::max<size_t>(n, 1)); };
  ImageLevel& level = array.level;
  const bool has_layers = layered || cube;
  level.extents = {at_least_one(width), at_least_one(height), has_layers ? 1 : at_least_one(depth)};
  level.layers = has_layers ? at_least_one(depth) : 1;
  level.row_bytes = uint64_t{level.extents[0]} * array.texel.bytes();
  level.slice_bytes = level.row_bytes * level.extents[1];
  return std::nullopt;
}

// The sampler of an image whose format and levels are known.
MaybeRefusal read_sampler(const abi::TextureSettings& s, Image& image) {
  Sampler& sampler = image.sampler;
  for (size_t i = 0; i < 3; ++i) {
    if (s.address_modes[i] < 0 || s.address_modes[i] > 3)
      return invalid(fmt::format("addressMode[{}] {}", i, s.address_modes[i]));
    sampler.address[i] = static_cast<AddressMode>(s.address_modes[i]);
  }
  if (s.srgb != 0) return unsupported("sRGB conversion is not modelled");
  if (s.most_anisotropy > 1) return unsupported("anisotropic filtering is not modelled");
  if (s.filter < 0 || s.filter > 1 || s.read_mode < 0 || s.read_mode > 1)
    return invalid(fmt::format("filterMode {}, readMode {}", s.filter, s.read_mode));
  const bool is_float = image.format.kind == ChannelKind::kFloat;
  if (s.read_mode == 1 && !is_float && image.format.bits == 32)
    return invalid("integers of 32 bits cannot be read as normalized floats");
  sampler.reads_normalized = s.read_mode == 1 && !is_float;
  sampler.filters_linearly = s.filter == 1;
  sampler.levels_linearly = s.mipmap_filter == 1 && image.levels.size() > 1;
  sampler.normalized_coordinates = s.normalized_coordinates != 0;
  std::copy_n(s.border, 4, sampler.border.begin());
  sampler.level_bias = s.level_bias;
  sampler.least_level = s.least_level;
  sampler.most_level = s.most_level;
  if ((sampler.filters_linearly || sampler.levels_linearly) && !image.gives_floats())
    return invalid("a linear filter needs floats, or integers that are read as normalized floats");
  const bool has_border = std::ranges::any_of(sampler.border, [](float c) { return c != 0; });
  if (has_border && !image.gives_floats())
    return unsupported("a border color of integers is not modelled");
  if (image.is_cube() && sampler.filters_linearly && s.seamless_cube != 0)
    return unsupported("filtering across the edges of a cube is not modelled");
  return std::nullopt;
}

}  // namespace

MaybeRefusal DeviceImages::allocate(const abi::ChannelFormat& format, const abi::Extent& extent,
                                    unsigned flags, std::unique_ptr<DeviceArray>& array) {
  constexpr unsigned kTextureGather = 8;
  if ((flags & ~(kArrayLayered | kArraySurfaceLoadStore | kArrayCubemap | kTextureGather)) != 0)
    return unsupported(fmt::format("array flags 0x{:x}", flags));
  array = std::make_unique<DeviceArray>();
  array->format = format;
  array->extent = extent;
  array->flags = flags;
  if (auto refusal = read_format(format, array->texel)) return refusal;
  if (auto refusal = read_shape(extent, flags, *array)) return refusal;
  const ImageLevel& level = array->level;
  const uint64_t bytes = level.slice_bytes * level.extents[2] * level.layers;
  const Status status = memory_.allocate(Home::kArray, bytes, array->level.address);
  if (status != kSuccess) return Refusal{status, fmt::format("{} bytes of a CUDA array", bytes)};
  return std::nullopt;
}

MaybeRefusal DeviceImages::make_array(const abi::ChannelFormat& format, const abi::Extent& extent,
                                      unsigned flags, DeviceArray*& array) {
  std::unique_ptr<DeviceArray> made;
  if (auto refusal = allocate(format, extent, flags, made)) return refusal;
  array = made.get();
  arrays_[array] = std::move(made);
  return std::nullopt;
}

MaybeRefusal DeviceImages::make_mipmap(const abi::ChannelFormat& format, const abi::Extent& extent,
                                       unsigned levels, unsigned flags, DeviceMipmap*& mipmap) {
  DeviceMipmap made;
  const size_t largest = std::max({extent.width, extent.height, extent.depth});
  const bool layered = (flags & (kArrayLayered | kArrayCubemap)) != 0;
  for (unsigned i = 0; i < std::max(levels, 1u) && (i == 0 || largest >> i != 0); ++i) {
    const auto halved = [&](size_t n) { return n == 0 ? n : std::max<size_t>(n >> i, 1); };
    const abi::Extent smaller{halved(extent.width), halved(extent.height),
                              layered ? extent.depth : halved(extent.depth)};
    std::unique_ptr<DeviceArray> level;
    if (auto refusal = allocate(format, smaller, flags, level)) {
      for (const auto& other : made.levels) memory_.release(other->level.address, false);
      return refusal;
    }
    made.levels.push_back(std::move(level));
  }
  const void* key = made.levels.front().get();
  mipmap = &(mipmaps_[key] = std::move(made));
  return std::nullopt;
}

DeviceArray* DeviceImages::find_array(const void* handle) const {
  if (const auto found = arrays_.find(handle); found != arrays_.end()) return found->second.get();
  for (const auto& [key, mipmap] : mipmaps_)
    for (const auto& level : mipmap.levels)
      if (level.get() == handle) return level.get();
  return nullptr;
}

DeviceMipmap* DeviceImages::find_mipmap(const void* handle) const {
  for (const auto& [key, mipmap] : mipmaps_)
    if (&mipmap == handle) return const_cast<DeviceMipmap*>(&mipmap);
  return nullptr;
}

Status DeviceImages::free_array(const void* handle) {
  if (handle == nullptr) return kSuccess;
  const auto found = arrays_.find(handle);
  if (found == arrays_.end()) return kInvalidValue;
  memory_.release(found->second->level.address, false);
  arrays_.erase(found);
  return kSuccess;
}

Status DeviceImages::free_mipmap(const void* handle) {
  if (handle == nullptr) return kSuccess;
  const auto found =
      std::ranges::find_if(mipmaps_, [&](const auto& entry) { return &entry.second == handle; });
  if (found == mipmaps_.end()) return kInvalidValue;
  for (const auto& level : found->second.levels) memory_.release(level->level.address, false);
  mipmaps_.erase(found);
  return kSuccess;
}

// Shape, format and levels of what a resource names.
MaybeRefusal DeviceImages::describe(const abi::Resource& resource, Image& image) const {
  const auto take = [&](const DeviceArray& array) {
    image.shape = array.shape;
    image.format = array.texel;
    image.levels.push_back(array.level);
  };
  if (resource.type == kArrayResource) {
    const DeviceArray* array = find_array(resource.array);
    if (array == nullptr) return invalid("the resource is no CUDA array");
    take(*array);
    return std::nullopt;
  }
  if (resource.type == kMipmapResource) {
    const DeviceMipmap* mipmap = find_mipmap(resource.array);
    if (mipmap == nullptr) return invalid("the resource is no mipmapped array");
    for (const auto& level : mipmap->levels) take(*level);
    return std::nullopt;
  }
  if (resource.type != kLinearResource && resource.type != kRowsResource)
    return invalid(fmt::format("resource type {}", resource.type));
  const bool linear = resource.type == kLinearResource;
  if (auto refusal =
          read_format(linear ? resource.linear.format : resource.rows.format, image.format))
    return refusal;
  image.shape = linear ? ImageShape::kLinear : ImageShape::k2d;
  const uint64_t texel = image.format.bytes();
  ImageLevel level;
  level.address =
      reinterpret_cast<uint64_t>(linear ? resource.linear.pointer : resource.rows.pointer);
  const size_t width = linear ? resource.linear.bytes / texel : resource.rows.width;
  const size_t height = linear ? 1 : resource.rows.height;
  level.extents = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1};
  level.row_bytes = linear ? width * texel : resource.rows.pitch;
  level.slice_bytes = level.row_bytes * height;
  constexpr uint64_t kAddressAlignment = 512,
                     kPitchAlignment = 32;  // cudaDeviceProp of every GPU here
  Location location;
  const uint64_t bytes =
      width == 0 || height == 0 ? 0 : level.row_bytes * (height - 1) + width * texel;
  const void* pointer = linear ? resource.linear.pointer : resource.rows.pointer;
  if (bytes == 0 || level.row_bytes < width * texel ||
      memory_.locate(pointer, bytes, location) != kSuccess || location.allocation == nullptr)
    return invalid(fmt::format("{} x {} texels are not inside one allocation", width, height));
  level.address = location.allocation->address + location.offset;
  if (level.address % (linear ? texel : kAddressAlignment) != 0 ||
      (!linear && level.row_bytes % kPitchAlignment != 0))
    return invalid(fmt::format("address 0x{:x} and pitch {}; must be multiples of {} and {}",
                               level.address, level.row_bytes, linear ? texel : kAddressAlignment,
                               kPitchAlignment));
  image.levels.push_back(level);
  return std::nullopt;
}

uint64_t DeviceImages::add(Image image, Object object) {
  const uint64_t value = next_object_++;
  memory_.global().images[value] = std::move(image);
  objects_[value] = object;
  return value;
}

MaybeRefusal DeviceImages::make_texture(const abi::Resource& resource,
                                        const abi::TextureSettings& settings, uint64_t& object) {
  Image image;
  if (auto refusal = describe(resource, image)) return refusal;
  if (auto refusal = read_sampler(settings, image)) return refusal;
  object = add(std::move(image), {false, resource, settings});
  return std::nullopt;
}

MaybeRefusal DeviceImages::make_surface(const abi::Resource& resource, uint64_t& object) {
  if (resource.type != kArrayResource) return invalid("a surface needs a CUDA array");
  Image image;
  image.is_surface = true;
  if (auto refusal = describe(resource, image)) return refusal;
  if ((find_array(resource.array)->flags & kArraySurfaceLoadStore) == 0)
    return invalid("a surface needs an array that was allocated with cudaArraySurfaceLoadStore");
  object = add(std::move(image), {true, resource, {}});
  return std::nullopt;
}

const DeviceImages::Object* DeviceImages::find_object(uint64_t object) const {
  const auto found = objects_.find(object);
  return found == objects_.end() ? nullptr : &found->second;
}

Status DeviceImages::free_object(uint64_t object, bool is_surface) {
  if (object == 0) return kSuccess;
  const Object* found = find_object(object);
  if (found == nullptr || found->is_surface != is_surface) return kInvalidValue;
  objects_.erase(object);
  memory_.global().images.erase(object);
  return kSuccess;
}

}  // namespace ptxsim::cuda
