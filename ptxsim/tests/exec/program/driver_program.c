/* A program of the driver's interface, without CUDA's headers: PTX in the text, loaded and
 * launched. Links libcuda.so.1. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t CUdeviceptr;
extern int cuInit(unsigned);
extern int cuDeviceGet(int*, int);
extern int cuDeviceGetName(char*, int, int);
extern int cuDeviceGetAttribute(int*, int, int);
extern int cuDeviceComputeCapability(int*, int*, int);
extern int cuDevicePrimaryCtxRetain(void**, int);
extern int cuCtxSetCurrent(void*);
extern int cuCtxSynchronize(void);
extern int cuCtxGetCurrent(void**);
extern int cuStreamGetCtx(void*, void**);
extern int cuStreamGetDevice(void*, int*);
extern int cuModuleLoadData(void**, const void*);
extern int cuModuleGetFunction(void**, void*, const char*);
extern int cuModuleUnload(void*);
extern int cuMemAlloc_v2(CUdeviceptr*, size_t);
extern int cuMemFree_v2(CUdeviceptr);
extern int cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
extern int cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
extern int cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
extern int cuMemAllocManaged(CUdeviceptr*, size_t, unsigned);
extern int cuMemGetDefaultMemPool(void**, int[2], int);
extern int cuDeviceGetDefaultMemPool(void**, int);
extern int cuMemPoolGetAccess(int*, void*, int[2]);
extern int cuMemAllocFromPoolAsync(CUdeviceptr*, size_t, void*, void*);
extern int cuStreamAttachMemAsync(void*, CUdeviceptr, size_t, unsigned);
extern int cuOccupancyMaxPotentialBlockSize(int*, int*, void*, size_t (*)(int), size_t, int);
extern int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
extern int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**);
extern int cuModuleLoadDataEx(void**, const void*, unsigned, const int*, void**);
extern int cuModuleGetFunctionCount(unsigned*, void*);
extern int cuLinkCreate_v2(unsigned, int*, void**, void**);
extern int cuLinkAddData_v2(void*, int, const void*, size_t, const char*, unsigned, int*, void**);
extern int cuLinkComplete(void*, void**, size_t*);
extern int cuLinkDestroy(void*);
extern int cuTexRefCreate(void**);

typedef struct {
  size_t width, height;
  int format;
  unsigned channels;
} ArrayDescription;
typedef struct {
  size_t x, y;
  int memory;
  void* host;
  CUdeviceptr device;
  void* array;
  size_t pitch;
} CopySide;
typedef struct {
  CopySide from, to;
  size_t width, height;
} Copy2D;
typedef struct {
  int type;
  union {
    void* array;
    int reserved[32];
  } of;
  unsigned flags;
} Resource;
typedef struct {
  int address_modes[3], filter;
  unsigned flags, most_anisotropy;
  int mipmap_filter;
  float numbers[7];
  int reserved[12];
} Texture;
extern int cuArrayCreate_v2(void**, const ArrayDescription*);
extern int cuArrayDestroy(void*);
extern int cuMemcpy2D_v2(const Copy2D*);
extern int cuTexObjectCreate(uint64_t*, const Resource*, const Texture*, const void*);
extern int cuTexObjectDestroy(uint64_t);
extern int cuSurfObjectCreate(uint64_t*, const Resource*);
extern int cuSurfObjectDestroy(uint64_t);
extern int cuGetErrorName(int, const char**);
extern int cudaGetDeviceProperties_v2(void*, int); /* of CUDA 12's runtime */
extern int cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);

/* What nvcc adds to a program without kernels that it links: a container's header and no entry. */
__asm__(
    ".pushsection .nv_fatbin, \"a\"\n"
    ".long 0xba55ed50, 0x00100001, 0, 0\n"
    ".popsection\n");

static int failed = 0;
#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      ++failed;                                                                   \
      printf("%s:%d: not as it should be: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                             \
  } while (0)

static const char* const kPtx =
    ".version 8.7\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 out, .param .u32 by)\n{\n"
    "  .reg .b32 %r<5>;\n  .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [out];\n  ld.param.u32 %r1, [by];\n  mov.u32 %r2, %tid.x;\n"
    "  mul.wide.u32 %rd2, %r2, 4;\n  add.u64 %rd3, %rd1, %rd2;\n  ld.global.u32 %r3, [%rd3];\n"
    "  add.u32 %r4, %r3, %r1;\n  st.global.u32 [%rd3], %r4;\n  ret;\n}\n";

static const char* const kTexturePtx =
    ".version 8.7\n.target sm_80\n.address_size 64\n"
    ".visible .entry fetch(.param .u64 out, .param .u64 texture)\n{\n"
    "  .reg .b32 %r<4>;\n  .reg .b64 %rd<5>;\n  .reg .f32 %f<5>;\n"
    "  ld.param.u64 %rd1, [out];\n  ld.param.u64 %rd2, [texture];\n  mov.u32 %r1, %tid.x;\n"
    "  and.b32 %r2, %r1, 3;\n  shr.u32 %r3, %r1, 2;\n"
    "  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r2, %r3}];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n  add.u64 %rd4, %rd1, %rd3;\n"
    "  st.global.f32 [%rd4], %f1;\n  ret;\n}\n";

static void write_file(const char* name, const void* bytes, size_t count) {
  FILE* file = fopen(name, "wb");
  CHECK(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

/* What a compiler that runs in the program leaves: machine code, which is loaded, and its PTX
 * beside it. An ELF header whose table of segments begins behind it and has none. */
static const void* compiled(void) {
  static unsigned char code[64] = {0x7f, 'E', 'L', 'F'};
  code[32] = sizeof code; /* e_phoff */
  write_file("made.cubin", code, sizeof code);
  write_file("made.ptx", kPtx, strlen(kPtx));
  return code;
}

/* Places and size of CUDA 12.9's cudaDeviceProp. */
static void check_properties_of_cuda12(const char* name, int major) {
  char properties[1032];
  int value, kind;
  size_t bytes;
  memset(properties, 0xff, sizeof properties);
  CHECK(cudaGetDeviceProperties_v2(properties, 1) == 101); /* cudaErrorInvalidDevice */
  CHECK(cudaGetDeviceProperties_v2(properties, 0) == 0);
  CHECK(strcmp(properties, name) == 0);
  CHECK(memcpy(&value, properties + 360, sizeof value) && value == major);
  const struct {
    size_t place;
    int attribute;
  } ints[] = {{348, 13}, {388, 16}, {404, 20}, {608, 36}, {616, 38}, {688, 95}, {772, 120}};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; ++i) {
    CHECK(cuDeviceGetAttribute(&kind, ints[i].attribute, 0) == 0);
    CHECK(memcpy(&value, properties + ints[i].place, sizeof value) && value == kind);
  }
  CHECK(cuDeviceGetAttribute(&kind, 97, 0) == 0); /* shared memory of a block, opted in */
  CHECK(memcpy(&bytes, properties + 696, sizeof bytes) && bytes == (size_t)kind);
}

/* The linker with nothing to link, and what the compiler has to say of broken PTX. */
static void link_and_compile(void) {
  enum { kPtxInput = 1, kErrorLog = 5, kErrorLogBytes = 6, kInvalidPtx = 218 };
  void *link, *image, *module;
  unsigned count = 0;
  CHECK(cuLinkCreate_v2(0, NULL, NULL, &link) == 0);
  CHECK(cuLinkAddData_v2(link, kPtxInput, kPtx, strlen(kPtx) + 1, "add", 0, NULL, NULL) == 0);
  CHECK(cuLinkComplete(link, &image, NULL) == 0);
  CHECK(cuModuleLoadData(&module, image) == 0);
  CHECK(cuLinkDestroy(link) == 0 && cuLinkDestroy(link) == 400);
  CHECK(cuModuleGetFunctionCount(&count, module) == 0 && count == 1);
  CHECK(cuModuleUnload(module) == 0);
  char log[100] = "";
  const int options[] = {kErrorLog, kErrorLogBytes};
  void* values[] = {log, (void*)sizeof log};
  CHECK(cuModuleLoadDataEx(&module, ".version 9.0\n.target sm_80\n.address_size 64\nwrong\n", 2,
                           options, values) == kInvalidPtx);
  CHECK(strstr(log, ":4:") != NULL && (size_t)values[1] == strlen(log));
}

static void pools_and_managed_memory(void) {
  void *pool, *same;
  int of_the_device[] = {1, 0}, access = 0;
  CUdeviceptr values;
  CHECK(cuMemGetDefaultMemPool(&pool, of_the_device, 1) == 0);
  CHECK(cuDeviceGetDefaultMemPool(&same, 0) == 0 && same == pool);
  CHECK(cuMemPoolGetAccess(&access, pool, of_the_device) == 0 && access == 3);
  CHECK(cuMemAllocFromPoolAsync(&values, 64, pool, NULL) == 0);
  CHECK(cuMemsetD32_v2(values, 1, 16) == 0);
  CHECK(cuStreamAttachMemAsync(NULL, values, 0, 1) == 1); /* not managed */
  CHECK(cuMemFree_v2(values) == 0);
  CHECK(cuMemAllocManaged(&values, 64, 1) == 0);
  CHECK(cuStreamAttachMemAsync(NULL, values, 0, 4) == 0);
  CHECK(cuMemFree_v2(values) == 0);
}

/* Eight rows of four elements of `bytes` each, copied to an array, fetched and copied back:
 * element i is i, and is fetched as i / `most`. */
static void texture(int format, size_t bytes, float most) {
  enum { kOfHost = 1, kOfArray = 3, kWrong = 7 };
  unsigned char in[128], back[128] = {0};
  for (int i = 0; i < 32; ++i) {
    const float value = (float)i;
    if (bytes == 4)
      memcpy(in + 4 * i, &value, 4);
    else
      in[i] = (unsigned char)i;
  }
  void *array, *module, *function;
  const ArrayDescription shape = {4, 8, format, 1}, wrong = {4, 8, kWrong, 1};
  CHECK(cuArrayCreate_v2(&array, &wrong) == 1);
  CHECK(cuArrayCreate_v2(&array, &shape) == 0);
  const CopySide host = {0, 0, kOfHost, in, 0, NULL, 4 * bytes};
  const CopySide image = {0, 0, kOfArray, NULL, 0, array, 0};
  Copy2D copy = {host, image, 4 * bytes, 8};
  CHECK(cuMemcpy2D_v2(&copy) == 0);
  copy.from = image;
  copy.to = host;
  copy.to.host = back;
  CHECK(cuMemcpy2D_v2(&copy) == 0 && memcmp(in, back, 32 * bytes) == 0);
  copy.height = 9;
  CHECK(cuMemcpy2D_v2(&copy) == 1);

  Resource resource = {0};
  resource.of.array = array;
  Texture settings = {.address_modes = {1, 1, 1}};
  uint64_t object, surface;
  CUdeviceptr out;
  float fetched[32];
  CHECK(cuTexObjectCreate(&object, &resource, &settings, NULL) == 0);
  CHECK(cuModuleLoadData(&module, kTexturePtx) == 0);
  CHECK(cuModuleGetFunction(&function, module, "fetch") == 0);
  CHECK(cuMemAlloc_v2(&out, sizeof fetched) == 0);
  void* parameters[] = {&out, &object};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL) == 0);
  CHECK(cuMemcpyDtoH_v2(fetched, out, sizeof fetched) == 0);
  for (int i = 0; i < 32; ++i) CHECK(fetched[i] == (float)i / most);
  CHECK(cuTexObjectDestroy(object) == 0 && cuTexObjectDestroy(object) != 0);
  CHECK(cuSurfObjectCreate(&surface, &resource) == 1); /* not made for surfaces */
  CHECK(cuMemFree_v2(out) == 0 && cuModuleUnload(module) == 0 && cuArrayDestroy(array) == 0);
}

/* A KiB for each thread: a block of 1024 does not fit. */
static size_t kib_a_thread(int threads) { return (size_t)threads << 10; }

static void occupancy(void* function) {
  int grid = 0, block = 0, sms = 0, blocks = 0;
  CHECK(cuDeviceGetAttribute(&sms, 16, 0) == 0);
  CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0) == 0);
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block, 0) == 0);
  CHECK(block > 0 && block % 32 == 0 && block <= 1024 && grid == sms * blocks);
  CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 100) == 0);
  CHECK(block <= 100);
  CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, kib_a_thread, 0, 0) == 0);
  CHECK(block >= 32 && block <= 227);
}

int main(int argc, char** argv) {
  enum {
    kInvalidImage = 200,
    kNoBinaryForGpu = 209,
    kInvalidPtx = 218,
    kNotFound = 500,
    kIllegalAddress = 700
  };
  char name[64];
  void *context, *module, *function;
  int device, major, found;
  CHECK(cuInit(0) == 0);
  CHECK(cuDeviceGet(&device, 0) == 0);
  CHECK(cuDeviceGetName(name, sizeof name, device) == 0);
  CHECK(cuDeviceGetAttribute(&major, 75, device) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == 0);
  CHECK(cuCtxSetCurrent(context) == 0);
  printf("%s, compute capability %d\n", name, major);
  int same_major, minor;
  CHECK(cuDeviceComputeCapability(&same_major, &minor, device) == 0 && same_major == major);
  check_properties_of_cuda12(name, major);

  CHECK(cuModuleLoadData(&module, "garbage") == kInvalidImage);
  CHECK(cuModuleLoadData(&module, ".version 9.0\n.target sm_121a\n.address_size 64\n") ==
        kInvalidPtx);
  const uint32_t broken[8] = {0xba55ed50u, 0x00100001u, 16, 0, 1, 64, 0, 0};
  CHECK(cuModuleLoadData(&module, broken) == kInvalidImage);
  const int compiles = argc > 1 && strcmp(argv[1], "compiles") == 0;
  const int status = cuModuleLoadData(&module, compiles ? compiled() : kPtx);
  if (compiles && status == kNoBinaryForGpu) return 3;
  CHECK(status == 0);
  CHECK(cuModuleGetFunction(&function, module, "subtract") == kNotFound);
  CHECK(cuModuleGetFunction(&function, module, "add") == 0);

  void *current, *of_stream;
  int device_of_stream = -1;
  CHECK(cuCtxGetCurrent(&current) == 0 && current == context);
  CHECK(cuStreamGetCtx(NULL, &of_stream) == 0 && of_stream == context);
  CHECK(cuStreamGetDevice(NULL, &device_of_stream) == 0 && device_of_stream == device);
  pools_and_managed_memory();
  if (argc > 1 && strcmp(argv[1], "textures") == 0) {
    enum { kUnsigned8 = 1, kFloat32 = 32 };
    texture(kFloat32, 4, 1);
    texture(kUnsigned8, 1, 255);
    return failed;
  }
  occupancy(function);

  CUdeviceptr values;
  uint32_t host[32], by = 5;
  CHECK(cuMemAlloc_v2(&values, sizeof host) == 0);
  CHECK(cuMemsetD32_v2(values, 37, 32) == 0);
  void* parameters[] = {&values, &by};
  const int unwritten = argc > 1 && strcmp(argv[1], "beyond") == 0;
  CHECK(cuLaunchKernel(function, 1, 1, 1, unwritten ? 64 : 32, 1, 1, 0, NULL, parameters, NULL) ==
        (unwritten ? kIllegalAddress : 0));
  if (unwritten) return failed;
  CHECK(cuCtxSynchronize() == 0);
  CHECK(cuMemcpyDtoH_v2(host, values, sizeof host) == 0);
  for (int i = 0; i < 32; ++i) CHECK(host[i] == 42);

  void* entry = NULL;
  const char* text = NULL;
  CHECK(cuGetProcAddress_v2("cuNothing", &entry, 13000, 0, &found) == 0 && found == 1 &&
        entry == NULL);
  CHECK(cuGetProcAddress_v2("cuLaunchKernel", &entry, 13000, 0, &found) == 0 && found == 0 &&
        entry != NULL);
  CHECK(cuGetErrorName(kNotFound, &text) == 0 && strcmp(text, "CUDA_ERROR_NOT_FOUND") == 0);
  CHECK(cuMemFree_v2(values) == 0);
  CHECK(cuModuleUnload(module) == 0);
  link_and_compile();
  if (argc > 1 && strcmp(argv[1], "texture") == 0) return cuTexRefCreate(&module);
  return failed;
}
