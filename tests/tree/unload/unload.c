/* Loads the library, lets it start threads, and unloads it: its threads must be gone, and this
 * process must live. Usage: unload <libdualgemm.so> */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dualgemm/dualgemm.h"

typedef dualgemm_status (*init_function)(dualgemm_quantize_options*, uint64_t);
typedef dualgemm_status (*quantize_function)(const void*, int32_t, int64_t, int64_t, int64_t,
                                             uint8_t*, int64_t, uint8_t*,
                                             const dualgemm_quantize_options*, float*);

static int threads(void) {
  int count = -2; /* . and .. */
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == NULL) return -1;
  while (readdir(tasks) != NULL) ++count;
  closedir(tasks);
  return count;
}

int main(int argc, char** argv) {
  enum { kRows = 512, kCols = 1024 };
  float* x = calloc(kRows * kCols, sizeof(float));
  uint8_t* codes = malloc(kRows * kCols / 2);
  uint8_t* scales = malloc(kRows * kCols / 16);
  if (argc != 2 || x == NULL || codes == NULL || scales == NULL) return 2;
  for (int round = 0; round < 20; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    init_function init;
    quantize_function quantize;
    *(void**)&init = dlsym(library, "dualgemm_quantize_options_init");
    *(void**)&quantize = dlsym(library, "dualgemm_quantize");
    if (init == NULL || quantize == NULL) return 2;
    dualgemm_quantize_options options;
    init(&options, sizeof options);
    options.threads = 4;
    if (quantize(x, DUALGEMM_F32, kRows, kCols, 0, codes, 0, scales, &options, NULL) != 0) return 1;
    const int before = threads();
    if (dlclose(library) != 0) return 1;
    int after = threads(); /* a joined thread stays listed for a moment */
    for (int wait = 0; wait < 60000 && after > 1; ++wait) {
      usleep(1000);
      after = threads();
    }
    if (before < 2 || after != 1) {
      fprintf(stderr, "round %d: %d threads with the library, %d without\n", round, before, after);
      return 1;
    }
  }
  free(x);
  free(codes);
  free(scales);
  puts("unloaded 20 times: passed");
  return 0;
}
