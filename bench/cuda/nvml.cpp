#include "bench/cuda/nvml.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>

namespace dualgemm::bench {
namespace {

// From NVML's documentation ("NVML API Reference Guide"), as its header need not be installed.
constexpr unsigned kClockSm = 1, kTemperatureGpu = 0;
struct Reason {
  uint64_t bit;
  const char* name;
};
constexpr Reason kReasons[] = {{0x001, "idle"},          {0x002, "clocks set by an application"},
                               {0x004, "power cap"},     {0x008, "hardware slowdown"},
                               {0x010, "sync boost"},    {0x020, "software thermal"},
                               {0x040, "hardware heat"}, {0x080, "power brake"},
                               {0x100, "display clock"}};

template <class... Arguments>
bool call(void* library, const char* name, Arguments... arguments) {
  if (library == nullptr) return false;
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  return function != nullptr && function(arguments...) == 0;  // 0: NVML_SUCCESS
}

}  // namespace

std::vector<std::string> GpuState::reason_names() const {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) != 0) names.emplace_back(reason.name);
  }
  return names;
}

Nvml::Nvml() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!call(library, "nvmlInit_v2")) return;
  std::array<char, 96> driver{};
  if (call(library, "nvmlSystemGetDriverVersion", driver.data(), unsigned{driver.size()}))
    driver_ = driver.data();
  int device = 0;
  std::array<char, 32> bus{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetPCIBusId(bus.data(), bus.size(), device) != cudaSuccess)
    return;
  if (!call(library, "nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(bus.data()),
            &device_))
    return;
  library_ = library;
  unsigned limit = 0;
  if (call(library_, "nvmlDeviceGetEnforcedPowerLimit", device_, &limit))
    power_limit_ = limit * 1e-3;
  call(library_, "nvmlDeviceGetMaxClockInfo", device_, kClockSm, &max_clock_);
}

GpuState Nvml::read() const {
  GpuState state;
  unsigned milliwatts = 0;
  unsigned long long reasons = 0;
  state.known = call(library_, "nvmlDeviceGetClockInfo", device_, kClockSm, &state.sm_clock_mhz);
  if (call(library_, "nvmlDeviceGetPowerUsage", device_, &milliwatts))
    state.power_watts = milliwatts * 1e-3;
  if (call(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons))
    state.reasons = reasons;
  call(library_, "nvmlDeviceGetTemperature", device_, kTemperatureGpu, &state.temperature);
  return state;
}

}  // namespace dualgemm::bench
