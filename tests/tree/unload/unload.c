/* Loads the library, lets it start threads, and unloads it: its threads must be gone, and this
 * process must live. Usage: unload <libdualgemm.so> */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
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

enum { kRows = 512, kCols = 1024 };

/* Quantises with four threads; NULL, or what went wrong. */
static void* quantize_once(void* library) {
  static float x[kRows * kCols];
  static uint8_t codes[kRows * kCols / 2], scales[kRows * kCols / 16];
  init_function init;
  quantize_function quantize;
  *(void**)&init = dlsym(library, "dualgemm_quantize_options_init");
  *(void**)&quantize = dlsym(library, "dualgemm_quantize");
  if (init == NULL || quantize == NULL) return "a function is missing";
  dualgemm_quantize_options options;
  init(&options, sizeof options);
  options.threads = 4;
  if (quantize(x, DUALGEMM_F32, kRows, kCols, 0, codes, 0, scales, &options, NULL) != 0)
    return "dualgemm_quantize";
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int round = 0; round < 20; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    /* In a thread that ends before: the last error's text is the thread's, and glibc unloads
     * nothing while such a thread lives. */
    pthread_t caller;
    void* problem = "no thread";
    if (pthread_create(&caller, NULL, quantize_once, library) != 0 ||
        pthread_join(caller, &problem) != 0 || problem != NULL) {
      fprintf(stderr, "round %d: %s\n", round, (const char*)problem);
      return 1;
    }
    const int before = threads();
    if (dlclose(library) != 0) return 1;
    int after = threads(); /* a joined thread stays listed for a moment */
    for (int wait = 0; wait < 60000 && after > 1; ++wait) {
      usleep(1000);
      after = threads();
    }
    void* still = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    if (before < 2 || after != 1 || still != NULL) {
      fprintf(stderr, "round %d: %d threads with the library, %d without; %s\n", round, before,
              after, still == NULL ? "unloaded" : "still loaded");
      return 1;
    }
  }
  puts("unloaded 20 times: passed");
  return 0;
}
