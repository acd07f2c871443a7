#include "fake_cuda/entry_points.hpp"

#include <dlfcn.h>

namespace ptxsim::cuda {
namespace {

// This library, whatever else of the process has the same names.
void* open_self() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&find_entry_point), &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

void* find_entry_point(const std::string& name) {
  static void* const self = open_self();
  return self == nullptr ? nullptr : dlsym(self, name.c_str());
}

}  // namespace ptxsim::cuda
