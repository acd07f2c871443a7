// How a file adds its kernels to torch.ops.dualgemm, for the CPU and for CUDA. Schemas, tags and
// shapes are in dualgemm/_schemas.py, as torch's C++ interface takes no tags; a kernel's arguments
// stand in its schema's order.
//
//   DUALGEMM_KERNELS(library) { library.impl("glu", TORCH_BOX(&op_glu)); }
#pragma once

#include <torch/csrc/stable/library.h>

#define DUALGEMM_KERNELS(library)                                         \
  static void add_kernels(torch::stable::detail::StableLibrary& library); \
  STABLE_TORCH_LIBRARY_IMPL(dualgemm, CPU, m) { add_kernels(m); }         \
  STABLE_TORCH_LIBRARY_IMPL(dualgemm, CUDA, m) { add_kernels(m); }        \
  static void add_kernels(torch::stable::detail::StableLibrary& library)
