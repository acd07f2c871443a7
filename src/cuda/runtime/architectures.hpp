// The architectures that have a fused kernel of their own: one row each.
#pragma once

#include "dualgemm/types.hpp"

// The kernels of sm100a are compiled for compute capability 11.0 if it is asked for.
#ifdef DUALGEMM_SM110A
#define DUALGEMM_TAKES_SM110(cc) ((cc) == 110)
#else
#define DUALGEMM_TAKES_SM110(cc) false
#endif

// A build without 120f has no kernels of sm120a: these GPUs then take the portable ones.
#ifdef DUALGEMM_SM120F
#define DUALGEMM_TAKES_SM120(cc) ((cc) == 120 || (cc) == 121)
#else
#define DUALGEMM_TAKES_SM120(cc) false
#endif

// X(name of kernels/<name> and fused_kernel_<name>(), enumerator of Isa, whether a GPU of compute
// capability `cc` (10 * major + minor) runs it). Best first.
#define DUALGEMM_CUDA_ARCHITECTURES(X)                                   \
  X(sm100a, kSm100a, cc == 100 || cc == 103 || DUALGEMM_TAKES_SM110(cc)) \
  X(sm120a, kSm120a, DUALGEMM_TAKES_SM120(cc))                           \
  X(sm90a, kSm90a, cc == 90)                                             \
  X(sm80, kSm80, cc >= 80)
