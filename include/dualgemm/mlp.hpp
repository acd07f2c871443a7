// A whole gated MLP, dense or of experts, from 16 bits to 16 bits:
//
//   H[l] = act(alpha_gate * X[l] * Gate[l]^T + bias_gate[l])
//          (*) (alpha_up * X[l] * Up[l]^T + bias_up[l])
//   Y[l] = alpha_down * H[l] * Down[l]^T + bias_down[l] + residual[l]
//   X, Y: m x hidden    Gate, Up: intermediate x hidden    Down: hidden x intermediate
//
// or, with MlpProblem::gated = false, H[l] = act(alpha_up * X[l] * Up[l]^T + bias_up[l]).
//
// With top_k > 0 a whole mixture of experts, from a router's ids to the weighted sum, E[e] being
// the Y of expert e above:
//
//   Y[t] = sum over j of topk_weights[t][j] * E[topk_ids[t][j]] + residual[t]
//   X, Y: m x hidden    topk_ids, topk_weights: m x top_k
//
//   // prologue: mlp_operands             (m, hidden, intermediate, and where the operands lie)
//   dualgemm::MlpProblem problem{.m = m, .hidden = hidden, .intermediate = intermediate};
//   dualgemm::MlpBuffers buffers{.x = x, .gate = gate, .gate_scales = gate_scales, .up = up,
//                                .up_scales = up_scales, .down = down,
//                                .down_scales = down_scales, .alpha_gate = alpha_gate,
//                                .alpha_up = alpha_up, .alpha_down = alpha_down, .y = y};
//   auto mlp = dualgemm::GatedMlp::plan(problem);
//   if (!mlp) return report(mlp.status().message());
//   auto workspace = dualgemm::Workspace::allocate(mlp->workspace_bytes(), mlp->device());
//   if (!workspace) return report(workspace.status().message());
//   dualgemm::Status status = mlp->run(buffers, workspace->data(), workspace->size_bytes());
//   if (!status.ok()) return report(status.message());
//
// At most four steps: X is quantised or transformed where that is wanted, the dual product with H
// as its D, H transformed, and the product of linear.hpp. With top_k two more: the ids are sorted
// in front of the products, and the rows summed up behind them (experts.hpp). A token is quantised
// or transformed once, and its row is read by index for each of its experts; Blackwell's kernels,
// which copy whole tiles of X, get rows that were gathered. Nothing synchronises: on kCuda run()
// enqueues and may be recorded in a graph; ids and counts of experts' rows are read when the
// kernels run.
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm/linear.hpp"
#include "dualgemm/quantize.hpp"

namespace dualgemm {

struct MlpProblem {
  int64_t m = 0;                      // rows of X and Y (kContiguous: in total)
  int64_t hidden = 0;                 // columns of X, Gate, Up and Y; a multiple of 16
  int64_t intermediate = 0;           // rows of Gate and Up, columns of Down; a multiple of 16
  int64_t l = 1;                      // batches or experts
  Matrix x{.type = DataType::kBF16};  // kF16 or kBF16; where no kernel of a GPU reads it, kF32
  Matrix gate{}, up{}, down{};        // always kE2M1
  Matrix y{.type = DataType::kBF16};  // kF16, kBF16 or kF32
  // W4A4: what the tensor cores would be given on a GPU that multiplies NVFP4. Otherwise W4A16: X
  // and H have x.type.
  bool quantize_x = false;  // X to NVFP4, with scales of x_scaling
  // H to NVFP4, in the dual product's epilogue with h_global_scale (h_scaling kGiven), or behind it
  // with a scale of each row (kRow).
  bool quantize_h = false;
  GlobalScaling x_scaling = GlobalScaling::kRow;    // kRow, kGiven or kGivenPerBatch
  GlobalScaling h_scaling = GlobalScaling::kGiven;  // kGiven or kRow; an h_transform: always kRow
  Activation act{};
  Grouping grouping = Grouping::kNone;
  BiasType bias = BiasType::kNone;  // of all three
  bool residual = false;            // MlpBuffers::residual, of y's layout and type
  bool batch_invariant = false;     // as Problem::batch_invariant
  // false: no gate, H = act(alpha_up * X * Up^T + bias_up), act one of one product (linear.hpp).
  // `gate` is then the default, and what belongs to Gate among the buffers is null.
  bool gated = true;
  // What becomes of X and of H in front of the products (quantize.hpp): AWQ's factors, online
  // rotations. With an h_transform H is stored in x.type first; quantize_h then finds a scale for
  // each of its rows, and h_global_scale is of no account.
  RowTransform x_transform{}, h_transform{};
  // A mixture's experts: ids that a token has; 0: none, rows are as `grouping` says. Then m counts
  // tokens, l experts, grouping is kNone, x_scaling is not kGivenPerBatch, and `residual` is added
  // to the sum, as a shared expert's Y. What Down gives is rounded to y.type before it is summed
  // up.
  int64_t top_k = 0;
  // The next three: as RoutingProblem's.
  int64_t named_experts = 0;
  bool wide_ids = false;
  DataType weights_type = DataType::kF32;
  bool weights_on_input = false;  // the weights are factors of Gate's and Up's products, not of Y
  bool operator==(const MlpProblem&) const = default;
};

// As Buffers and LinearBuffers; what is not said here is said there.
struct MlpBuffers {
  const void* x = nullptr;
  // Read: with quantize_x and kGiven [1], kGivenPerBatch [l]: dequantising; else null. The alphas
  // of Gate and Up contain it, too.
  const float* x_global_scale = nullptr;
  const void* gate = nullptr;
  const uint8_t* gate_scales = nullptr;
  const void* up = nullptr;
  const uint8_t* up_scales = nullptr;
  const void* down = nullptr;
  const uint8_t* down_scales = nullptr;
  // Dequantising global scale of the weights, times that of X (quantize_x with a given scale) or of
  // H (quantize_h with a given scale: h_global_scale).
  float alpha_gate = 1.0f, alpha_up = 1.0f, alpha_down = 1.0f;
  const float* alpha_gate_per_batch = nullptr;  // optional [l], instead
  const float* alpha_up_per_batch = nullptr;
  const float* alpha_down_per_batch = nullptr;
  float h_global_scale = 1.0f;      // quantize_h, given: dequantising; finite, > 0
  const void* bias_gate = nullptr;  // [l][intermediate]
  const void* bias_up = nullptr;
  const void* bias_down = nullptr;          // [l][hidden]
  const void* residual = nullptr;           // may be y
  const float* x_column_factors = nullptr;  // x_transform.factors: [hidden]; else null
  const float* h_column_factors = nullptr;  // h_transform.factors: [intermediate]; else null
  const int32_t* expert_offsets = nullptr;
  const int32_t* expert_rows = nullptr;
  const int32_t* row_experts = nullptr;
  // top_k: as RoutingBuffers' ids, expert_map and weights (null: 1). Ids of no expert add nothing.
  const void* topk_ids = nullptr;
  const int32_t* expert_map = nullptr;
  const void* topk_weights = nullptr;
  void* y = nullptr;
  const PreparedView* prepared_gate_up = nullptr;  // GatedMlp::gate_up()'s, instead of Gate and Up
  const PreparedView* prepared_down = nullptr;     // GatedMlp::down()'s
  void* stream = nullptr;
};

// As the validate() of dualgemm.hpp: every rule that can be checked without running. The second one
// reads the numbers of experts' rows, which must be host memory, and nothing else of the arrays.
// For a GPU give it the host's copy: calls do not check the GPU's own, and kernels clamp what is
// invalid.
Status validate(const MlpProblem& problem);
Status validate(const MlpProblem& problem, const MlpBuffers& buffers);

// How an MLP will run; a value.
class GatedMlp {
 public:
  // options are those of both products; strategy and config must be left as they are.
  static Expected<GatedMlp> plan(const MlpProblem& problem, const PlanOptions& options = {});

  const MlpProblem& problem() const noexcept { return problem_; }
  DeviceKind device() const noexcept { return gate_up_.device; }
  const Plan& gate_up() const noexcept { return gate_up_; }  // for prepare()
  const Plan& down() const noexcept { return down_; }        // likewise
  int64_t workspace_bytes() const noexcept { return workspace_bytes_; }
  std::string explain() const;  // as Plan::explain(), for each step

  // What prepare(gate_up(), ...) and prepare(down(), ...) read of `buffers`.
  Buffers gate_up_weights(const MlpBuffers& buffers) const;
  Buffers down_weights(const MlpBuffers& buffers) const;

  // Validates first; on any error nothing is written. workspace: as that of dualgemm::run().
  Status run(const MlpBuffers& buffers, void* workspace, int64_t workspace_bytes) const;

 private:
  GatedMlp() = default;

  MlpProblem problem_;
  Plan gate_up_, down_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace dualgemm
