// A GPU that is not there, in front of the CUDA runtime (LD_PRELOAD): it says what a submission
// asks of it. A tensor map is the address that it is of; what is printed of a kernel's parameters
// are the first words of its first `FAKE_MAPS` maps.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int number_of(const char* name) { return std::atoi(std::getenv(name)); }

CUresult encode(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void* address, const cuuint64_t*,
                const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &address, sizeof address);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? number_of("FAKE_MAJOR")
           : attribute == cudaDevAttrMultiProcessorCount  ? number_of("FAKE_SMS")
                                                          : 0;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  std::printf("entry %s %u\n", name, version);
  *function = reinterpret_cast<void*>(&encode);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  std::printf("attribute %d %d\n", static_cast<int>(attribute), value);
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void** arguments) {
  std::printf("launch %u %u %zu %d", config->gridDim.x, config->blockDim.x,
              config->dynamicSmemBytes, config->stream == nullptr);
  const auto* words = static_cast<const uint64_t*>(arguments[0]);
  if (config->dynamicSmemBytes > 0) {
    for (int map = 0; map < number_of("FAKE_MAPS"); ++map)
      std::printf(" %llu", static_cast<unsigned long long>(words[16 * map]));
  }
  std::printf("\n");
  std::fflush(stdout);
  return cudaSuccess;
}

}  // extern "C"
