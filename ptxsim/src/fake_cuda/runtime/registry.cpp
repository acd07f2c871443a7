#include "fake_cuda/runtime/registry.hpp"

#include <algorithm>
#include <cstring>

#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {

Registry& Registry::get() {
  static Registry* registry = new Registry;  // destructors of the program may still call
  return *registry;
}

RegisteredImage* Registry::add(const void* image) {
  images_.push_back(std::make_unique<RegisteredImage>());
  images_.back()->image = image;
  return images_.back().get();
}

void Registry::remove(RegisteredImage* image) {
  std::erase_if(functions_, [&](const auto& entry) { return entry.second.image == image; });
  std::erase_if(images_, [&](const auto& one) { return one.get() == image; });
}

void Registry::add_function(RegisteredImage* image, const void* host, const char* name) {
  functions_[host] = {image, name};
}

Status Registry::load(Session& session, RegisteredImage& image) {
  if (image.module != nullptr) return image.module->status();
  image.module = session.add_module();
  const Status status = image.module->load(image.image, session.device, session.memory);
  if (status == kNoBinaryForGpu && !session.settings.substitutes.empty()) return status;
  if (status != kSuccess) {
    session.recorder.refused("loading a fat binary of the program", status,
                             image.module->message());
    return status;
  }
  for (const auto& [host, registered] : image.variables) {
    ModuleVariable* variable = image.module->variable(registered.name);
    if (variable == nullptr)
      variable = &image.module->add_variable(registered.name, registered.bytes, registered.constant,
                                             session.memory);
  }
  // Who names it as a symbol names the address (cudaMemcpyToSymbol, cudaGetSymbolAddress).
  for (const auto& [where, name] : image.managed) {
    const ModuleVariable* variable = image.module->variable(name);
    if (variable == nullptr) continue;
    *where = reinterpret_cast<void*>(variable->address);
    image.variables[*where] = {name, variable->bytes, false};
  }
  return status;
}

Status Registry::kernel_of(Session& session, const void* host, Kernel*& kernel) {
  const auto found = functions_.find(host);
  if (found == functions_.end()) return kInvalidHandle;
  const auto& [image, name] = found->second;
  const Status status = load(session, *image);
  if (status == kNoBinaryForGpu && !session.settings.substitutes.empty()) {
    kernel = session.substitute(name);
    if (kernel != nullptr) return kSuccess;
    session.recorder.refused("kernel " + demangled(name), status,
                             image->module->message() + "; no file of --ptx has the kernel");
  }
  if (status != kSuccess) return status;
  kernel = image->module->kernel(name);
  return kernel == nullptr ? kInvalidDeviceFunction : kSuccess;
}

const void* Registry::host_of(const Kernel& kernel) const {
  for (const auto& [host, function] : functions_)
    if (function.name == kernel.entry->name &&
        (function.image->module == kernel.module || function.image->module == nullptr ||
         function.image->module->status() != kSuccess))  // a substitute's
      return host;
  return &kernel;
}

Status Registry::variable_of(Session& session, const void* host, LoadedModule*& module,
                             ModuleVariable*& variable) {
  for (const auto& image : images_) {
    const auto found = image->variables.find(host);
    if (found == image->variables.end()) continue;
    const Status status = load(session, *image);
    if (status != kSuccess) return status;
    module = image->module;
    variable = module->variable(found->second.name);
    return kSuccess;
  }
  return kInvalidSymbol;
}

Status& Registry::last_lookup() {
  static thread_local Status status = kSuccess;
  return status;
}

PTXSIM_CUDA_API void** __cudaRegisterFatBinary(void* wrapper) {
  RegisteredImage* image = nullptr;
  guarded([&](Session&) {
    const auto* fatbin = static_cast<const abi::FatbinWrapper*>(wrapper);
    image = Registry::get().add(fatbin->magic == abi::kFatbinWrapperMagic ? fatbin->data : nullptr);
    return kSuccess;
  });
  return reinterpret_cast<void**>(image);
}

PTXSIM_CUDA_API void __cudaRegisterFatBinaryEnd(void**) {}
// Before the host uses a __managed__ variable for the first time.
PTXSIM_CUDA_API char __cudaInitModule(void** image) {
  guarded([&](Session& session) {
    return Registry::get().load(session, *reinterpret_cast<RegisteredImage*>(image));
  });
  return 1;
}
PTXSIM_CUDA_API void __cudaRegisterManagedVar(void** image, void** host, char*, const char* name,
                                              int, size_t, int, int) {
  guarded([&](Session&) {
    reinterpret_cast<RegisteredImage*>(image)->managed.emplace_back(host, name);
    return kSuccess;
  });
}

PTXSIM_CUDA_API void __cudaUnregisterFatBinary(void** image) {
  guarded([&](Session&) {
    Registry::get().remove(reinterpret_cast<RegisteredImage*>(image));
    return kSuccess;
  });
}

PTXSIM_CUDA_API void __cudaRegisterFunction(void** image, const char* host, char*, const char* name,
                                            int, void*, void*, void*, void*, int*) {
  guarded([&](Session&) {
    Registry::get().add_function(reinterpret_cast<RegisteredImage*>(image), host, name);
    return kSuccess;
  });
}

PTXSIM_CUDA_API void __cudaRegisterVar(void** image, char* host, char*, const char* name, int,
                                       size_t bytes, int constant, int) {
  guarded([&](Session&) {
    reinterpret_cast<RegisteredImage*>(image)->variables[host] = {name, bytes, constant != 0};
    return kSuccess;
  });
}

PTXSIM_CUDA_API int __cudaGetKernel(void** kernel, const void* host) {
  return call([&](Session& session) {
    Kernel* found = nullptr;
    const Status status = Registry::get().kernel_of(session, host, found);
    *kernel = found;
    return Registry::last_lookup() = status;
  });
}

}  // namespace ptxsim::cuda::runtime
