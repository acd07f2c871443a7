// __device__ and __constant__ variables, as the host reads and writes them.
#include <cstring>

#include "fake_cuda/runtime/call.hpp"
#include "fake_cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

Status access(Session& session, const void* symbol, void* host, size_t bytes, size_t offset,
              bool to_symbol, void* stream) {
  LoadedModule* module = nullptr;
  ModuleVariable* variable = nullptr;
  const Status status = Registry::get().variable_of(session, symbol, module, variable);
  if (status != kSuccess) return status;
  if (offset > variable->bytes || bytes > variable->bytes - offset) return kInvalidValue;
  return session.streams.issue(stream, [=, &session] {
    void* device = reinterpret_cast<void*>(variable->address + offset);
    return to_symbol ? session.memory.copy(device, host, bytes)
                     : session.memory.copy(host, device, bytes);
  });
}

}  // namespace

PTXSIM_CUDA_API int cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes,
                                       size_t offset, int) {
  return call([&](Session& session) {
    return access(session, symbol, const_cast<void*>(from), bytes, offset, true, nullptr);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyToSymbol, _ptds);
PTXSIM_CUDA_API int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                            size_t offset, int, void* stream) {
  return call([&](Session& session) {
    return access(session, symbol, const_cast<void*>(from), bytes, offset, true, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyToSymbolAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                         int) {
  return call(
      [&](Session& session) { return access(session, symbol, to, bytes, offset, false, nullptr); });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyFromSymbol, _ptds);
PTXSIM_CUDA_API int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes,
                                              size_t offset, int, void* stream) {
  return call(
      [&](Session& session) { return access(session, symbol, to, bytes, offset, false, stream); });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyFromSymbolAsync, _ptsz);

PTXSIM_CUDA_API int cudaGetSymbolAddress(void** address, const void* symbol) {
  return call([&](Session& session) {
    LoadedModule* module = nullptr;
    ModuleVariable* variable = nullptr;
    const Status status = Registry::get().variable_of(session, symbol, module, variable);
    if (status != kSuccess) return status;
    *address = reinterpret_cast<void*>(variable->address);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return call([&](Session& session) {
    LoadedModule* module = nullptr;
    ModuleVariable* variable = nullptr;
    const Status status = Registry::get().variable_of(session, symbol, module, variable);
    if (status == kSuccess) *bytes = variable->bytes;
    return status;
  });
}

}  // namespace ptxsim::cuda::runtime
