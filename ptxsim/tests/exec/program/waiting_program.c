/* Launches whose CTAs wait: for each other ("barrier"), or for ever ("spin"). A program of the
 * driver's interface. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t CUdeviceptr;
extern int cuInit(unsigned);
extern int cuDevicePrimaryCtxRetain(void**, int);
extern int cuCtxSetCurrent(void*);
extern int cuCtxSynchronize(void);
extern int cuModuleLoadData(void**, const void*);
extern int cuModuleGetFunction(void**, void*, const char*);
extern int cuMemAlloc_v2(CUdeviceptr*, size_t);
extern int cuMemFree_v2(CUdeviceptr);
extern int cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
extern int cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
extern int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**);

enum { kCtas = 64 };

/* One thread of each CTA counts its CTA and polls until `all` have been counted. */
static const char* const kPtx =
    ".version 8.7\n.target sm_80\n.address_size 64\n"
    ".visible .entry waits(.param .u64 count, .param .u32 all)\n{\n"
    "  .reg .b32 %r<5>;\n  .reg .b64 %rd<3>;\n  .reg .pred %p;\n"
    "  ld.param.u64 %rd1, [count];\n  ld.param.u32 %r1, [all];\n  mov.u32 %r2, %tid.x;\n"
    "  setp.ne.u32 %p, %r2, 0;\n  @%p bra after;\n"
    "  atom.relaxed.gpu.global.add.u32 %r3, [%rd1], 1;\n"
    "again:\n  ld.volatile.global.u32 %r4, [%rd1];\n  setp.lt.u32 %p, %r4, %r1;\n"
    "  @%p bra again;\nafter:\n  ret;\n}\n";

int main(int argc, char** argv) {
  const int spins = argc > 1 && strcmp(argv[1], "spin") == 0;
  unsigned all = spins ? kCtas + 1 : kCtas, count = 0;
  void *context = NULL, *module = NULL, *kernel = NULL;
  CUdeviceptr memory = 0;
  void* arguments[] = {&memory, &all};
  int status = cuInit(0);
  if (status == 0) status = cuDevicePrimaryCtxRetain(&context, 0);
  if (status == 0) status = cuCtxSetCurrent(context);
  if (status == 0) status = cuModuleLoadData(&module, kPtx);
  if (status == 0) status = cuModuleGetFunction(&kernel, module, "waits");
  if (status == 0) status = cuMemAlloc_v2(&memory, sizeof count);
  if (status == 0) status = cuMemsetD32_v2(memory, 0, 1);
  if (argc > 2) { /* a sign that the launch comes next */
    FILE* file = fopen(argv[2], "wb");
    if (file != NULL) fclose(file);
  }
  if (status == 0) status = cuLaunchKernel(kernel, kCtas, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
  if (status == 0) status = cuCtxSynchronize();
  if (status == 0) status = cuMemcpyDtoH_v2(&count, memory, sizeof count);
  printf("%u %d\n", count, status);
  if (memory != 0) cuMemFree_v2(memory);
  return 0;
}
