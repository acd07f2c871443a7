// What the strategies around plain GEMMs put into memory, and the steps they are made of. Each step
// enqueues on one stream and returns.
#pragma once

#include <cstdint>

#include "core/arena.hpp"
#include "core/problem.hpp"
#include "cuda/runtime/cublaslt.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

enum class GemmOperand : int { kGate = 0, kUp = 1 };

// A weight as the GEMM reads it: [padded n][k] of each batch, rows beyond n zero. E4M3 has a scale
// per row. NVFP4 has one batch and its block scales, swizzled; rows beyond n have zero scales and
// any codes.
struct GemmWeights {
  uint8_t* values = nullptr;
  float* row_scales = nullptr;
  uint8_t* block_scales = nullptr;
  int64_t batch_values = 0, batch_rows = 0;  // from one batch to the next, in elements
};

inline constexpr int64_t kGemmAlignment = 256;  // of all pieces

// One call: the problem, how it is computed, and where the intermediates lie.
struct GemmWork {
  core::ResolvedProblem problem;
  GemmNumber number;
  bool copies_a;  // A has 16-bit values that cannot be read in place
  const Buffers* buffers = nullptr;
  uint8_t* a = nullptr;  // converted or copied: [l][m][k]; null: read in place
  float* a_row_scales = nullptr;
  uint8_t* a_block_scales = nullptr;
  GemmWeights weights[2] = {};
  float* products[2] = {nullptr, nullptr};           // [l][m][padded n]
  uint8_t* gemm_workspaces[2] = {nullptr, nullptr};  // the same one if the GEMMs take turns
};

// Columns of a product, and rows of a converted weight: n rounded up so that rows are aligned.
int64_t padded_n(const Problem& problem) noexcept;

// Can a GPU that has block-scaled tensor cores multiply the operands as they are?
bool is_native(const Problem& problem) noexcept;

// What the GEMMs of a plan multiply: E4M3; NVFP4 on sm100a; else the type that a is exact in.
GemmNumber gemm_number(const Plan& plan, bool fp8) noexcept;

// Both weights of all batches, where they lie for one call.
void take_weights(const Problem& problem, GemmNumber number, core::Arena& arena,
                  GemmWeights (&weights)[2]) noexcept;

// The same in prepared weights: one part for each batch.
PreparedDescriptor prepared_gemm_weights(const Problem& problem, GemmNumber number) noexcept;
void take_prepared(const PreparedDescriptor& descriptor, GemmNumber number, uint8_t* first_part,
                   GemmWeights (&weights)[2]) noexcept;

// Everything of a call but its buffers. converts_weights: on every call, into the workspace.
GemmWork lay_out(const Plan& plan, const core::ResolvedProblem& problem, bool fp8,
                 bool converts_weights, bool two_streams, core::Arena& arena) noexcept;

// ok, or what of this call cannot be done; decides the algorithm. Nothing is enqueued.
Status check_call(const GemmWork& work);

Status convert_weights(const GemmWork& work, GemmOperand operand, cudaStream_t stream);
Status convert_activation(const GemmWork& work, cudaStream_t stream);
Status multiply(const GemmWork& work, GemmOperand operand, cudaStream_t stream);
Status join(const GemmWork& work, cudaStream_t stream);

}  // namespace dualgemm::cuda
