// CUDA arrays, copies of boxes in two dimensions from and to them, texture and surface objects.
#include <algorithm>

#include "fake_cuda/driver/call.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::driver {
namespace {

struct ArrayDescription {  // CUDA_ARRAY_DESCRIPTOR
  size_t width, height;
  int format;
  unsigned channels;
};
struct Array3DDescription {  // CUDA_ARRAY3D_DESCRIPTOR
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
struct CopySide {  // of CUDA_MEMCPY2D
  size_t x, y;
  int memory;  // CUmemorytype
  void* host;
  void* device;
  void* array;
  size_t pitch;
  // Where the box begins in plain memory; nullptr: an array.
  char* begin() const {
    if (memory == 3) return nullptr;
    return static_cast<char*>(memory == 1 ? host : device) + y * pitch + x;
  }
};
struct Copy2D {  // CUDA_MEMCPY2D
  CopySide from, to;
  size_t width, height;
};
struct Resource {  // CUDA_RESOURCE_DESC
  int type;        // those of cudaResourceDesc
  union {
    void* array;  // or mipmap
    struct {
      void* pointer;
      int format;
      unsigned channels;
      size_t bytes;
    } linear;
    struct {
      void* pointer;
      int format;
      unsigned channels;
      size_t width, height, pitch;
    } rows;
    int reserved[32];
  };
  unsigned flags;
};
struct Texture {  // CUDA_TEXTURE_DESC
  int address_modes[3];
  int filter;
  unsigned flags, most_anisotropy;
  int mipmap_filter;
  float level_bias, least_level, most_level, border[4];
  int reserved[12];
};
static_assert(sizeof(Copy2D) == 128 && sizeof(Resource) == 144 && sizeof(Texture) == 104);

enum ResourceType : int { kArray, kMipmap, kLinear, kRows };
enum TextureFlag : unsigned {
  kReadAsInteger = 1,
  kNormalizedCoordinates = 2,
  kSrgb = 16,
  kNoTrilinearOptimization = 32,
  kSeamlessCube = 64
};
constexpr int kSigned = 0, kUnsigned = 1, kFloat = 2;  // cudaChannelFormatKind

// False: a format or a number of channels that there is not.
bool channels_of(int format, unsigned channels, abi::ChannelFormat& result) {
  struct Format {
    int number, bits, kind;  // CUarray_format
  };
  constexpr Format kFormats[] = {{1, 8, kUnsigned}, {2, 16, kUnsigned}, {3, 32, kUnsigned},
                                 {8, 8, kSigned},   {9, 16, kSigned},   {10, 32, kSigned},
                                 {16, 16, kFloat},  {32, 32, kFloat}};
  for (const Format& one : kFormats) {
    if (one.number != format || (channels != 1 && channels != 2 && channels != 4)) continue;
    result = {{}, one.kind};
    for (unsigned i = 0; i < channels; ++i) result.bits[i] = one.bits;
    return true;
  }
  return false;
}

int make_array(void** handle, const Array3DDescription* description) {
  abi::ChannelFormat format{};
  if (handle == nullptr || description == nullptr ||
      !channels_of(description->format, description->channels, format))
    return kInvalidValue;
  return as_runtime([&] {
    return cudaMalloc3DArray(handle, &format,
                             {description->width, description->height, description->depth},
                             description->flags);
  });
}

bool resource_of(const Resource& given, abi::Resource& resource) {
  resource = {};
  resource.type = given.type;
  switch (given.type) {
    case kArray:
    case kMipmap:
      resource.array = given.array;
      return true;
    case kLinear:
      resource.linear = {given.linear.pointer, {}, given.linear.bytes};
      return channels_of(given.linear.format, given.linear.channels, resource.linear.format);
    case kRows:
      resource.rows = {
          given.rows.pointer, {}, given.rows.width, given.rows.height, given.rows.pitch};
      return channels_of(given.rows.format, given.rows.channels, resource.rows.format);
    default:
      return false;
  }
}

// Integers of 8 and 16 bits are read as fractions unless a flag says otherwise; others as they are.
abi::TextureSettings settings_of(const Texture& given) {
  abi::TextureSettings settings{};
  std::copy_n(given.address_modes, 3, settings.address_modes);
  std::copy_n(given.border, 4, settings.border);
  settings.filter = given.filter;
  settings.read_mode = (given.flags & kReadAsInteger) == 0 ? 1 : 0;
  settings.srgb = (given.flags & kSrgb) != 0;
  settings.normalized_coordinates = (given.flags & kNormalizedCoordinates) != 0;
  settings.most_anisotropy = given.most_anisotropy;
  settings.mipmap_filter = given.mipmap_filter;
  settings.level_bias = given.level_bias;
  settings.least_level = given.least_level;
  settings.most_level = given.most_level;
  settings.no_trilinear_optimization = (given.flags & kNoTrilinearOptimization) != 0;
  settings.seamless_cube = (given.flags & kSeamlessCube) != 0;
  return settings;
}

bool is_of_32_bits(const Session& session, const abi::Resource& resource) {
  if (resource.type == kLinear) return resource.linear.format.bits[0] == 32;
  if (resource.type == kRows) return resource.rows.format.bits[0] == 32;
  const DeviceMipmap* mipmap = session.images.find_mipmap(resource.array);
  const DeviceArray* array =
      mipmap != nullptr ? mipmap->levels[0].get() : session.images.find_array(resource.array);
  return array != nullptr && array->format.bits[0] == 32;
}

int copy(const Copy2D* p, void* stream) {
  if (p == nullptr) return kInvalidValue;
  constexpr int kDefault = 4;
  const bool to_array = p->to.memory == 3, from_array = p->from.memory == 3;
  return as_runtime([&] {
    if (to_array && from_array)
      return cudaMemcpy2DArrayToArray(p->to.array, p->to.x, p->to.y, p->from.array, p->from.x,
                                      p->from.y, p->width, p->height, kDefault);
    if (to_array)
      return cudaMemcpy2DToArrayAsync(p->to.array, p->to.x, p->to.y, p->from.begin(), p->from.pitch,
                                      p->width, p->height, kDefault, stream);
    if (from_array)
      return cudaMemcpy2DFromArrayAsync(p->to.begin(), p->to.pitch, p->from.array, p->from.x,
                                        p->from.y, p->width, p->height, kDefault, stream);
    return cudaMemcpy2DAsync(p->to.begin(), p->to.pitch, p->from.begin(), p->from.pitch, p->width,
                             p->height, kDefault, stream);
  });
}

}  // namespace

PTXSIM_CUDA_API int cuArrayCreate(void** handle, const ArrayDescription* description) {
  if (description == nullptr) return kInvalidValue;
  const Array3DDescription flat = {description->width,  description->height,   0,
                                   description->format, description->channels, 0};
  return make_array(handle, &flat);
}
PTXSIM_CUDA_ALIAS(cuArrayCreate, _v2);
PTXSIM_CUDA_API int cuArray3DCreate(void** handle, const Array3DDescription* description) {
  return make_array(handle, description);
}
PTXSIM_CUDA_ALIAS(cuArray3DCreate, _v2);
PTXSIM_CUDA_API int cuArrayDestroy(void* handle) {
  return as_runtime([&] { return cudaFreeArray(handle); });
}

PTXSIM_CUDA_API int cuMemcpy2D(const Copy2D* p) { return copy(p, nullptr); }
PTXSIM_CUDA_ALIAS(cuMemcpy2D, _v2);
PTXSIM_CUDA_API int cuMemcpy2DUnaligned(const Copy2D* p) { return copy(p, nullptr); }
PTXSIM_CUDA_ALIAS(cuMemcpy2DUnaligned, _v2);
PTXSIM_CUDA_API int cuMemcpy2DAsync(const Copy2D* p, void* stream) { return copy(p, stream); }
PTXSIM_CUDA_ALIAS(cuMemcpy2DAsync, _v2);

PTXSIM_CUDA_API int cuTexObjectCreate(uint64_t* object, const Resource* given,
                                      const Texture* texture, const void* view) {
  abi::Resource resource;
  if (given == nullptr || texture == nullptr || !resource_of(*given, resource))
    return kInvalidValue;
  abi::TextureSettings settings = settings_of(*texture);
  const int status = call([&](Session& session) {
    if (is_of_32_bits(session, resource)) settings.read_mode = 0;
    return kSuccess;
  });
  if (status != kSuccess) return status;
  return as_runtime([&] { return cudaCreateTextureObject(object, &resource, &settings, view); });
}
PTXSIM_CUDA_API int cuTexObjectDestroy(uint64_t object) {
  return as_runtime([&] { return cudaDestroyTextureObject(object); });
}
PTXSIM_CUDA_API int cuSurfObjectCreate(uint64_t* object, const Resource* given) {
  abi::Resource resource;
  if (given == nullptr || !resource_of(*given, resource)) return kInvalidValue;
  return as_runtime([&] { return cudaCreateSurfaceObject(object, &resource); });
}
PTXSIM_CUDA_API int cuSurfObjectDestroy(uint64_t object) {
  return as_runtime([&] { return cudaDestroySurfaceObject(object); });
}

}  // namespace ptxsim::cuda::driver
