// The operands of one call, checked, as the library wants to know them.
#pragma once

#include <initializer_list>

#include "dualgemm/linear.h"
#include "plan_cache.hpp"
#include "products.hpp"

namespace dualgemm::python {

// What the two kinds of products have in common: the rows, the groups, the place.
struct Call {
  Place place{};
  PlanKey key{};
  dualgemm_buffers buffers{};
  Matrix a;
  Matrix first;  // gate, or the one weight, without its scales; packed: nothing
  int64_t n = 0;
  int64_t l = 1;
  int32_t grouping = DUALGEMM_GROUPING_NONE;
  bool weights_are_batched = false;
  bool rows_are_batched = false;
};

// The first matrix and whether it has a dimension of layers, n, l; of weights that are not packed.
void take_first(const Weights& weights, Call& call);

// Rows and groups; weights only as far as they say n and l.
Call begin(const Rows& rows, const Weights& weights, const Choice& choice, const Groups& groups);

// The dual problem, all but D.
void fill_dual(const Weights& weights, const Factors& factors,
               const ActivationArguments& activation, const Choice& choice, Call& call);

// Turns the call into that of one product.
void fill_linear(const Weights& weights, const Factors& factors, const Choice& choice,
                 const LinearEnd& end, const dualgemm_matrix& d, Call& call);

// The one weight with linear scales, its own or converted. Products cut it into halves where its
// scales may be cut; of packed bytes they cannot know how those lay, and take them as linear.
Weights with_linear_scales(Weights weights, const std::string& scale_layout, const Call& call);

// The layout of a weight, [n, k] or [l, n, k], whose values have been looked at, with its scales.
dualgemm_matrix with_scales(const char* name, const char* scales_name, const Tensor& values,
                            const OptionalTensor& scales, const std::string& scale_layout,
                            const Call& call, Matrix matrix, const void*& data,
                            const uint8_t*& scale_data);
// [l], or null.
const float* alpha_of(const char* name, const OptionalTensor& alpha, const Call& call);
// [l][n], or null. The type goes into `type`, where all biases of a call must agree.
const void* bias_of(const char* name, const OptionalTensor& bias, const Call& call, int32_t& type);
dualgemm_activation activation_of(const ActivationArguments& given);
// Refuses bytes that cannot be so many rows, before anything is allocated for them: a code has half
// a byte at least, in every format.
void check_packed_rows(const Tensor& packed, const Call& call);

// As a plan wants to know it for a GPU; of what may lie anywhere.
int32_t any_unaligned(const Call& call, std::initializer_list<const void*> addresses);

dualgemm_operand_bytes operand_bytes(const dualgemm_problem& problem);

// An operand that weights need when they are not packed; refuses None.
const Tensor& given(const char* name, const OptionalTensor& tensor);

}  // namespace dualgemm::python
