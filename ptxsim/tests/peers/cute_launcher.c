/* Stands in for CuTe DSL's runtime library under one of its exported launchers: nothing is
 * launched, and the kernel's parameters are kept. */
#include <string.h>

enum { kMost = 64, kBytes = 128, kShape = 32 };
unsigned char kept[kMost][kBytes];
/* Grid and block, 32 bits each, and the bytes of dynamic shared memory, 64 bits. */
unsigned char kept_shape[kShape];
int keep_bytes[kMost]; /* of each parameter; set by the caller, 0: no more */

int _cudaGetDevice(int* device) { return *device = 0; }
int _cudaGetDeviceCount(int* count) { return *count = 1, 0; }
int _cudaDeviceGetAttribute(int* value, int attribute, int device) {
  (void)attribute, (void)device;
  return *value = 1 << 20, 0;
}
int _cudaFuncSetAttribute(void* kernel, int attribute, int value) {
  return (void)kernel, (void)attribute, (void)value, 0;
}
int _cudaKernelSetAttributeForDevice(void* kernel, int attribute, int value, int device) {
  return (void)kernel, (void)attribute, (void)value, (void)device, 0;
}
int _cuKernelGetAttribute(int* value, int attribute, void* kernel, int device) {
  (void)attribute, (void)kernel, (void)device;
  return *value = 0;
}
int _cudaLibraryLoadData(void** library, const void* image) { return *library = (void*)image, 0; }
int _cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return (void)name, *kernel = library, 0;
}
int _cudaLaunchKernelEx(const void* config, void* kernel, void** parameters) {
  (void)kernel;
  memcpy(kept_shape, config, kShape);
  for (int i = 0; i < kMost && keep_bytes[i] > 0; ++i)
    memcpy(kept[i], parameters[i], (size_t)keep_bytes[i]);
  return 0;
}
