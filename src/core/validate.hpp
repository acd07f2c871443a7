// The pieces of validate(), one rule or one operand each; every face of the library uses these.
#pragma once

#include <cstdint>

#include "core/checked_problem.hpp"
#include "core/problem.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::core {

Status check_extents(const Problem& problem);
Status check_activation(const Activation& act);

// combine, up_column, residual and the activation beside them; bias and bias_stride.
Status check_combine(const Problem& problem);
Status check_bias(const Problem& problem);

// `name` is "a", "gate", "up" or "d". Afterwards every span of the operand, times 16 bytes, fits in
// 64 bits: strategies may size FP32 intermediates without checking again.
// contiguous: one matrix for all `batches` experts, its swizzled scales padded for each.
Status check_matrix(const char* name, const Matrix& matrix, int64_t rows, int64_t cols,
                    int64_t batches, bool contiguous);

// A matrix of weights: always kE2M1. `name` and `type_name`: "gate", "gate.type".
Status check_weight(const char* name, const char* type_name, const Matrix& matrix, int64_t n,
                    int64_t k, int64_t l);

// The strides of A and D between batches: there are none where one A and D serve all experts.
Status check_token_strides(const Problem& problem);

// D, its columns included. `n`: as the caller counts them.
Status check_output(const Problem& problem, int64_t n);

// Kernels round rows and k up to tiles: a problem that fits in 64 bits only without its
// padding is refused, so that no strategy's size or tile count can overflow.
Status check_padded_sizes(const Problem& problem);

// Where expert_offsets, expert_rows and row_experts lie. What a device holds is not looked at: it
// may change until the kernels read it, and they cut what cannot be.
enum class GroupArrays { kHost, kDevice };

// Scale rows of A and D: m, but for expert_offsets + swizzled every expert starts a new 128-row
// tile; kDevice: as many as there are at least. Precondition: kHost: validated expert_offsets.
int64_t swizzled_scale_rows(const Problem& problem, const Buffers& buffers,
                            GroupArrays groups) noexcept;

// kContiguous: expert_offsets or row_experts; kMasked: expert_rows; kNone: none of them.
Status check_groups(const Problem& problem, const Buffers& buffers, GroupArrays groups);

// What validate(problem, buffers), which is for kHost, says of the buffers.
Status check_buffers(const CheckedProblem& problem, const Buffers& buffers, GroupArrays groups);

// Nulls, alignment, address overflow of gate, gate_scales, up and up_scales alone (what prepare()
// reads).
Status check_weights(const CheckedProblem& problem, const Buffers& buffers);

// The bytes that prepare() writes belong to none of the weights that it reads. Precondition:
// check_weights().
Status check_prepared_overlap(const CheckedProblem& problem, const Buffers& buffers,
                              const void* prepared, int64_t bytes);

// The first `bytes` bytes of the workspace, which run() writes to, belong to no operand. Weights
// are left out if they are prepared: the caller's own may be gone. Precondition: check_buffers().
Status check_workspace_overlap(const CheckedProblem& problem, const Buffers& buffers,
                               GroupArrays groups, const void* workspace, int64_t bytes);

}  // namespace dualgemm::core
