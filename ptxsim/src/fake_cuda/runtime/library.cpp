// Libraries of kernels, which the runtime has from the driver.
#include "fake_cuda/runtime/call.hpp"

extern "C" {
int cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned, int*, void**,
                      unsigned);
int cuLibraryLoadFromFile(void** library, const char* path, int*, void**, unsigned, int*, void**,
                          unsigned);
int cuLibraryUnload(void* library);
int cuLibraryGetKernel(void** kernel, void* library, const char* name);
int cuLibraryGetGlobal(uint64_t* address, size_t* bytes, void* library, const char* name);
int cuKernelSetAttribute(int attribute, int value, void* kernel, int device);
}

namespace ptxsim::cuda::runtime {
namespace {

int as_driver(int status) { return remember(static_cast<Status>(status)); }

}  // namespace

PTXSIM_CUDA_API int cudaLibraryLoadData(void** library, const void* image, int*, void**, unsigned,
                                        int*, void**, unsigned) {
  return as_driver(cuLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
PTXSIM_CUDA_API int cudaLibraryLoadFromFile(void** library, const char* path, int*, void**,
                                            unsigned, int*, void**, unsigned) {
  return as_driver(cuLibraryLoadFromFile(library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
PTXSIM_CUDA_API int cudaLibraryUnload(void* library) { return as_driver(cuLibraryUnload(library)); }
PTXSIM_CUDA_API int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return as_driver(cuLibraryGetKernel(kernel, library, name));
}
PTXSIM_CUDA_API int cudaLibraryGetGlobal(void** address, size_t* bytes, void* library,
                                         const char* name) {
  return as_driver(cuLibraryGetGlobal(reinterpret_cast<uint64_t*>(address), bytes, library, name));
}
PTXSIM_CUDA_API int cudaKernelSetAttributeForDevice(void* kernel, int attribute, int value,
                                                    int device) {
  return as_driver(cuKernelSetAttribute(attribute, value, kernel, device));
}

}  // namespace ptxsim::cuda::runtime
