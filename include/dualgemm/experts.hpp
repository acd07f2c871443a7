// The step of a mixture of experts around its products: which rows each expert gets, and the
// weighted sum of what comes back. On kCuda one launch each, nothing is read by the host, and a
// graph may be replayed with other ids.
//
//   route_tokens()     top-k ids -> offsets of the experts' rows, and the token that each row is
//   the products       groups kContiguous with these offsets, A read by index (Problem::a_rows)
//   combine_tokens()   y[t] = sum over j of weights[t][j] * rows[places[t][j]]
//
// GatedMlp with MlpProblem::top_k (mlp.hpp) does all of it in one call.
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm/mlp.hpp"
#include "dualgemm/quantize.hpp"

namespace dualgemm {

struct RoutingProblem {
  int64_t tokens = 0;
  int64_t top_k = 1;    // ids of a token; tokens * top_k is below 2^31
  int64_t experts = 1;  // that have rows here; on kCuda at most kMostRoutedExperts
  // With RoutingBuffers::expert_map: its length, the number of experts that ids name. 0: ids name
  // the `experts` themselves.
  int64_t named_experts = 0;
  bool wide_ids = false;                   // ids are int64 instead of int32
  DataType weights_type = DataType::kF32;  // kF32, kF16 or kBF16
  bool operator==(const RoutingProblem&) const = default;
};
inline constexpr int64_t kMostRoutedExperts = 8192;

struct RoutingBuffers {
  const void* ids = nullptr;  // [tokens][top_k]; one that names no expert is a row of none
  // named_experts: [named_experts], the number among `experts` of each; outside 0 .. experts-1:
  // none
  const int32_t* expert_map = nullptr;
  // For row_scale: factors of the rows, as router weights on the input are ([tokens][top_k]), and
  // of the tokens (found scales of quantised tokens, [tokens]); null: 1.
  const void* weights = nullptr;
  const float* token_scale = nullptr;
  // Written. Rows of expert e: offsets[e] .. offsets[e+1] - 1, in the order of their places in ids.
  // Those of no expert stand behind all others.
  int32_t* offsets = nullptr;     // [experts + 1]
  int32_t* row_tokens = nullptr;  // [tokens * top_k]: the token that a row is, of no expert's, too
  int32_t* places = nullptr;      // [tokens][top_k]: the row of an id; -1: of no expert
  float* row_scale = nullptr;  // optional [tokens * top_k]: weights * token_scale, 0 without expert
  void* stream = nullptr;      // kCuda
};

Status validate(const RoutingProblem& problem);
Status route_tokens(const RoutingProblem& problem, const RoutingBuffers& buffers,
                    const ExecutionOptions& options = {});

struct CombineProblem {
  int64_t tokens = 0, top_k = 1;
  int64_t cols = 0;                        // a positive multiple of 16
  Matrix rows{.type = DataType::kBF16};    // kF16, kBF16 or kF32: [tokens * top_k][cols]
  Matrix y{.type = DataType::kBF16};       // likewise: [tokens][cols]
  DataType weights_type = DataType::kF32;  // kF32, kF16 or kBF16
  bool residual = false;                   // CombineBuffers::residual
  bool operator==(const CombineProblem&) const = default;
};

struct CombineBuffers {
  const void* rows = nullptr;
  const int32_t* places = nullptr;  // [tokens][top_k]: rows outside 0 .. tokens*top_k-1 add nothing
  const void* weights = nullptr;    // [tokens][top_k]; null: all 1
  const void* residual = nullptr;   // added last, as a shared expert's y: laid out as y; may be y
  void* y = nullptr;
  void* stream = nullptr;  // kCuda
};

// In FP32, in the order of a token's places: each product is rounded, and each sum; then the sum is
// rounded to y.type. The bits are the same on every device.
Status validate(const CombineProblem& problem);
Status combine_tokens(const CombineProblem& problem, const CombineBuffers& buffers,
                      const ExecutionOptions& options = {});

}  // namespace dualgemm
