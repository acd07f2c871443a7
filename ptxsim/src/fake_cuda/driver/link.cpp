// The driver's linker, as far as there is nothing to link: one piece of PTX, whose image is its
// text.
#include <memory>
#include <set>
#include <string>

#include "fake_cuda/driver/call.hpp"

namespace ptxsim::cuda::driver {
namespace {

constexpr int kInputPtx = 1;  // CU_JIT_INPUT_PTX

struct Link {  // CUlinkState points to one
  std::string ptx;
};
std::set<std::unique_ptr<Link>> links;  // guarded as every call is

Link* find_link(void* handle) {
  for (const auto& link : links)
    if (link.get() == handle) return link.get();
  return nullptr;
}

}  // namespace

PTXSIM_CUDA_API int cuLinkCreate(unsigned, int*, void**, void** handle) {
  return call([&](Session&) {
    *handle = links.insert(std::make_unique<Link>()).first->get();
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cuLinkCreate, _v2);
PTXSIM_CUDA_API int cuLinkAddData(void* handle, int type, void* data, size_t bytes, const char*,
                                  unsigned, int*, void**) {
  return call([&](Session&) {
    Link* link = find_link(handle);
    if (link == nullptr) return kInvalidHandle;
    if (type != kInputPtx || !link->ptx.empty())
      return not_modelled("cuLinkAddData of more than one piece of PTX");
    link->ptx.assign(static_cast<const char*>(data), bytes);
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cuLinkAddData, _v2);
PTXSIM_CUDA_API int cuLinkAddFile() { return not_modelled("cuLinkAddFile"); }
PTXSIM_CUDA_ALIAS(cuLinkAddFile, _v2);
PTXSIM_CUDA_API int cuLinkComplete(void* handle, void** image, size_t* bytes) {
  return call([&](Session&) {
    Link* link = find_link(handle);
    if (link == nullptr) return kInvalidHandle;
    *image = link->ptx.data();
    if (bytes != nullptr) *bytes = link->ptx.size() + 1;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuLinkDestroy(void* handle) {
  return call([&](Session&) {
    return std::erase_if(links, [&](const auto& link) { return link.get() == handle; }) == 0
               ? kInvalidHandle
               : kSuccess;
  });
}

}  // namespace ptxsim::cuda::driver
