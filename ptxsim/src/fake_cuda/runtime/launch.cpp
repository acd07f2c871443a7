// Kernel launches: the <<<>>> of nvcc, and the calls that take a function of the host.
#include <algorithm>
#include <vector>

#include "fake_cuda/issue.hpp"
#include "fake_cuda/runtime/call.hpp"
#include "fake_cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

struct Configuration {
  abi::Dim grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local std::vector<Configuration> pushed;  // by <<<>>>, until the function between takes it

LaunchRequest request_of(Kernel* kernel, const abi::Dim& grid, const abi::Dim& block,
                         size_t shared_bytes) {
  LaunchRequest request;
  request.kernel = kernel;
  request.grid = abi::extents_of(grid);
  request.block = abi::extents_of(block);
  request.dynamic_shared_bytes = static_cast<uint32_t>(std::min<size_t>(shared_bytes, UINT32_MAX));
  return request;
}

}  // namespace

PTXSIM_CUDA_API unsigned __cudaPushCallConfiguration(abi::Dim grid, abi::Dim block,
                                                     size_t shared_bytes, void* stream) {
  pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}

PTXSIM_CUDA_API int __cudaPopCallConfiguration(abi::Dim* grid, abi::Dim* block,
                                               size_t* shared_bytes, void** stream) {
  if (pushed.empty()) return remember(kInvalidConfiguration);
  *grid = pushed.back().grid;
  *block = pushed.back().block;
  *shared_bytes = pushed.back().shared_bytes;
  *stream = pushed.back().stream;
  pushed.pop_back();
  return kSuccess;
}

PTXSIM_CUDA_API int __cudaLaunchKernel(void* kernel, abi::Dim grid, abi::Dim block,
                                       void** arguments, size_t shared_bytes, void* stream) {
  return call([&](Session& session) {
    Kernel* found = session.find_kernel(kernel);
    if (kernel == nullptr && Registry::last_lookup() != kSuccess) return Registry::last_lookup();
    if (found == nullptr) return kInvalidHandle;
    return issue_launch(session, request_of(found, grid, block, shared_bytes), arguments, stream);
  });
}
PTXSIM_CUDA_ALIAS(__cudaLaunchKernel, _ptsz);

PTXSIM_CUDA_API int cudaLaunchKernel(const void* host, abi::Dim grid, abi::Dim block,
                                     void** arguments, size_t shared_bytes, void* stream) {
  return call([&](Session& session) {
    Kernel* kernel =
        session.find_kernel(const_cast<void*>(host));  // a cudaKernel_t may stand for the function
    const Status status =
        kernel != nullptr ? kSuccess : Registry::get().kernel_of(session, host, kernel);
    if (status != kSuccess) return status;
    return issue_launch(session, request_of(kernel, grid, block, shared_bytes), arguments, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaLaunchKernel, _ptsz);

PTXSIM_CUDA_API int cudaLaunchCooperativeKernel(const void* host, abi::Dim grid, abi::Dim block,
                                                void** arguments, size_t shared_bytes,
                                                void* stream) {
  return call([&](Session& session) {
    Kernel* kernel = nullptr;
    const Status status = Registry::get().kernel_of(session, host, kernel);
    if (status != kSuccess) return status;
    LaunchRequest request = request_of(kernel, grid, block, shared_bytes);
    request.cooperative = true;
    return issue_launch(session, request, arguments, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaLaunchCooperativeKernel, _ptsz);

PTXSIM_CUDA_API int cudaLaunchKernelExC(const abi::RuntimeLaunchConfig* config, const void* host,
                                        void** arguments) {
  return call([&](Session& session) {
    if (config == nullptr) return kInvalidValue;
    Kernel* kernel = session.find_kernel(const_cast<void*>(host));
    const Status status =
        kernel != nullptr ? kSuccess : Registry::get().kernel_of(session, host, kernel);
    if (status != kSuccess) return status;
    LaunchRequest request =
        request_of(kernel, config->grid, config->block, config->dynamic_shared_bytes);
    apply_attributes(request, config->attributes, config->num_attributes);
    return issue_launch(session, request, arguments, config->stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaLaunchKernelExC, _ptsz);

}  // namespace ptxsim::cuda::runtime
