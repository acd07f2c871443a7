// The compiled Configs. The same list feeds the choice of a plan, the tests and the benchmark.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm90a_skinny/config.hpp"

// X(entry's first part, prepared, rows of A, grouped, many tiles, type of A, its name, units,
// columns of D as text)
#define DUALGEMM_SM90A_SKINNY_WIDTHS(X, entry, prepared, tile_m, type, name) \
  X(entry, prepared, tile_m, false, false, type, name, 1, 8)                 \
  X(entry, prepared, tile_m, false, false, type, name, 2, 16)                \
  X(entry, prepared, tile_m, false, false, type, name, 3, 24)                \
  X(entry, prepared, tile_m, false, false, type, name, 4, 32)
// Experts are many, so that their tiles fill a GPU without the other widths. Tiles of 16 rows never
// paid: where experts have more than 8 rows wgmma is faster (15 rows on average, DeepSeek-V3's
// experts on an H200: 245 and 188 us).
#define DUALGEMM_SM90A_SKINNY_GROUP_WIDTHS(X, entry, prepared, tile_m, type, name) \
  X(entry, prepared, tile_m, true, prepared, type, name, 2, 16)                    \
  X(entry, prepared, tile_m, true, prepared, type, name, 4, 32)
// What instances of 32 columns do as well where CTAs have more than one tile. In kernels of their
// own: what it takes costs a CTA's only tile 1 to 5 %, as instructions are further apart.
#define DUALGEMM_SM90A_SKINNY_MANY_WIDTHS(X, entry, prepared, tile_m, type, name) \
  X(entry, prepared, tile_m, false, true, type, name, 4, 32)
#define DUALGEMM_SM90A_SKINNY_TYPES(X, widths, entry, prepared, tile_m)                         \
  widths(X, entry, prepared, tile_m, kE2M1, e2m1) widths(X, entry, prepared, tile_m, kF16, f16) \
      widths(X, entry, prepared, tile_m, kBF16, bf16)
#define DUALGEMM_SM90A_SKINNY_ROWS(X, widths, entry)      \
  DUALGEMM_SM90A_SKINNY_TYPES(X, widths, entry, false, 8) \
  DUALGEMM_SM90A_SKINNY_TYPES(X, widths, entry##_prepared, true, 8)
#define DUALGEMM_SM90A_SKINNY_INSTANCES(X)                                            \
  DUALGEMM_SM90A_SKINNY_ROWS(X, DUALGEMM_SM90A_SKINNY_WIDTHS, dual_gemm_sm90a_skinny) \
  DUALGEMM_SM90A_SKINNY_TYPES(X, DUALGEMM_SM90A_SKINNY_WIDTHS,                        \
                              dual_gemm_sm90a_skinny_prepared_m16, true, 16)
#define DUALGEMM_SM90A_SKINNY_MANY_INSTANCES(X)                              \
  DUALGEMM_SM90A_SKINNY_TYPES(X, DUALGEMM_SM90A_SKINNY_MANY_WIDTHS,          \
                              dual_gemm_sm90a_skinny_many_prepared, true, 8) \
  DUALGEMM_SM90A_SKINNY_TYPES(X, DUALGEMM_SM90A_SKINNY_MANY_WIDTHS,          \
                              dual_gemm_sm90a_skinny_many_prepared_m16, true, 16)
#define DUALGEMM_SM90A_SKINNY_GROUP_INSTANCES(X) \
  DUALGEMM_SM90A_SKINNY_ROWS(X, DUALGEMM_SM90A_SKINNY_GROUP_WIDTHS, dual_gemm_sm90a_skinny_groups)

namespace dualgemm::cuda::sm90a_skinny {

struct Instance {
  Config config;
  int stages;  // of each warp
  uint32_t threads, dynamic_smem_bytes;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();
std::span<const Instance> many_instances();
std::span<const Instance> group_instances();

}  // namespace dualgemm::cuda::sm90a_skinny
