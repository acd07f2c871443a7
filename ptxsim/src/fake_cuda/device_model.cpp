#include "fake_cuda/device_model.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ptxsim::cuda {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint32_t kMiB = 1 << 20;
constexpr uint32_t kKiB = 1 << 10;

// Limits of an SM: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute
// Capability". SMs, memory, clocks and bus:
//  h200      cuDeviceGetAttribute of an H200 (driver 580.159)
//  h100      NVIDIA H100 Tensor Core GPU Architecture (white paper), SXM5
//  b200      NVIDIA's CUTLASS and DeepGEMM name 148 SMs; DGX B200 data sheet: 180 GB of
//            HBM3e, 8 TB/s, a GPU
//  rtx5090   NVIDIA RTX Blackwell GPU Architecture (white paper), GeForce RTX 5090
//  gb10      DGX Spark data sheet: 48 SMs (6144 cores), 128 GB of LPDDR5x, 256 bits
constexpr std::array<DeviceModel, 5> kDevices{{
    {"b200", "NVIDIA B200", 10, 0, 148, 180 * kGiB, 126 * kMiB, 228 * kKiB, 2048, 32, 1965000,
     3996000, 8192, false},
    {"h200", "NVIDIA H200", 9, 0, 132, 140 * kGiB, 60 * kMiB, 228 * kKiB, 2048, 32, 1980000,
     3201000, 6016, false},
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 80 * kGiB, 50 * kMiB, 228 * kKiB, 2048, 32,
     1980000, 2619000, 5120, false},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 32 * kGiB, 96 * kMiB, 100 * kKiB, 1536, 24,
     2407000, 14001000, 512, false},
    {"gb10", "NVIDIA GB10", 12, 1, 48, 120 * kGiB, 24 * kMiB, 100 * kKiB, 1536, 24, 2418000,
     4266000, 256, true},
}};

// What does not depend on the model, by number of the attribute (cuda.h, "enum
// CUdevice_attribute"): the values of an H200 (driver 580.159), without what the stand-in does not
// model.
constexpr std::pair<int, int> kCommon[] = {
    {1, 1024},         // MAX_THREADS_PER_BLOCK
    {2, 1024},         // MAX_BLOCK_DIM_X
    {3, 1024},         // MAX_BLOCK_DIM_Y
    {4, 64},           // MAX_BLOCK_DIM_Z
    {5, 2147483647},   // MAX_GRID_DIM_X
    {6, 65535},        // MAX_GRID_DIM_Y
    {7, 65535},        // MAX_GRID_DIM_Z
    {8, 49152},        // MAX_SHARED_MEMORY_PER_BLOCK
    {9, 65536},        // TOTAL_CONSTANT_MEMORY
    {10, 32},          // WARP_SIZE
    {11, 2147483647},  // MAX_PITCH
    {12, 65536},       // MAX_REGISTERS_PER_BLOCK
    {14, 512},         // TEXTURE_ALIGNMENT
    {15, 1},           // GPU_OVERLAP
    {19, 1},           // CAN_MAP_HOST_MEMORY
    {21, 131072},      // MAXIMUM_TEXTURE1D_WIDTH
    {22, 131072},      // MAXIMUM_TEXTURE2D_WIDTH
    {23, 65536},       // MAXIMUM_TEXTURE2D_HEIGHT
    {24, 16384},       // MAXIMUM_TEXTURE3D_WIDTH
    {25, 16384},       // MAXIMUM_TEXTURE3D_HEIGHT
    {26, 16384},       // MAXIMUM_TEXTURE3D_DEPTH
    {30, 512},         // SURFACE_ALIGNMENT
    {31, 1},           // CONCURRENT_KERNELS
    {34, 6},           // PCI_DEVICE_ID
    {40, 3},           // ASYNC_ENGINE_COUNT
    {41, 1},           // UNIFIED_ADDRESSING
    {51, 32},          // TEXTURE_PITCH_ALIGNMENT
    {78, 1},           // STREAM_PRIORITIES_SUPPORTED
    {79, 1},           // GLOBAL_L1_CACHE_SUPPORTED
    {80, 1},           // LOCAL_L1_CACHE_SUPPORTED
    {82, 65536},       // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 1},           // MANAGED_MEMORY
    {87, 2},           // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    {95, 1},           // COOPERATIVE_LAUNCH
    {99, 1},           // HOST_REGISTER_SUPPORTED
    {102, 1},          // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    {103, 1},          // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    {107, 1},          // GENERIC_COMPRESSION_SUPPORTED
    {109, 134217728},  // MAX_ACCESS_POLICY_WINDOW_SIZE
    {111, 1024},       // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},          // MEMORY_POOLS_SUPPORTED
    {119, 1},          // MEMPOOL_SUPPORTED_HANDLE_TYPES: of files
    {120, 1},          // CLUSTER_LAUNCH
    {125, 1},          // IPC_EVENT_SUPPORTED
    {127, 1},          // TENSOR_MAP_ACCESS_SUPPORTED
    {129, 1},          // UNIFIED_FUNCTION_POINTERS
    {131, -1},         // NUMA_ID
};
constexpr int kLastAttribute = 147;  // of CUDA 13.0

constexpr std::string_view kKeys = "b200, h200, h100, rtx5090, gb10";

}  // namespace

const DeviceModel* find_device(std::string_view key) {
  const auto* found = std::find_if(kDevices.begin(), kDevices.end(),
                                   [&](const DeviceModel& d) { return key == d.key; });
  return found == kDevices.end() ? nullptr : found;
}

std::string_view device_keys() { return kKeys; }

bool device_attribute(const DeviceModel& device, int attribute, int& value) {
  const std::pair<int, uint32_t> own[] = {
      {13, device.clock_khz},                 // CLOCK_RATE
      {16, device.sms},                       // MULTIPROCESSOR_COUNT
      {18, device.integrated ? 1 : 0},        // INTEGRATED
      {36, device.memory_clock_khz},          // MEMORY_CLOCK_RATE
      {37, device.memory_bus_bits},           // GLOBAL_MEMORY_BUS_WIDTH
      {38, device.l2_bytes},                  // L2_CACHE_SIZE
      {39, device.threads_per_sm},            // MAX_THREADS_PER_MULTIPROCESSOR
      {75, device.major},                     // COMPUTE_CAPABILITY_MAJOR
      {76, device.minor},                     // COMPUTE_CAPABILITY_MINOR
      {81, device.shared_bytes_per_sm},       // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
      {97, device.shared_bytes_per_block()},  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      {106, device.blocks_per_sm},            // MAX_BLOCKS_PER_MULTIPROCESSOR
      {108, device.l2_bytes / 8 * 5},         // MAX_PERSISTING_L2_CACHE_SIZE: 5/8 of it on an H200
  };
  if (attribute < 1 || attribute > kLastAttribute) return false;
  value = 0;
  for (const auto& [number, known] : kCommon)
    if (number == attribute) value = known;
  for (const auto& [number, known] : own)
    if (number == attribute) value = static_cast<int>(known);
  return true;
}

}  // namespace ptxsim::cuda
