/* Calls on threads with small stacks: every strategy of the CPU plans, prepares, runs and fails on
 * a thread that has DUALGEMM_MIN_STACK bytes and a page behind them that no one may touch. Also
 * prints how much of a larger stack each strategy used. Usage: small_stack <libdualgemm.so> */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dualgemm/dualgemm.h"

static struct {
  __typeof__(&dualgemm_problem_init) problem_init;
  __typeof__(&dualgemm_buffers_init) buffers_init;
  __typeof__(&dualgemm_plan_options_init) plan_options_init;
  __typeof__(&dualgemm_parse_strategy) parse_strategy;
  __typeof__(&dualgemm_plan_create) plan_create;
  __typeof__(&dualgemm_plan_get_info) plan_get_info;
  __typeof__(&dualgemm_plan_explain) plan_explain;
  __typeof__(&dualgemm_plan_destroy) plan_destroy;
  __typeof__(&dualgemm_prepare) prepare;
  __typeof__(&dualgemm_prepared_destroy) prepared_destroy;
  __typeof__(&dualgemm_run) run;
  __typeof__(&dualgemm_last_error_message) last_error_message;
} library;

#define FIND(name) (*(void**)& library.name = dlsym(handle, "dualgemm_" #name))

static int load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return handle != NULL && FIND(problem_init) && FIND(buffers_init) && FIND(plan_options_init) &&
         FIND(parse_strategy) && FIND(plan_create) && FIND(plan_get_info) && FIND(plan_explain) &&
         FIND(plan_destroy) && FIND(prepare) && FIND(prepared_destroy) && FIND(run) &&
         FIND(last_error_message);
}

enum { kM = 300, kN = 320, kK = 512, kLargeStack = 4 << 20, kPage = 4096 };
static const char* const kStrategies[] = {"reference", "two_pass",         "cached",
                                          "graph",     "streams",          "fused_epilogue",
                                          "fused",     "fused_sequential", "fp8"};

static const char* problem_of_call(const char* strategy) {
  static uint8_t a[kM * kK / 2], weights[kN * kK / 2], scales[kM * kK / 16 + kN * kK / 16];
  static float d[kM * kN];
  static char text[64 << 10];
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_plan_options options;
  dualgemm_plan_info info = {.struct_size = sizeof info};
  dualgemm_plan* plan = NULL;
  dualgemm_prepared* prepared = NULL;
  library.problem_init(&problem, sizeof problem);
  library.buffers_init(&buffers, sizeof buffers);
  library.plan_options_init(&options, sizeof options);
  problem.m = kM, problem.n = kN, problem.k = kK;
  options.device = DUALGEMM_DEVICE_CPU;
  if (library.parse_strategy(strategy, &options.strategy) != DUALGEMM_OK) return "parse_strategy";
  buffers.a = a, buffers.a_scales = scales, buffers.gate = buffers.up = weights;
  buffers.gate_scales = buffers.up_scales = scales, buffers.d = d;
  problem.k = 15;
  if (library.plan_create(&problem, &options, &plan) == DUALGEMM_OK) return "k = 15 is accepted";
  problem.k = kK;
  if (library.plan_create(&problem, &options, &plan) != DUALGEMM_OK)
    return library.last_error_message();
  const char* trouble = NULL;
  size_t required = 0;
  if (library.plan_get_info(plan, &info) != DUALGEMM_OK ||
      library.plan_explain(plan, text, sizeof text, &required) != DUALGEMM_OK)
    trouble = "plan_explain";
  if (trouble == NULL && info.prepared) {
    if (library.prepare(plan, &buffers, &prepared) != DUALGEMM_OK) trouble = "prepare";
    buffers.prepared = prepared;
    buffers.gate = buffers.up = NULL;
    buffers.gate_scales = buffers.up_scales = NULL;
  }
  void* const workspace = aligned_alloc(64, ((size_t)info.workspace_bytes + 127) / 64 * 64);
  if (trouble == NULL &&
      library.run(plan, &buffers, workspace, info.workspace_bytes, NULL) != DUALGEMM_OK)
    trouble = library.last_error_message();
  free(workspace);
  library.prepared_destroy(prepared);
  library.plan_destroy(plan);
  return trouble;
}

static void* call(void* strategy) { return (void*)problem_of_call(strategy); }

/* Runs on a stack of so many bytes; *used: how far the call went down in it. NULL, or what was
 * wrong. */
static const char* call_on_stack(const char* strategy, size_t bytes, size_t* used) {
  enum { kPattern = 0xA5 };
  uint8_t* const memory = mmap(NULL, bytes + kPage, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0) return "mmap";
  uint8_t* const stack = memory + kPage;
  memset(stack, kPattern, bytes);
  pthread_attr_t attributes;
  pthread_t thread;
  void* trouble = "no thread";
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, bytes) == 0 &&
      pthread_create(&thread, &attributes, call, (void*)strategy) == 0)
    pthread_join(thread, &trouble);
  pthread_attr_destroy(&attributes);
  size_t untouched = 0;
  while (untouched < bytes && stack[untouched] == kPattern) ++untouched;
  *used = bytes - untouched;
  munmap(memory, bytes + kPage);
  return trouble;
}

int main(int argc, char** argv) {
  if (argc != 2 || !load(argv[1])) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: small_stack <libdualgemm.so>");
    return 2;
  }
  for (size_t i = 0; i < sizeof kStrategies / sizeof *kStrategies; ++i) {
    size_t used = 0;
    const char* trouble = call_on_stack(kStrategies[i], kLargeStack, &used);
    if (trouble == NULL) {
      printf("%s: %zu bytes\n", kStrategies[i], used);
      fflush(stdout);
      trouble = call_on_stack(kStrategies[i], DUALGEMM_MIN_STACK, &used);
    }
    if (trouble != NULL) {
      fprintf(stderr, "%s: %s\n", kStrategies[i], trouble);
      return 1;
    }
  }
  return 0;
}
