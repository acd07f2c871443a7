// What CUDA 12 lays out otherwise than CUDA 13 (driver_types.h of nvidia-cuda-runtime-cu12
// 12.9.79).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxsim::cuda::abi {

// cudaDeviceProp, which programs of CUDA 12 get by cudaGetDeviceProperties_v2. Names are those of
// DeviceProperties; it has no NUMA, and what CUDA 13 has dropped.
struct DevicePropertiesOfCuda12 {
  char name[256];
  std::byte uuid[16];
  char luid[8];
  uint32_t luid_device_node_mask;
  size_t total_global_memory, shared_bytes_per_block;
  int registers_per_block, warp_size;
  size_t memory_pitch;
  int max_threads_per_block, max_block[3], max_grid[3], clock_khz;
  size_t total_const_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int overlap, num_sms, exec_timeout, integrated, can_map_host_memory, compute_mode;
  int textures_and_surfaces[40];
  size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus, pci_device, pci_domain, tcc_driver, async_engines,
      unified_addressing, memory_clock_khz, memory_bus_bits, l2_bytes, persisting_l2_bytes,
      max_threads_per_sm, stream_priorities, global_l1_cache, local_l1_cache;
  size_t shared_bytes_per_sm;
  int registers_per_sm, managed_memory, is_multi_gpu_board, multi_gpu_board_group,
      host_native_atomics, single_to_double_ratio, pageable_memory_access,
      concurrent_managed_access, compute_preemption, host_pointer_for_registered_memory,
      cooperative_launch, cooperative_launch_on_devices;
  size_t shared_bytes_per_block_optin;
  int pageable_uses_host_page_tables, direct_managed_access, max_blocks_per_sm,
      access_policy_window_bytes;
  size_t reserved_shared_bytes_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools,
      rdma;
  uint32_t rdma_flush_writes;
  int rdma_writes_ordering;
  uint32_t memory_pool_handle_types;
  int deferred_mapping, ipc_events, cluster_launch, unified_function_pointers;
  int reserved[63];
};
static_assert(offsetof(DevicePropertiesOfCuda12, major) == 360);
static_assert(offsetof(DevicePropertiesOfCuda12, num_sms) == 388);
static_assert(offsetof(DevicePropertiesOfCuda12, surface_alignment) == 568);
static_assert(offsetof(DevicePropertiesOfCuda12, memory_clock_khz) == 608);
static_assert(offsetof(DevicePropertiesOfCuda12, shared_bytes_per_sm) == 640);
static_assert(offsetof(DevicePropertiesOfCuda12, shared_bytes_per_block_optin) == 696);
static_assert(offsetof(DevicePropertiesOfCuda12, cluster_launch) == 772);
static_assert(sizeof(DevicePropertiesOfCuda12) == 1032);

}  // namespace ptxsim::cuda::abi
