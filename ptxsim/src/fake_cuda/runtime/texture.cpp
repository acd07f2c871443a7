// Texture and surface objects.
#include <cstring>

#include "fake_cuda/runtime/array.hpp"
#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {
namespace {

abi::Resource read(const abi::Resource* resource) {
  abi::Resource copy{};
  std::memcpy(&copy, resource, abi::kResourceBytes);
  return copy;
}

int describe(uint64_t object, bool is_surface, abi::Resource* resource,
             abi::TextureSettings* settings) {
  return call([&](Session& session) {
    const DeviceImages::Object* found = session.images.find_object(object);
    if (found == nullptr || found->is_surface != is_surface) return kInvalidValue;
    if (resource != nullptr) std::memcpy(resource, &found->resource, abi::kResourceBytes);
    if (settings != nullptr) *settings = found->settings;
    return kSuccess;
  });
}

}  // namespace

PTXSIM_CUDA_API int cudaCreateTextureObject(uint64_t* object, const abi::Resource* resource,
                                            const abi::TextureSettings* settings,
                                            const void* view) {
  return call([&](Session& session) {
    if (object == nullptr || resource == nullptr || settings == nullptr) return kInvalidValue;
    if (view != nullptr)
      return report_refusal(session, "cudaCreateTextureObject",
                            Refusal{kNotSupported, "resource views are not modelled"});
    return report_refusal(session, "cudaCreateTextureObject",
                          session.images.make_texture(read(resource), *settings, *object));
  });
}
PTXSIM_CUDA_API int cudaDestroyTextureObject(uint64_t object) {
  return call([&](Session& session) { return session.images.free_object(object, false); });
}
PTXSIM_CUDA_API int cudaGetTextureObjectResourceDesc(abi::Resource* resource, uint64_t object) {
  return describe(object, false, resource, nullptr);
}
PTXSIM_CUDA_API int cudaGetTextureObjectTextureDesc(abi::TextureSettings* settings,
                                                    uint64_t object) {
  return describe(object, false, nullptr, settings);
}

PTXSIM_CUDA_API int cudaCreateSurfaceObject(uint64_t* object, const abi::Resource* resource) {
  return call([&](Session& session) {
    if (object == nullptr || resource == nullptr) return kInvalidValue;
    return report_refusal(session, "cudaCreateSurfaceObject",
                          session.images.make_surface(read(resource), *object));
  });
}
PTXSIM_CUDA_API int cudaDestroySurfaceObject(uint64_t object) {
  return call([&](Session& session) { return session.images.free_object(object, true); });
}
PTXSIM_CUDA_API int cudaGetSurfaceObjectResourceDesc(abi::Resource* resource, uint64_t object) {
  return describe(object, true, resource, nullptr);
}

}  // namespace ptxsim::cuda::runtime
