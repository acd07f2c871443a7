// The device as programs of CUDA 12 ask for it.
#include <cstring>

#include "fake_cuda/abi_cuda12.hpp"
#include "fake_cuda/runtime/call.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::runtime {

PTXSIM_CUDA_API int cudaGetDeviceProperties_v2(abi::DevicePropertiesOfCuda12* properties,
                                               int device) {
  abi::DeviceProperties now;
  if (const int status = cudaGetDeviceProperties(&now, device); status != kSuccess) return status;
  return call([&](Session& session) {
    abi::DevicePropertiesOfCuda12& p = *properties;
    const auto value_of = [&](int attribute) {
      int value = 0;
      device_attribute(session.device, attribute, value);
      return value;
    };
    p = {};
    std::memcpy(p.name, now.name, sizeof p.name);
    p.total_global_memory = now.total_global_memory;
    p.shared_bytes_per_block = now.shared_bytes_per_block;
    p.registers_per_block = now.registers_per_block;
    p.warp_size = now.warp_size;
    p.memory_pitch = now.memory_pitch;
    p.max_threads_per_block = now.max_threads_per_block;
    std::memcpy(p.max_block, now.max_block, sizeof p.max_block);
    std::memcpy(p.max_grid, now.max_grid, sizeof p.max_grid);
    p.clock_khz = value_of(13);
    p.total_const_memory = now.total_const_memory;
    p.major = now.major;
    p.minor = now.minor;
    p.texture_alignment = now.texture_alignment;
    p.texture_pitch_alignment = now.texture_pitch_alignment;
    p.overlap = value_of(15);
    p.num_sms = now.num_sms;
    p.integrated = now.integrated;
    p.can_map_host_memory = now.can_map_host_memory;
    p.surface_alignment = now.surface_alignment;
    p.concurrent_kernels = now.concurrent_kernels;
    p.pci_device = now.pci_device;
    p.async_engines = now.async_engines;
    p.unified_addressing = now.unified_addressing;
    p.memory_clock_khz = value_of(36);
    p.memory_bus_bits = now.memory_bus_bits;
    p.l2_bytes = now.l2_bytes;
    p.persisting_l2_bytes = now.persisting_l2_bytes;
    p.max_threads_per_sm = now.max_threads_per_sm;
    p.stream_priorities = now.stream_priorities;
    p.global_l1_cache = now.global_l1_cache;
    p.local_l1_cache = now.local_l1_cache;
    p.shared_bytes_per_sm = now.shared_bytes_per_sm;
    p.registers_per_sm = now.registers_per_sm;
    p.managed_memory = now.managed_memory;
    p.single_to_double_ratio = value_of(87);
    p.cooperative_launch = now.cooperative_launch;
    p.shared_bytes_per_block_optin = now.shared_bytes_per_block_optin;
    p.max_blocks_per_sm = now.max_blocks_per_sm;
    p.access_policy_window_bytes = now.access_policy_window_bytes;
    p.reserved_shared_bytes_per_block = now.reserved_shared_bytes_per_block;
    p.host_register = now.host_register;
    p.memory_pools = now.memory_pools;
    p.memory_pool_handle_types = now.memory_pool_handle_types;
    p.ipc_events = now.ipc_events;
    p.cluster_launch = now.cluster_launch;
    p.unified_function_pointers = now.unified_function_pointers;
    return kSuccess;
  });
}

}  // namespace ptxsim::cuda::runtime
