#include "tools/verify/mlp_run.hpp"

#include <utility>

#include "core/problem.hpp"

#ifndef DUALGEMM_HAS_CUDA  // 1 when src/cuda is part of the build
#define DUALGEMM_HAS_CUDA 0
#endif

#if DUALGEMM_HAS_CUDA
#include "cuda/runtime/device.hpp"
#include "tools/verify/device_copies.hpp"
#endif

namespace dualgemm::verify {

struct MlpRun::State {
  GatedMlp mlp;
  MlpBuffers host, buffers;  // buffers: where the run finds its operands
  Workspace workspace;
  PreparedWeights gate_up, down;
  PreparedView gate_up_view, down_view;
#if DUALGEMM_HAS_CUDA
  DeviceCopies copies;
  cuda::DeviceMemory y;
#endif

  explicit State(GatedMlp plan) : mlp(std::move(plan)) {}

  Status prepare_weights() {
    if (!mlp.gate_up().prepared) return {};
    Expected<PreparedWeights> first = prepare(mlp.gate_up(), mlp.gate_up_weights(buffers));
    if (!first) return first.status();
    Expected<PreparedWeights> second = prepare(mlp.down(), mlp.down_weights(buffers));
    if (!second) return second.status();
    gate_up = *std::move(first);
    down = *std::move(second);
    gate_up_view = gate_up.view();
    down_view = down.view();
    buffers.prepared_gate_up = &gate_up_view;
    buffers.prepared_down = &down_view;
    return {};
  }

#if DUALGEMM_HAS_CUDA
  Status copy_operands() {
    const MlpProblem& p = mlp.problem();
    const int64_t batches = p.top_k > 0 || p.grouping == Grouping::kContiguous ? 1 : p.l;
    const core::ResolvedMatrix x = core::resolve(p.x, p.m, p.hidden),
                               gate = core::resolve(p.gate, p.intermediate, p.hidden),
                               up = core::resolve(p.up, p.intermediate, p.hidden),
                               down_rows = core::resolve(p.down, p.hidden, p.intermediate),
                               y_rows = core::resolve(p.y, p.m, p.hidden);
    const int64_t floats = p.l * static_cast<int64_t>(sizeof(float));
    const int64_t bias = p.l * core::bytes_of(p.bias);
    const auto weights = [&](const core::ResolvedMatrix& matrix, const void* codes,
                             const uint8_t* scales, const char* name, const void** to,
                             const uint8_t** scales_to) -> Status {
      DUALGEMM_TRY(copies.copy(codes, matrix.data_span_bytes(p.l), name, to));
      return copies.copy(scales, matrix.scale_span_bytes(p.l), name, scales_to);
    };
    buffers = host;
    MlpBuffers& b = buffers;
    DUALGEMM_TRY(copies.copy(host.x, x.data_span_bytes(batches), "x", &b.x));
    DUALGEMM_TRY(weights(gate, host.gate, host.gate_scales, "gate", &b.gate, &b.gate_scales));
    DUALGEMM_TRY(weights(up, host.up, host.up_scales, "up", &b.up, &b.up_scales));
    DUALGEMM_TRY(weights(down_rows, host.down, host.down_scales, "down", &b.down, &b.down_scales));
    const int64_t x_scales =
        p.x_scaling == GlobalScaling::kGiven ? static_cast<int64_t>(sizeof(float)) : floats;
    DUALGEMM_TRY(copies.copy(host.x_global_scale, x_scales, "x_global_scale", &b.x_global_scale));
    DUALGEMM_TRY(copies.copy(host.alpha_gate_per_batch, floats, "alpha_gate_per_batch",
                             &b.alpha_gate_per_batch));
    DUALGEMM_TRY(
        copies.copy(host.alpha_up_per_batch, floats, "alpha_up_per_batch", &b.alpha_up_per_batch));
    DUALGEMM_TRY(copies.copy(host.alpha_down_per_batch, floats, "alpha_down_per_batch",
                             &b.alpha_down_per_batch));
    DUALGEMM_TRY(copies.copy(host.bias_gate, bias * p.intermediate, "bias_gate", &b.bias_gate));
    DUALGEMM_TRY(copies.copy(host.bias_up, bias * p.intermediate, "bias_up", &b.bias_up));
    DUALGEMM_TRY(copies.copy(host.h_column_factors, host.h_column_factors ? p.intermediate * 4 : 0,
                             "h_column_factors", &b.h_column_factors));
    DUALGEMM_TRY(copies.copy(host.x_column_factors, host.x_column_factors ? p.hidden * 4 : 0,
                             "x_column_factors", &b.x_column_factors));
    DUALGEMM_TRY(copies.copy(host.bias_down, bias * p.hidden, "bias_down", &b.bias_down));
    constexpr int64_t kIndex = sizeof(int32_t);
    DUALGEMM_TRY(
        copies.copy(host.expert_offsets, (p.l + 1) * kIndex, "expert_offsets", &b.expert_offsets));
    DUALGEMM_TRY(copies.copy(host.expert_rows, p.l * kIndex, "expert_rows", &b.expert_rows));
    DUALGEMM_TRY(copies.copy(host.row_experts, p.m * kIndex, "row_experts", &b.row_experts));
    const int64_t ids = p.m * p.top_k;
    DUALGEMM_TRY(copies.copy(host.topk_ids, ids * (p.wide_ids ? 8 : 4), "topk_ids", &b.topk_ids));
    DUALGEMM_TRY(
        copies.copy(host.expert_map, p.named_experts * kIndex, "expert_map", &b.expert_map));
    DUALGEMM_TRY(copies.copy(host.topk_weights, ids * core::bytes_of(p.weights_type, 1),
                             "topk_weights", &b.topk_weights));
    Expected<cuda::DeviceMemory> output =
        cuda::DeviceMemory::allocate(y_rows.data_span_bytes(batches), "y");
    if (!output) return output.status();
    y = *std::move(output);
    b.y = y.data();
    return y.upload(host.y);  // rows of no expert must come back as they were
  }

  Status fetch() {
    if (mlp.device() != DeviceKind::kCuda) return {};
    DUALGEMM_TRY(cuda::synchronize(nullptr));
    return y.download(host.y);
  }
#else
  Status copy_operands() { return {}; }
  Status fetch() { return {}; }
#endif
};

MlpRun::MlpRun() noexcept = default;
MlpRun::~MlpRun() = default;
MlpRun::MlpRun(MlpRun&&) noexcept = default;
MlpRun& MlpRun::operator=(MlpRun&&) noexcept = default;

const GatedMlp& MlpRun::mlp() const noexcept { return state_->mlp; }

Expected<MlpRun> MlpRun::make(const MlpProblem& problem, const MlpBuffers& host,
                              const PlanOptions& options) {
  Expected<GatedMlp> plan = GatedMlp::plan(problem, options);
  if (!plan) return plan.status();
  Expected<Workspace> workspace = Workspace::allocate(plan->workspace_bytes(), plan->device());
  if (!workspace) return workspace.status();
  MlpRun out;
  out.state_ = std::make_unique<State>(*std::move(plan));
  State& state = *out.state_;
  state.workspace = *std::move(workspace);
  state.host = state.buffers = host;
  if (state.mlp.device() == DeviceKind::kCuda) DUALGEMM_TRY(state.copy_operands());
  DUALGEMM_TRY(state.prepare_weights());
  return out;
}

Status MlpRun::run() {
  const Workspace& workspace = state_->workspace;
  DUALGEMM_TRY(state_->mlp.run(state_->buffers, workspace.data(), workspace.size_bytes()));
  return state_->fetch();
}

}  // namespace dualgemm::verify
