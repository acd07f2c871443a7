// cuInit, devices and contexts: one device, and one context that is always current.
#include <cstdio>
#include <cstring>

#include "fake_cuda/driver/call.hpp"
#include "fake_cuda/entry_points.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::driver {
namespace {

constexpr int kVersion = 13000;  // of CUDA: what the stand-in is like
char context;                    // its address is the handle

int with_device(int device, int found) {
  return device == 0 ? found : static_cast<int>(kInvalidDevice);
}

int give_context(void** handle) {
  if (handle == nullptr) return kInvalidValue;
  *handle = &context;
  return kSuccess;
}

}  // namespace

PTXSIM_CUDA_API int cuInit(unsigned) { return kSuccess; }
PTXSIM_CUDA_API int cuDriverGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}
PTXSIM_CUDA_API int cuDeviceGet(int* device, int ordinal) {
  *device = 0;
  return with_device(ordinal, kSuccess);
}
PTXSIM_CUDA_API int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
PTXSIM_CUDA_API int cuDeviceGetName(char* name, int bytes, int device) {
  return call([&](Session& session) {
    if (device != 0) return kInvalidDevice;
    std::snprintf(name, static_cast<size_t>(bytes), "%s", session.device.name);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuDeviceGetUuid(char* uuid, int device) {
  std::memset(uuid, 0, 16);
  return with_device(device, kSuccess);
}
PTXSIM_CUDA_ALIAS(cuDeviceGetUuid, _v2);
PTXSIM_CUDA_API int cuDeviceTotalMem(size_t* bytes, int device) {
  return call([&](Session& session) {
    *bytes = session.device.memory_bytes;
    return device == 0 ? kSuccess : kInvalidDevice;
  });
}
PTXSIM_CUDA_ALIAS(cuDeviceTotalMem, _v2);
PTXSIM_CUDA_API int cuDeviceComputeCapability(int* major, int* minor, int device) {
  return call([&](Session& session) {
    *major = static_cast<int>(session.device.major);
    *minor = static_cast<int>(session.device.minor);
    return device == 0 ? kSuccess : kInvalidDevice;
  });
}
PTXSIM_CUDA_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return call([&](Session& session) {
    if (device != 0) return kInvalidDevice;
    return device_attribute(session.device, attribute, *value) ? kSuccess : kInvalidValue;
  });
}
PTXSIM_CUDA_API int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}

PTXSIM_CUDA_API int cuDevicePrimaryCtxRetain(void** handle, int device) {
  return with_device(device, give_context(handle));
}
PTXSIM_CUDA_API int cuDevicePrimaryCtxRelease(int device) { return with_device(device, kSuccess); }
PTXSIM_CUDA_ALIAS(cuDevicePrimaryCtxRelease, _v2);
PTXSIM_CUDA_API int cuDevicePrimaryCtxReset(int device) { return with_device(device, kSuccess); }
PTXSIM_CUDA_ALIAS(cuDevicePrimaryCtxReset, _v2);
PTXSIM_CUDA_API int cuDevicePrimaryCtxSetFlags(int device, unsigned) {
  return with_device(device, kSuccess);
}
PTXSIM_CUDA_ALIAS(cuDevicePrimaryCtxSetFlags, _v2);
PTXSIM_CUDA_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return with_device(device, kSuccess);
}

PTXSIM_CUDA_API int cuCtxCreate(void** handle, unsigned, int device) {
  return with_device(device, give_context(handle));
}
PTXSIM_CUDA_ALIAS(cuCtxCreate, _v2);
PTXSIM_CUDA_API int cuCtxCreate_v4(void** handle, void*, unsigned, int device) {
  return with_device(device, give_context(handle));
}
PTXSIM_CUDA_API int cuCtxDestroy(void*) { return kSuccess; }
PTXSIM_CUDA_ALIAS(cuCtxDestroy, _v2);
PTXSIM_CUDA_API int cuCtxGetCurrent(void** handle) { return give_context(handle); }
// Every stream belongs to the one context.
PTXSIM_CUDA_API int cuStreamGetCtx(void*, void** handle) { return give_context(handle); }
PTXSIM_CUDA_API int cuStreamGetCtx_v2(void*, void** handle, void** green) {
  if (green != nullptr) *green = nullptr;
  return give_context(handle);
}
PTXSIM_CUDA_API int cuStreamGetDevice(void*, int* device) {
  *device = 0;
  return kSuccess;
}
PTXSIM_CUDA_API int cuCtxSetCurrent(void*) { return kSuccess; }
PTXSIM_CUDA_API int cuCtxPushCurrent(void*) { return kSuccess; }
PTXSIM_CUDA_ALIAS(cuCtxPushCurrent, _v2);
PTXSIM_CUDA_API int cuCtxPopCurrent(void** handle) {
  return handle == nullptr ? kSuccess : give_context(handle);
}
PTXSIM_CUDA_ALIAS(cuCtxPopCurrent, _v2);
PTXSIM_CUDA_API int cuCtxGetDevice(int* device) {
  *device = 0;
  return kSuccess;
}
PTXSIM_CUDA_API int cuCtxGetApiVersion(void*, unsigned* version) {
  *version = kVersion;
  return kSuccess;
}
PTXSIM_CUDA_API int cuCtxSynchronize() {
  return as_runtime([] { return cudaDeviceSynchronize(); });
}
PTXSIM_CUDA_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return cudaDeviceGetStreamPriorityRange(least, greatest);
}
PTXSIM_CUDA_API int cuCtxSetLimit(int limit, size_t value) {
  return as_runtime([&] { return cudaDeviceSetLimit(limit, value); });
}
PTXSIM_CUDA_API int cuCtxGetLimit(size_t* value, int limit) {
  return as_runtime([&] { return cudaDeviceGetLimit(value, limit); });
}

PTXSIM_CUDA_API int cuGetErrorName(int error, const char** name) {
  *name = driver_name(error);
  return *name == nullptr ? kInvalidValue : kSuccess;
}
PTXSIM_CUDA_API int cuGetErrorString(int error, const char** text) {
  *text = text_of(error);
  return *text == nullptr ? kInvalidValue : kSuccess;
}

// NVIDIA's private interface between its libraries and its driver: there is none. NVRTC asks for
// it, too, and goes on without; a library that does not fails by itself.
PTXSIM_CUDA_API int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return guarded([](Session& session) {
    session.recorder.refused(
        "cuGetExportTable, by which NVIDIA's own libraries, such as cuBLAS, look for its driver",
        kNotSupported, "there is none");
    return kNotSupported;
  });
}

namespace {

enum Found : int { kFound = 0, kNotThere = 1 };  // CUdriverProcAddressQueryResult

// Calls come in versions of their own, `_v2` and later: a name without one is the newest here.
Status find(const char* name, void** function, int* found) {
  *function = find_entry_point(name);
  if (found != nullptr) *found = *function == nullptr ? kNotThere : kFound;
  if (*function != nullptr) return kSuccess;
  return found == nullptr ? kNotFound : kSuccess;
}

}  // namespace

PTXSIM_CUDA_API int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t,
                                        int* found) {
  if (name == nullptr || function == nullptr) return kInvalidValue;
  return find(std::strcmp(name, "cuGetProcAddress") == 0 ? "cuGetProcAddress_v2" : name, function,
              found);
}
PTXSIM_CUDA_API int cuGetProcAddress(const char* name, void** function, int version,
                                     uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
PTXSIM_CUDA_API int cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                                     unsigned version, unsigned long long flags,
                                                     int* found) {
  return runtime::remember(static_cast<Status>(
      cuGetProcAddress_v2(name, function, static_cast<int>(version), flags, found)));
}
PTXSIM_CUDA_ALIAS(cudaGetDriverEntryPointByVersion, _ptsz);
PTXSIM_CUDA_API int cudaGetDriverEntryPoint(const char* name, void** function,
                                            unsigned long long flags, int* found) {
  return cudaGetDriverEntryPointByVersion(name, function, kVersion, flags, found);
}
PTXSIM_CUDA_ALIAS(cudaGetDriverEntryPoint, _ptsz);

}  // namespace ptxsim::cuda::driver
