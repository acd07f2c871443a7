#include <vector>

#include "api/backend.hpp"

namespace dualgemm::api {

const Backend& backend_of(DeviceKind device) noexcept {
  return device == DeviceKind::kCuda ? cuda_backend() : cpu_backend();
}

std::span<const Strategy* const> registry() {
  static const std::vector<const Strategy*> all = [] {
    std::vector<const Strategy*> list;
    for (const Backend* backend : {&cpu_backend(), &cuda_backend()})
      for (const Strategy* strategy : backend->strategies()) list.push_back(strategy);
    return list;
  }();
  return all;
}

Status not_in_this_build() {
  return Status::unsupported("device", "cuda", "this build of dualgemm has no CUDA part");
}

}  // namespace dualgemm::api
