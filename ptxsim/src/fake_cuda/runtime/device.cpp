// The device: there is one, number 0.
#include <cstdio>
#include <cstring>

#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {
namespace {

constexpr int kVersion = 13000;  // of CUDA: what the stand-in is like

Status fill_properties(const DeviceModel& device, abi::DeviceProperties& p) {
  const auto value_of = [&](int attribute) {
    int value = 0;
    device_attribute(device, attribute, value);
    return value;
  };
  p = {};
  std::strncpy(p.name, device.name, sizeof p.name - 1);
  p.total_global_memory = device.memory_bytes;
  p.shared_bytes_per_block = static_cast<size_t>(value_of(8));
  p.registers_per_block = value_of(12);
  p.warp_size = value_of(10);
  p.memory_pitch = static_cast<size_t>(value_of(11));
  p.max_threads_per_block = value_of(1);
  for (int i = 0; i < 3; ++i) {
    p.max_block[i] = value_of(2 + i);
    p.max_grid[i] = value_of(5 + i);
  }
  p.total_const_memory = static_cast<size_t>(value_of(9));
  p.major = value_of(75);
  p.minor = value_of(76);
  p.texture_alignment = static_cast<size_t>(value_of(14));
  p.texture_pitch_alignment = static_cast<size_t>(value_of(51));
  p.num_sms = value_of(16);
  p.integrated = value_of(18);
  p.can_map_host_memory = value_of(19);
  p.surface_alignment = static_cast<size_t>(value_of(30));
  p.concurrent_kernels = value_of(31);
  p.pci_device = value_of(34);
  p.async_engines = value_of(40);
  p.unified_addressing = value_of(41);
  p.memory_bus_bits = value_of(37);
  p.l2_bytes = value_of(38);
  p.persisting_l2_bytes = value_of(108);
  p.max_threads_per_sm = value_of(39);
  p.stream_priorities = value_of(78);
  p.global_l1_cache = value_of(79);
  p.local_l1_cache = value_of(80);
  p.shared_bytes_per_sm = static_cast<size_t>(value_of(81));
  p.registers_per_sm = value_of(82);
  p.managed_memory = value_of(83);
  p.cooperative_launch = value_of(95);
  p.shared_bytes_per_block_optin = static_cast<size_t>(value_of(97));
  p.max_blocks_per_sm = value_of(106);
  p.access_policy_window_bytes = value_of(109);
  p.reserved_shared_bytes_per_block = static_cast<size_t>(value_of(111));
  p.host_register = value_of(99);
  p.memory_pools = value_of(115);
  p.memory_pool_handle_types = static_cast<uint32_t>(value_of(119));
  p.ipc_events = value_of(125);
  p.cluster_launch = value_of(120);
  p.unified_function_pointers = value_of(129);
  p.numa_id = value_of(131);
  return kSuccess;
}

Status check_device(int device) { return device == 0 ? kSuccess : kInvalidDevice; }

}  // namespace

PTXSIM_CUDA_API int cudaGetDeviceCount(int* count) {
  *count = 1;
  return kSuccess;
}
PTXSIM_CUDA_API int cudaGetDevice(int* device) {
  return call([&](Session&) {
    *device = 0;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaSetDevice(int device) {
  return call([&](Session&) { return check_device(device); });
}
PTXSIM_CUDA_API int cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
PTXSIM_CUDA_API int cudaSetDeviceFlags(unsigned) { return kSuccess; }
PTXSIM_CUDA_API int cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}

PTXSIM_CUDA_API int cudaGetDeviceProperties(abi::DeviceProperties* properties, int device) {
  return call([&](Session& session) {
    return device == 0 ? fill_properties(session.device, *properties) : kInvalidDevice;
  });
}
PTXSIM_CUDA_API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return call([&](Session& session) {
    if (device != 0) return kInvalidDevice;
    return device_attribute(session.device, attribute, *value) ? kSuccess : kInvalidValue;
  });
}
PTXSIM_CUDA_API int cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return call([&](Session&) {
    if (device != 0) return kInvalidDevice;
    std::snprintf(text, static_cast<size_t>(bytes), "0000:00:06.0");
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
PTXSIM_CUDA_API int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
// The interpreter obeys the heap's limit alone; a program reads back every limit as it set it.
PTXSIM_CUDA_API int cudaDeviceSetLimit(int limit, size_t value) {
  return call([&](Session& session) {
    if (limit < 0 || limit >= static_cast<int>(session.limits.size())) return kInvalidValue;
    session.limits[static_cast<size_t>(limit)] = value;
    if (limit == Session::kHeapLimit) session.settings.options.heap_bytes = value;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaDeviceGetLimit(size_t* value, int limit) {
  return call([&](Session& session) {
    if (limit < 0 || limit >= static_cast<int>(session.limits.size())) return kInvalidValue;
    *value = session.limits[static_cast<size_t>(limit)];
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaChooseDevice(int* device, const abi::DeviceProperties*) {
  *device = 0;
  return kSuccess;
}
PTXSIM_CUDA_API int cudaDeviceSetCacheConfig(int) { return kSuccess; }

PTXSIM_CUDA_API int cudaDeviceSynchronize() {
  return call([](Session& session) { return session.streams.synchronize_all(); });
}
PTXSIM_CUDA_API int cudaDeviceReset() {
  return call([](Session&) { return kSuccess; });
}
PTXSIM_CUDA_API int cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}
PTXSIM_CUDA_API int cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}
PTXSIM_CUDA_API int cudaProfilerStart() { return kSuccess; }
PTXSIM_CUDA_API int cudaProfilerStop() { return kSuccess; }

}  // namespace ptxsim::cuda::runtime
