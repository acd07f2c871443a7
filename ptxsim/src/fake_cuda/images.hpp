// CUDA arrays, and the texture and surface objects that a program has made. What kernels see of
// them are the images of the interpreter's global memory (ptxsim/machine/image.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fake_cuda/abi.hpp"
#include "fake_cuda/device_memory.hpp"

namespace ptxsim::cuda {

inline constexpr unsigned kArrayLayered = 1, kArraySurfaceLoadStore = 2, kArrayCubemap = 4;

struct DeviceArray {  // what a cudaArray_t points to
  abi::ChannelFormat format{};
  TexelFormat texel;
  ImageShape shape = ImageShape::k2d;
  abi::Extent extent{};  // as the program gave it
  unsigned flags = 0;
  ImageLevel level;
};
struct DeviceMipmap {  // what a cudaMipmappedArray_t points to
  std::vector<std::unique_ptr<DeviceArray>> levels;
};

// What is wrong with an argument: a status, and the reason. Nothing: all is well.
struct Refusal {
  Status status;
  std::string reason;
};

class DeviceImages {
 public:
  explicit DeviceImages(DeviceMemory& memory) : memory_(memory) {}

  std::optional<Refusal> make_array(const abi::ChannelFormat& format, const abi::Extent& extent,
                                    unsigned flags, DeviceArray*& array);
  std::optional<Refusal> make_mipmap(const abi::ChannelFormat& format, const abi::Extent& extent,
                                     unsigned levels, unsigned flags, DeviceMipmap*& mipmap);
  // nullptr: the handle is none.
  DeviceArray* find_array(const void* handle) const;
  DeviceMipmap* find_mipmap(const void* handle) const;
  Status free_array(const void* handle);
  Status free_mipmap(const void* handle);

  struct Object {
    bool is_surface = false;
    abi::Resource resource{};
    abi::TextureSettings settings{};
  };
  std::optional<Refusal> make_texture(const abi::Resource& resource,
                                      const abi::TextureSettings& settings, uint64_t& object);
  std::optional<Refusal> make_surface(const abi::Resource& resource, uint64_t& object);
  const Object* find_object(uint64_t object) const;
  Status free_object(uint64_t object, bool is_surface);

 private:
  std::optional<Refusal> allocate(const abi::ChannelFormat& format, const abi::Extent& extent,
                                  unsigned flags, std::unique_ptr<DeviceArray>& array);
  std::optional<Refusal> describe(const abi::Resource& resource, Image& image) const;
  uint64_t add(Image image, Object object);

  DeviceMemory& memory_;
  std::map<const void*, std::unique_ptr<DeviceArray>> arrays_;
  std::map<const void*, DeviceMipmap> mipmaps_;  // by the address of their first level
  std::map<uint64_t, Object> objects_;
  uint64_t next_object_ = 1;
};

}  // namespace ptxsim::cuda
