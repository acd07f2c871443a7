/* Calls the library on fresh threads whose memory is at an end: every allocation of the thread
 * fails from the n-th on, for n = 0, 1, 2, ... until the call needs no more. Each call must return
 * a status, whether it fails for that or for its arguments, the thread's last status must be the
 * same, and there must be a message. Usage: no_memory [<libdualgemm.so>]: the library is loaded
 * then, and n is 0 alone: the C++ runtime that comes with it has allocations of its own that may
 * not fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dualgemm/dualgemm.h"

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);

/* The thread that has no memory, and what it may still allocate. Not thread-local variables: those
 * are what is tested. */
static volatile pthread_t poor;
static volatile int is_poor, left, refused;

static int may_allocate(void) {
  if (!is_poor || !pthread_equal(poor, pthread_self())) return 1;
  if (left > 0) {
    --left;
    return 1;
  }
  refused = 1;
  errno = ENOMEM;
  return 0;
}

void* malloc(size_t size) { return may_allocate() ? __libc_malloc(size) : NULL; }
void* calloc(size_t n, size_t size) { return may_allocate() ? __libc_calloc(n, size) : NULL; }
void* realloc(void* old, size_t size) { return may_allocate() ? __libc_realloc(old, size) : NULL; }
void* memalign(size_t to, size_t size) { return may_allocate() ? __libc_memalign(to, size) : NULL; }
void* aligned_alloc(size_t to, size_t size) { return memalign(to, size); }
int posix_memalign(void** memory, size_t to, size_t size) {
  *memory = memalign(to, size);
  return *memory == NULL ? ENOMEM : 0;
}
void free(void* memory) { __libc_free(memory); }

static struct {
  __typeof__(&dualgemm_problem_init) problem_init;
  __typeof__(&dualgemm_buffers_init) buffers_init;
  __typeof__(&dualgemm_plan_options_init) plan_options_init;
  __typeof__(&dualgemm_parse_strategy) parse_strategy;
  __typeof__(&dualgemm_plan_create) plan_create;
  __typeof__(&dualgemm_plan_destroy) plan_destroy;
  __typeof__(&dualgemm_run) run;
  __typeof__(&dualgemm_last_status) last_status;
  __typeof__(&dualgemm_last_error_message) last_error_message;
} library;

#define FIND(name) (*(void**)& library.name = dlsym(handle, "dualgemm_" #name))

static int load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* null: what this program is linked to */
  return handle != NULL && FIND(problem_init) && FIND(buffers_init) && FIND(plan_options_init) &&
         FIND(parse_strategy) && FIND(plan_create) && FIND(plan_destroy) && FIND(run) &&
         FIND(last_status) && FIND(last_error_message);
}

enum { kM = 4, kN = 64, kK = 128, kCalls = 5, kMostAllocations = 1000 };

typedef struct {
  int which, allocations;
  dualgemm_status status, last;
  char message[64];
} call;

static dualgemm_status plan_and_run(void) {
  static uint8_t a[kM * kK / 2], weights[kN * kK / 2], scales[kN * kK / 16];
  static uint16_t d[kM * kN];
  static _Alignas(64) uint8_t workspace[1 << 20];
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  library.problem_init(&problem, sizeof problem);
  library.buffers_init(&buffers, sizeof buffers);
  library.plan_options_init(&options, sizeof options);
  problem.m = kM, problem.n = kN, problem.k = kK;
  options.device = DUALGEMM_DEVICE_CPU;
  buffers.a = a, buffers.a_scales = scales, buffers.gate = buffers.up = weights;
  buffers.gate_scales = buffers.up_scales = scales, buffers.d = d;
  dualgemm_status status = library.plan_create(&problem, &options, &plan);
  if (status != DUALGEMM_OK) return status;
  status = library.run(plan, &buffers, workspace, sizeof workspace, NULL);
  library.plan_destroy(plan);
  return status;
}

static dualgemm_status call_once(int which) {
  dualgemm_problem problem;
  int32_t value;
  switch (which) {
    case 0:
      return library.problem_init(&problem, sizeof problem);
    case 1:
      return library.problem_init(NULL, sizeof problem);
    case 2:
      return library.parse_strategy("no such strategy", &value);
    case 3:
      return library.plan_create(NULL, NULL, NULL);
    default:
      return plan_and_run();
  }
}

static void* call_poorly(void* argument) {
  call* const made = argument;
  poor = pthread_self();
  left = made->allocations;
  refused = 0;
  is_poor = 1;
  made->status = call_once(made->which);
  made->last = library.last_status();
  strncpy(made->message, library.last_error_message(), sizeof made->message - 1);
  is_poor = 0;
  return NULL;
}

int main(int argc, char** argv) {
  int failures = 0;
  const int is_loaded = argc == 2;
  if (argc > 2 || !load(is_loaded ? argv[1] : NULL)) {
    fprintf(stderr, "%s\n", argc > 2 ? "usage: no_memory [<libdualgemm.so>]" : dlerror());
    return 2;
  }
  for (int which = 0; which < kCalls; ++which) {
    int allocations = 0;
    for (;; ++allocations) {
      call made = {.which = which, .allocations = allocations};
      pthread_t thread;
      if (pthread_create(&thread, NULL, call_poorly, &made) != 0) return 2;
      pthread_join(thread, NULL);
      if (made.last != made.status || made.message[0] == '\0') {
        fprintf(stderr, "call %d with %d allocations: status %d, then %d, \"%s\"\n", which,
                allocations, (int)made.status, (int)made.last, made.message);
        ++failures;
      }
      if (!refused || is_loaded) break;
      if (allocations == kMostAllocations) return 2;
    }
    printf("call %d: %d allocations\n", which, allocations);
  }
  return failures == 0 ? 0 : 1;
}
