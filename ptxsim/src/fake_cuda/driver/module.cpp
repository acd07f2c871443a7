// Modules and libraries, their kernels, and launches.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fake_cuda/driver/call.hpp"
#include "fake_cuda/functions.hpp"
#include "fake_cuda/issue.hpp"
#include "fake_cuda/machine_code.hpp"

namespace ptxsim::cuda::driver {
namespace {

// The buffer for errors that a program hands to the compiler: CU_JIT_ERROR_LOG_BUFFER and its size,
// which becomes what was written.
void write_log(const std::string& message, unsigned num_options, const int* options,
               void** values) {
  constexpr int kBuffer = 5, kBufferBytes = 6;
  char* buffer = nullptr;
  size_t index = num_options;
  for (unsigned i = 0; i < num_options; ++i) {
    if (options[i] == kBuffer) buffer = static_cast<char*>(values[i]);
    if (options[i] == kBufferBytes) index = i;
  }
  if (index == num_options) return;
  const size_t room = reinterpret_cast<uintptr_t>(values[index]) & UINT32_MAX;
  if (buffer == nullptr || room == 0) return;
  const size_t bytes = std::min(message.size(), room - 1);
  std::memcpy(buffer, message.data(), bytes);
  buffer[bytes] = 0;
  values[index] = reinterpret_cast<void*>(bytes);
}

Status load(Session& session, void** handle, const void* image, std::string* message = nullptr) {
  if (handle == nullptr || image == nullptr) return kInvalidValue;
  const auto* wrapper = static_cast<const abi::FatbinWrapper*>(image);
  if (wrapper->magic == abi::kFatbinWrapperMagic) image = wrapper->data;
  const std::vector<std::string>& places = session.settings.substitutes;
  LoadedModule* module = session.add_module();
  Status status = module->load(image, session.device, session.memory);
  if (status == kNoBinaryForGpu)
    if (const std::string ptx = ptx_beside(places, image); !ptx.empty())
      status = module->load(ptx.c_str(), session.device, session.memory);
  // Kernels of machine code may have PTX among the files of --ptx.
  if (status == kSuccess || (status == kNoBinaryForGpu && !places.empty())) {
    *handle = module;
    return kSuccess;
  }
  if (message != nullptr) *message = module->message();
  session.recorder.refused("cuModuleLoadData", status, module->message());
  session.unload(module);
  return status;
}

Status load_file(Session& session, void** handle, const char* path) {
  constexpr Status kFileNotFound = static_cast<Status>(301);  // CUDA_ERROR_FILE_NOT_FOUND
  std::ifstream file(path, std::ios::binary);
  if (!file) return kFileNotFound;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.resize(bytes.size() + 64);  // an entry's header is read before its sizes are known
  return load(session, handle, bytes.data());
}

template <class F>
int with_kernel(void* handle, F&& f) {
  return call([&](Session& session) {
    Kernel* kernel = session.find_kernel(handle);
    return kernel == nullptr ? kInvalidHandle : f(session, *kernel);
  });
}

int launch(void* function, LaunchRequest request, void** parameters, void** extra, void* stream) {
  return with_kernel(function, [&](Session& session, Kernel& kernel) {
    request.kernel = &kernel;
    if (extra == nullptr) return issue_launch(session, request, parameters, stream);
    // Pairs of a key and a value: 1 a buffer of all parameters, 2 its size, 0 the end.
    const std::byte* bytes = nullptr;
    size_t count = 0;
    for (; extra[0] != nullptr; extra += 2) {
      if (extra[0] == reinterpret_cast<void*>(1)) bytes = static_cast<const std::byte*>(extra[1]);
      if (extra[0] == reinterpret_cast<void*>(2)) count = *static_cast<const size_t*>(extra[1]);
    }
    if (bytes == nullptr || count < kernel.entry->param_bytes) return kInvalidValue;
    std::vector<void*> pointers;
    for (uint32_t i = 0; i < kernel.entry->num_params; ++i)
      pointers.push_back(const_cast<std::byte*>(bytes) + kernel.entry->variables[i].offset);
    return issue_launch(session, request, pointers.data(), stream);
  });
}

}  // namespace

PTXSIM_CUDA_API int cuModuleLoadData(void** module, const void* image) {
  return call([&](Session& session) { return load(session, module, image); });
}
PTXSIM_CUDA_API int cuModuleLoadDataEx(void** module, const void* image, unsigned num_options,
                                       const int* options, void** values) {
  return call([&](Session& session) {
    std::string message;
    const Status status = load(session, module, image, &message);
    write_log(message, num_options, options, values);
    return status;
  });
}
PTXSIM_CUDA_API int cuModuleLoadFatBinary(void** module, const void* image) {
  return cuModuleLoadData(module, image);
}
PTXSIM_CUDA_API int cuModuleLoad(void** module, const char* path) {
  return call([&](Session& session) { return load_file(session, module, path); });
}
PTXSIM_CUDA_API int cuModuleUnload(void* module) {
  return call([&](Session& session) { return session.unload(module); });
}
PTXSIM_CUDA_API int cuModuleGetLoadingMode(int* mode) {
  *mode = 2;  // CU_MODULE_LAZY_LOADING
  return kSuccess;
}
PTXSIM_CUDA_API int cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned,
                                      int*, void**, unsigned) {
  return cuModuleLoadData(library, image);
}
PTXSIM_CUDA_API int cuLibraryLoadFromFile(void** library, const char* path, int*, void**, unsigned,
                                          int*, void**, unsigned) {
  return cuModuleLoad(library, path);
}
PTXSIM_CUDA_API int cuLibraryUnload(void* library) { return cuModuleUnload(library); }

PTXSIM_CUDA_API int cuModuleGetFunction(void** function, void* handle, const char* name) {
  return call([&](Session& session) {
    LoadedModule* module = session.find_module(handle);
    if (module == nullptr) return kInvalidHandle;
    Kernel* kernel = module->kernel(name);
    if (kernel == nullptr && module->status() == kNoBinaryForGpu) kernel = session.substitute(name);
    *function = kernel;
    return *function == nullptr ? kNotFound : kSuccess;
  });
}
PTXSIM_CUDA_API int cuModuleGetFunctionCount(unsigned* count, void* handle) {
  return call([&](Session& session) {
    LoadedModule* module = session.find_module(handle);
    if (module == nullptr) return kInvalidHandle;
    *count = static_cast<unsigned>(module->kernels().size());
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuModuleEnumerateFunctions(void** functions, unsigned count, void* handle) {
  return call([&](Session& session) {
    LoadedModule* module = session.find_module(handle);
    if (module == nullptr) return kInvalidHandle;
    unsigned next = 0;
    for (auto& [name, kernel] : module->kernels())
      if (next < count) functions[next++] = &kernel;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuLibraryGetKernelCount(unsigned* count, void* library) {
  return cuModuleGetFunctionCount(count, library);
}
PTXSIM_CUDA_API int cuLibraryEnumerateKernels(void** kernels, unsigned count, void* library) {
  return cuModuleEnumerateFunctions(kernels, count, library);
}
PTXSIM_CUDA_API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return cuModuleGetFunction(kernel, library, name);
}
PTXSIM_CUDA_API int cuLibraryGetModule(void** module, void* library) {
  *module = library;
  return kSuccess;
}
PTXSIM_CUDA_API int cuKernelGetFunction(void** function, void* kernel) {
  return with_kernel(kernel, [&](Session&, Kernel& found) {
    *function = &found;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuFuncGetModule(void** module, void* function) {
  return with_kernel(function, [&](Session&, Kernel& kernel) {
    *module = kernel.module;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuFuncGetName(const char** name, void* function) {
  return with_kernel(function, [&](Session&, Kernel& kernel) {
    *name = kernel.entry->name.c_str();
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuModuleGetGlobal(uint64_t* address, size_t* bytes, void* handle,
                                      const char* name) {
  return call([&](Session& session) {
    LoadedModule* module = session.find_module(handle);
    if (module == nullptr) return kInvalidHandle;
    const ModuleVariable* variable = module->variable(name);
    if (variable == nullptr) return kNotFound;
    if (address != nullptr) *address = variable->address;
    if (bytes != nullptr) *bytes = variable->bytes;
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cuModuleGetGlobal, _v2);
PTXSIM_CUDA_API int cuLibraryGetGlobal(uint64_t* address, size_t* bytes, void* library,
                                       const char* name) {
  return cuModuleGetGlobal(address, bytes, library, name);
}

PTXSIM_CUDA_API int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return with_kernel(function, [&](Session& session, Kernel& kernel) {
    return function_attribute(session, kernel, attribute, *value);
  });
}
PTXSIM_CUDA_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  return with_kernel(function, [&](Session& session, Kernel& kernel) {
    return set_function_attribute(session, kernel, attribute, value);
  });
}
PTXSIM_CUDA_API int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
PTXSIM_CUDA_API int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
PTXSIM_CUDA_API int cuFuncSetCacheConfig(void* function, int) {
  return with_kernel(function, [](Session&, Kernel&) { return kSuccess; });
}
PTXSIM_CUDA_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function,
                                                                int threads, size_t shared_bytes) {
  return with_kernel(function, [&](Session& session, Kernel& kernel) {
    if (threads <= 0) return kInvalidValue;
    *blocks = static_cast<int>(
        session.blocks_per_sm(kernel, static_cast<uint32_t>(threads), shared_bytes));
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, void* function, int threads, size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}
constexpr uint32_t kMostThreads = 1024;  // of a block

// The largest block of those that fill most of an SM: what the runtime's header does, too.
PTXSIM_CUDA_API int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function,
                                                     size_t (*shared_bytes_of)(int),
                                                     size_t shared_bytes, int limit) {
  return with_kernel(function, [&](Session& session, Kernel& kernel) {
    const uint32_t begin =
        limit > 0 ? std::min(static_cast<uint32_t>(limit), kMostThreads) : kMostThreads;
    uint32_t best = 0;
    for (uint32_t threads = begin; threads > 0;) {
      const size_t bytes =
          shared_bytes_of != nullptr ? shared_bytes_of(static_cast<int>(threads)) : shared_bytes;
      const uint32_t blocks = session.blocks_per_sm(kernel, threads, bytes);
      if (blocks * threads > best) {
        best = blocks * threads;
        *block = static_cast<int>(threads);
        *grid = static_cast<int>(blocks * session.device.sms);
      }
      threads = (threads - 1) / kWarpSize * kWarpSize;
    }
    return best > 0 ? kSuccess : kInvalidValue;
  });
}
PTXSIM_CUDA_API int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void* function,
                                                              size_t (*shared_bytes_of)(int),
                                                              size_t shared_bytes, int limit,
                                                              unsigned) {
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_bytes_of, shared_bytes,
                                          limit);
}
PTXSIM_CUDA_API int cuOccupancyMaxActiveClusters(int* clusters, void* function,
                                                 const abi::DriverLaunchConfig* config) {
  return with_kernel(function, [&](Session& session, Kernel& kernel) {
    LaunchRequest request;
    request.block = abi::extents_of(config->block);
    request.dynamic_shared_bytes = config->dynamic_shared_bytes;
    apply_attributes(request, config->attributes, config->num_attributes);
    *clusters = static_cast<int>(resident_clusters(session, kernel, request));
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                                   void* stream, void** parameters, void** extra) {
  LaunchRequest request;
  request.grid = {gx, gy, gz};
  request.block = {bx, by, bz};
  request.dynamic_shared_bytes = shared_bytes;
  return launch(function, request, parameters, extra, stream);
}
PTXSIM_CUDA_ALIAS(cuLaunchKernel, _ptsz);
PTXSIM_CUDA_API int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz,
                                              unsigned bx, unsigned by, unsigned bz,
                                              unsigned shared_bytes, void* stream,
                                              void** parameters) {
  LaunchRequest request;
  request.grid = {gx, gy, gz};
  request.block = {bx, by, bz};
  request.dynamic_shared_bytes = shared_bytes;
  request.cooperative = true;
  return launch(function, request, parameters, nullptr, stream);
}
PTXSIM_CUDA_API int cuLaunchKernelEx(const abi::DriverLaunchConfig* config, void* function,
                                     void** parameters, void** extra) {
  if (config == nullptr) return kInvalidValue;
  LaunchRequest request;
  request.grid = abi::extents_of(config->grid);
  request.block = abi::extents_of(config->block);
  request.dynamic_shared_bytes = config->dynamic_shared_bytes;
  apply_attributes(request, config->attributes, config->num_attributes);
  return launch(function, request, parameters, extra, config->stream);
}
PTXSIM_CUDA_ALIAS(cuLaunchKernelEx, _ptsz);

}  // namespace ptxsim::cuda::driver
