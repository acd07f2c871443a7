// The arguments of the operators, gathered, and what is done with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tensors.hpp"

namespace dualgemm::python {

using torch::headeronly::ScalarType;

// The rows that are multiplied. scales: NVFP4 only. row_scale: one factor a row, optional.
struct Rows {
  const Tensor& values;
  const OptionalTensor& scales;
  const OptionalTensor& row_scale;
};

// Gate and up as in checkpoints, or packed for n rows each of l layers.
struct Weights {
  OptionalTensor gate, gate_scales, up, up_scales;
  OptionalTensor packed;
  int64_t n = 0;
  int64_t l = 0;
  const char* first_name = "gate";  // what the caller calls it: "w" where it is the only one
};

// alpha: [l], a bias [n] or [l, n].
struct Factors {
  OptionalTensor alpha_gate, alpha_up, bias_gate, bias_up;
};

struct ActivationArguments {
  std::string kind;
  std::optional<double> alpha, beta, limit;
};

struct Choice {
  std::string scale_layout;
  bool batch_invariant = false;
  std::string strategy;
  std::string config;
};

// How rows fall to experts; at most one of them. offsets: [l + 1]; m_indices: [rows];
// masked_m: [l], and the rows are [l, most rows, k].
struct Groups {
  OptionalTensor offsets, m_indices, masked_m;
  bool is_contiguous() const { return offsets.has_value() || m_indices.has_value(); }
};

// D, wide; where it is new, its dtype, or what follows from the rows'. A new D has zeros in rows
// that no expert computes; in `out` they stay as they are.
struct WideOutput {
  std::optional<ScalarType> dtype;
  OptionalTensor out;
};
// D as NVFP4.
struct Nvfp4Output {
  double global_scale = 1;
  std::string scale_layout;
  OptionalTensor codes, scales;
};

Tensor glu(const Rows& rows, const Weights& weights, const Factors& factors,
           const ActivationArguments& activation, const Choice& choice, const Groups& groups,
           const WideOutput& output);
std::pair<Tensor, Tensor> glu_nvfp4(const Rows& rows, const Weights& weights,
                                    const Factors& factors, const ActivationArguments& activation,
                                    const Choice& choice, const Groups& groups,
                                    const Nvfp4Output& output);

// Gate and up, packed for rows of that dtype: bytes.
Tensor pack_weights(const Weights& weights, ScalarType rows_dtype, const std::string& scale_layout);

// What one product becomes. residual: as D.
struct LinearEnd {
  std::string activation = "identity";
  OptionalTensor residual;
};

// One product: act(alpha * a * w^T + bias) + residual. weights.gate is w, factors.alpha_gate alpha
// and so on.
Tensor linear(const Rows& rows, const Weights& weights, const Factors& factors,
              const LinearEnd& end, const Choice& choice, const Groups& groups,
              const WideOutput& output);
std::pair<Tensor, Tensor> linear_nvfp4(const Rows& rows, const Weights& weights,
                                       const Factors& factors, const LinearEnd& end,
                                       const Choice& choice, const Groups& groups,
                                       const Nvfp4Output& output);
Tensor pack_linear(const Weights& weights, ScalarType rows_dtype, const std::string& scale_layout);

}  // namespace dualgemm::python
