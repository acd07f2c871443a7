// Attributes of kernels and their occupancy.
#include <algorithm>

#include "fake_cuda/functions.hpp"
#include "fake_cuda/issue.hpp"
#include "fake_cuda/runtime/call.hpp"
#include "fake_cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

// f(Session&, Kernel&) -> Status
template <class F>
int with_kernel(const void* host, F&& f) {
  return call([&](Session& session) {
    Kernel* kernel = session.find_kernel(const_cast<void*>(host));
    const Status status =
        kernel != nullptr ? kSuccess : Registry::get().kernel_of(session, host, kernel);
    return status != kSuccess ? status : f(session, *kernel);
  });
}

}  // namespace

PTXSIM_CUDA_API int cudaFuncSetAttribute(const void* host, int attribute, int value) {
  return with_kernel(host, [&](Session& session, Kernel& kernel) {
    return set_function_attribute(session, kernel, attribute, value);
  });
}

PTXSIM_CUDA_API int cudaFuncGetAttributes(abi::FunctionAttributes* attributes, const void* host) {
  return with_kernel(host, [&](Session& session, Kernel& kernel) {
    const auto value_of = [&](int attribute) {
      int value = 0;
      function_attribute(session, kernel, attribute, value);
      return value;
    };
    *attributes = {};
    attributes->shared_bytes = static_cast<size_t>(value_of(kSharedBytes));
    attributes->local_bytes = static_cast<size_t>(value_of(kLocalBytes));
    attributes->max_threads_per_block = value_of(kMaxThreadsPerBlock);
    attributes->num_registers = value_of(kNumRegisters);
    attributes->ptx_version = value_of(kPtxVersion);
    attributes->binary_version = value_of(kBinaryVersion);
    attributes->max_dynamic_shared_bytes = value_of(kMaxDynamicSharedBytes);
    attributes->preferred_shared_carveout = value_of(kPreferredSharedCarveout);
    attributes->cluster_must_be_set = value_of(kClusterMustBeSet);
    for (int i = 0; i < 3; ++i)
      attributes->required_cluster[i] = value_of(kRequiredClusterWidth + i);
    attributes->non_portable_cluster_size = value_of(kNonPortableClusterSize);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaFuncSetCacheConfig(const void* host, int) {
  return with_kernel(host, [](Session&, Kernel&) { return kSuccess; });
}

PTXSIM_CUDA_API int cudaFuncGetName(const char** name, const void* host) {
  return with_kernel(host, [&](Session&, Kernel& kernel) {
    *name = kernel.entry->name.c_str();
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaGetFuncBySymbol(void** function, const void* host) {
  return with_kernel(host, [&](Session&, Kernel& kernel) {
    *function = &kernel;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGetKernel(void** kernel, const void* host) {
  return cudaGetFuncBySymbol(kernel, host);
}

PTXSIM_CUDA_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* host, int threads, size_t shared_bytes, unsigned) {
  return with_kernel(host, [&](Session& session, Kernel& kernel) {
    if (threads <= 0) return kInvalidValue;
    *blocks = static_cast<int>(
        session.blocks_per_sm(kernel, static_cast<uint32_t>(threads), shared_bytes));
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host,
                                                                  int threads,
                                                                  size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared_bytes,
                                                                0);
}

// What a block may have beside others: an SM's memory in equal parts, less the KiB that each
// reserves.
PTXSIM_CUDA_API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* host,
                                                              int blocks, int threads) {
  constexpr uint64_t kReserved = 1024, kUnit = 128;
  return with_kernel(host, [&](Session& session, Kernel& kernel) {
    if (blocks <= 0 || threads <= 0) return kInvalidValue;
    int statically = 0;
    function_attribute(session, kernel, kSharedBytes, statically);
    const uint64_t part =
        session.device.shared_bytes_per_sm / static_cast<uint64_t>(blocks) / kUnit * kUnit;
    const uint64_t taken = kReserved + static_cast<uint64_t>(statically);
    const uint64_t most =
        session.device.shared_bytes_per_block() - static_cast<uint64_t>(statically);
    *bytes = part <= taken ? 0 : std::min(part - taken, most);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaOccupancyMaxPotentialClusterSize(int* ctas, const void* host,
                                                         const abi::RuntimeLaunchConfig* config) {
  return with_kernel(host, [&](Session& session, Kernel& kernel) {
    LaunchRequest request;
    request.block = abi::extents_of(config->block);
    request.dynamic_shared_bytes = static_cast<uint32_t>(config->dynamic_shared_bytes);
    *ctas = 0;
    for (uint32_t size = 1; size <= (kernel.non_portable_cluster_size ? 16u : 8u); size *= 2) {
      request.cluster = {size, 1, 1};
      if (resident_clusters(session, kernel, request) > 0) *ctas = static_cast<int>(size);
    }
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaOccupancyMaxActiveClusters(int* clusters, const void* host,
                                                   const abi::RuntimeLaunchConfig* config) {
  return with_kernel(host, [&](Session& session, Kernel& kernel) {
    LaunchRequest request;
    request.block = abi::extents_of(config->block);
    request.dynamic_shared_bytes = static_cast<uint32_t>(config->dynamic_shared_bytes);
    apply_attributes(request, config->attributes, config->num_attributes);
    *clusters = static_cast<int>(resident_clusters(session, kernel, request));
    return kSuccess;
  });
}

}  // namespace ptxsim::cuda::runtime
