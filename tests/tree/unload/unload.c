/* Loads the library, lets it start threads, and unloads it: its threads and its pages must be gone,
 * and this process must live, though one thread that has had an error from it lives on.
 * Usage: unload <libdualgemm.so> */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
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

static pthread_barrier_t called, unloaded;

/* Has an error, whose text is this thread's, and outlives the library. */
static void* fail_and_stay(void* library) {
  init_function init;
  const char* (*message)(void);
  *(void**)&init = dlsym(library, "dualgemm_quantize_options_init");
  *(void**)&message = dlsym(library, "dualgemm_last_error_message");
  const int failed = init(NULL, 8) != 0 && strstr(message(), "must not be null") != NULL;
  pthread_barrier_wait(&called);
  pthread_barrier_wait(&unloaded);
  return failed ? NULL : "dualgemm_quantize_options_init(NULL) says nothing";
}

/* Whether a page of the file is mapped. */
static int is_mapped(const char* path) {
  char* file = realpath(path, NULL);
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  if (file == NULL || maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL) found |= strstr(line, file) != NULL;
  fclose(maps);
  free(file);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pthread_barrier_init(&called, NULL, 2);
  pthread_barrier_init(&unloaded, NULL, 2);
  for (int round = 0; round < 20; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    pthread_t stays;
    if (pthread_create(&stays, NULL, fail_and_stay, library) != 0) return 2;
    pthread_barrier_wait(&called);
    void* problem = quantize_once(library);
    if (problem != NULL || is_mapped(argv[1]) != 1) {
      fprintf(stderr, "round %d: %s\n", round, problem != NULL ? (const char*)problem : "maps");
      return 1;
    }
    const int before = threads();
    if (dlclose(library) != 0) return 1;
    int after = threads(); /* a joined thread stays listed for a moment */
    for (int wait = 0; wait < 60000 && after > 2; ++wait) {
      usleep(1000);
      after = threads();
    }
    void* still = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    const int mapped = is_mapped(argv[1]);
    if (before < 3 || after != 2 || still != NULL || mapped != 0) {
      fprintf(stderr, "round %d: %d threads with the library, %d without; %s, %s\n", round, before,
              after, still == NULL ? "unloaded" : "still loaded",
              mapped == 0 ? "not mapped" : "still mapped");
      return 1;
    }
    pthread_barrier_wait(&unloaded);
    if (pthread_join(stays, &problem) != 0 || problem != NULL) {
      fprintf(stderr, "round %d: %s\n", round, (const char*)problem);
      return 1;
    }
  }
  puts("unloaded 20 times: passed");
  return 0;
}
