// The layouts of CUDA's C interface that pass through the stand-in (CUDA 13.0: vector_types.h,
// driver_types.h, cuda.h; those that CUDA 12 has are the same there but for DeviceProperties:
// abi_cuda12.hpp). Enums are ints, handles pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptxsim/machine/launch.hpp"

#define PTXSIM_CUDA_API extern "C" __attribute__((visibility("default")))
// `name` with another ending: what programs with per-thread default streams call.
#define PTXSIM_CUDA_ALIAS(name, ending) \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##ending

namespace ptxsim::cuda::abi {

struct Dim {  // dim3
  uint32_t x, y, z;
};
inline Dim3 extents_of(const Dim& d) { return {d.x, d.y, d.z}; }

enum AttributeId : uint32_t {  // cudaLaunchAttributeID, CUlaunchAttributeID
  kAttributeCooperative = 2,
  kAttributeClusterDimension = 4,
  kAttributeProgrammaticStreamSerialization = 6,
};

struct LaunchAttribute {  // cudaLaunchAttribute, CUlaunchAttribute
  uint32_t id;
  uint32_t padding;
  union {
    Dim cluster;
    int cooperative;
    int programmatic_stream_serialization;
    std::byte bytes[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

struct RuntimeLaunchConfig {  // cudaLaunchConfig_t
  Dim grid, block;
  size_t dynamic_shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  uint32_t num_attributes;
};
static_assert(sizeof(RuntimeLaunchConfig) == 56);

struct DriverLaunchConfig {  // CUlaunchConfig
  Dim grid, block;
  uint32_t dynamic_shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  uint32_t num_attributes;
};
static_assert(sizeof(DriverLaunchConfig) == 56);

struct PointerAttributes {  // cudaPointerAttributes without its reserved words
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
};

struct FunctionAttributes {  // cudaFuncAttributes
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads_per_block, num_registers, ptx_version, binary_version, cache_mode_ca;
  int max_dynamic_shared_bytes, preferred_shared_carveout;
  int cluster_must_be_set, required_cluster[3], cluster_scheduling, non_portable_cluster_size;
  int reserved[16];
};
static_assert(sizeof(FunctionAttributes) == 144);

// cudaDeviceProp of CUDA 13. Extents of textures and surfaces are not modelled: 0.
struct DeviceProperties {
  char name[256];
  std::byte uuid[16];
  char luid[8];
  uint32_t luid_device_node_mask;
  size_t total_global_memory, shared_bytes_per_block;
  int registers_per_block, warp_size;
  size_t memory_pitch;
  int max_threads_per_block, max_block[3], max_grid[3];
  size_t total_const_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int num_sms, integrated, can_map_host_memory;
  int textures_and_surfaces[39];
  size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus, pci_device, pci_domain, tcc_driver, async_engines,
      unified_addressing, memory_bus_bits, l2_bytes, persisting_l2_bytes, max_threads_per_sm,
      stream_priorities, global_l1_cache, local_l1_cache;
  size_t shared_bytes_per_sm;
  int registers_per_sm, managed_memory, is_multi_gpu_board, multi_gpu_board_group,
      host_native_atomics, pageable_memory_access, concurrent_managed_access, compute_preemption,
      host_pointer_for_registered_memory, cooperative_launch;
  size_t shared_bytes_per_block_optin;
  int pageable_uses_host_page_tables, direct_managed_access, max_blocks_per_sm,
      access_policy_window_bytes;
  size_t reserved_shared_bytes_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools,
      rdma;
  uint32_t rdma_flush_writes;
  int rdma_writes_ordering;
  uint32_t memory_pool_handle_types;
  int deferred_mapping, ipc_events, cluster_launch, unified_function_pointers, numa_config, numa_id,
      mps, host_numa_id;
  uint32_t gpu_pci_device, gpu_pci_subsystem;
  int host_numa_multinode_ipc;
  int reserved[56];
};

struct Extent {  // cudaExtent
  size_t width, height, depth;
};
struct Position {  // cudaPos
  size_t x, y, z;
};
struct PitchedPointer {  // cudaPitchedPtr
  void* pointer;
  size_t pitch, width, height;
};
struct Copy3D {  // cudaMemcpy3DParms
  void* from_array;
  Position from_begin;
  PitchedPointer from;
  void* to_array;
  Position to_begin;
  PitchedPointer to;
  Extent extent;
  int direction;
};
static_assert(sizeof(Copy3D) == 160);

// Nodes of graphs.
struct KernelParameters {  // cudaKernelNodeParams
  const void* function;
  Dim grid, block;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};
struct MemsetParameters {  // cudaMemsetParams
  void* to;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
};
struct HostParameters {  // cudaHostNodeParams
  void (*function)(void*);
  void* argument;
};
struct ConditionalParameters {  // cudaConditionalNodeParams
  uint64_t handle;
  int type;  // cudaGraphConditionalNodeType
  unsigned size;
  void** bodies;  // of the stand-in, for as long as the node lives
};
// cudaMemLocation, CUmemLocation.
struct MemoryLocation {
  int type;
  int id;
};
struct PoolProperties {  // cudaMemPoolProps
  int type;              // cudaMemAllocationType
  int handle_types;
  MemoryLocation location;
  void* security_attributes;
  size_t most_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(PoolProperties) == 88);
struct PhysicalProperties {  // CUmemAllocationProp
  int type;                  // CUmemAllocationType
  int handle_types;          // CUmemAllocationHandleType
  MemoryLocation location;
  void* security_attributes;
  uint8_t compression;  // has no effect
  uint8_t for_rdma;
  uint16_t usage;
  uint8_t reserved[4];
};
static_assert(sizeof(PhysicalProperties) == 32);
struct AccessDescription {  // CUmemAccessDesc
  MemoryLocation location;
  int flags;
};
static_assert(sizeof(AccessDescription) == 12);
struct AllocationParameters {  // cudaMemAllocNodeParams
  PoolProperties pool;
  const void* accesses;
  size_t num_accesses;
  size_t bytes;
  void* address;  // of the stand-in
};
static_assert(sizeof(AllocationParameters) == 120);
struct FreeParameters {  // cudaMemFreeNodeParams
  void* address;
};
struct NodeParameters {  // cudaGraphNodeParams
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    KernelParameters kernel;
    struct {
      int flags;
      int reserved[3];
      Copy3D copy;
    } memcpy;
    MemsetParameters memset;
    HostParameters host;
    struct {
      void* graph;
      int ownership;
    } child;
    AllocationParameters allocation;
    FreeParameters free;
    ConditionalParameters conditional;
  };
  long long reserved2;
};
static_assert(sizeof(NodeParameters) == 256);

struct ChannelFormat {  // cudaChannelFormatDesc
  int bits[4];
  int kind;
};
struct Resource {  // cudaResourceDesc
  int type;
  union {
    void* array;  // or mipmap
    struct {
      void* pointer;
      ChannelFormat format;
      size_t bytes;
    } linear;
    struct {
      void* pointer;
      ChannelFormat format;
      size_t width, height, pitch;
    } rows;
    int reserved[32];
  };
  unsigned flags;
};
static_assert(sizeof(Resource) == 144);
inline constexpr size_t kResourceBytes =
    64;                   // all that CUDA 12 has: neither reserved words nor flags
struct TextureSettings {  // cudaTextureDesc
  int address_modes[3];
  int filter, read_mode, srgb;
  float border[4];
  int normalized_coordinates;
  unsigned most_anisotropy;
  int mipmap_filter;
  float level_bias, least_level, most_level;
  int no_trilinear_optimization, seamless_cube;
};
static_assert(sizeof(TextureSettings) == 72);

struct FatbinWrapper {  // what nvcc hands to __cudaRegisterFatBinary (fatbinary_section.h)
  int magic, version;
  const void* data;
  void* filename_or_fatbins;
};
inline constexpr int kFatbinWrapperMagic = 0x466243b1;

}  // namespace ptxsim::cuda::abi
