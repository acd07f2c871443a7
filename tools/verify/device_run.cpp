#include "tools/verify/device_run.hpp"

#include "api/backend.hpp"

#ifndef DUALGEMM_HAS_CUDA  // 1 when src/cuda is part of the build
#define DUALGEMM_HAS_CUDA 0
#endif

#if DUALGEMM_HAS_CUDA
#include "cuda/families.hpp"
#include "cuda/kernels/common/device_peaks.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/graph_timer.hpp"
#include "tools/verify/device_copies.hpp"
#endif

namespace dualgemm::verify {

#if DUALGEMM_HAS_CUDA

struct DeviceRun::State {
  Plan plan;
  DeviceCopies inputs;
  cuda::DeviceMemory d, d_scales, workspace;
  PreparedWeights prepared;
  Buffers device;

  Status copy_inputs(const Buffers& host, const OperandSizes& sizes) {
    const int64_t batch_floats = plan.problem.l * static_cast<int64_t>(sizeof(float));
    device = host;
    DUALGEMM_TRY(inputs.copy(host.a, sizes.a, "a", &device.a));
    DUALGEMM_TRY(inputs.copy(host.a_scales, sizes.a_scales, "a_scales", &device.a_scales));
    DUALGEMM_TRY(inputs.copy(host.gate, sizes.gate, "gate", &device.gate));
    DUALGEMM_TRY(
        inputs.copy(host.gate_scales, sizes.gate_scales, "gate_scales", &device.gate_scales));
    DUALGEMM_TRY(inputs.copy(host.up, sizes.up, "up", &device.up));
    DUALGEMM_TRY(inputs.copy(host.up_scales, sizes.up_scales, "up_scales", &device.up_scales));
    DUALGEMM_TRY(
        inputs.copy(host.a_row_scale, sizes.a_row_scale, "a_row_scale", &device.a_row_scale));
    DUALGEMM_TRY(inputs.copy(host.alpha_gate_per_batch, batch_floats, "alpha_gate_per_batch",
                             &device.alpha_gate_per_batch));
    DUALGEMM_TRY(inputs.copy(host.alpha_up_per_batch, batch_floats, "alpha_up_per_batch",
                             &device.alpha_up_per_batch));
    const int64_t expert_bytes = plan.problem.l * static_cast<int64_t>(sizeof(int32_t));
    DUALGEMM_TRY(inputs.copy(host.expert_offsets,
                             expert_bytes + static_cast<int64_t>(sizeof(int32_t)), "expert_offsets",
                             &device.expert_offsets));
    DUALGEMM_TRY(inputs.copy(host.expert_rows, expert_bytes, "expert_rows", &device.expert_rows));
    DUALGEMM_TRY(inputs.copy(host.row_experts,
                             plan.problem.m * static_cast<int64_t>(sizeof(int32_t)), "row_experts",
                             &device.row_experts));
    DUALGEMM_TRY(inputs.copy(host.bias_gate, sizes.bias_gate, "bias_gate", &device.bias_gate));
    DUALGEMM_TRY(inputs.copy(host.bias_up, sizes.bias_up, "bias_up", &device.bias_up));
    return inputs.copy(host.residual, sizes.d, "residual", &device.residual);
  }

  Status allocate_output(const Buffers& host, const OperandSizes& sizes) {
    Expected<cuda::DeviceMemory> output = cuda::DeviceMemory::allocate(sizes.d, "d");
    if (!output) return output.status();
    d = *std::move(output);
    device.d = d.data();
    DUALGEMM_TRY(d.upload(host.d));  // what lies between its rows must come back as it was
    if (sizes.d_scales > 0) {
      Expected<cuda::DeviceMemory> scales =
          cuda::DeviceMemory::allocate(sizes.d_scales, "d_scales");
      if (!scales) return scales.status();
      d_scales = *std::move(scales);
      device.d_scales = d_scales.data();
      DUALGEMM_TRY(d_scales.upload(host.d_scales));
    }
    Expected<cuda::DeviceMemory> scratch =
        cuda::DeviceMemory::allocate(plan.workspace_bytes, "workspace");
    if (!scratch) return scratch.status();
    workspace = *std::move(scratch);
    return {};
  }

  Status prepare_weights() {
    if (!plan.prepared) return {};
    Expected<PreparedWeights> made = prepare(plan, device);
    if (!made) return made.status();
    prepared = *std::move(made);
    return {};
  }

  Status enqueue(void* stream, RunInfo* info) {
    Buffers buffers = device;
    if (plan.prepared) buffers.prepared = &prepared;
    buffers.stream = stream;
    return dualgemm::run(plan, buffers, workspace.data(), workspace.size(), info);
  }
};

Expected<DeviceRun> DeviceRun::make(const Plan& plan, const Buffers& host) {
  const Expected<OperandSizes> sizes = operand_sizes(plan.problem);
  if (!sizes) return sizes.status();
  DeviceRun run;
  run.state_ = std::make_unique<State>();
  run.state_->plan = plan;
  DUALGEMM_TRY(run.state_->copy_inputs(host, *sizes));
  DUALGEMM_TRY(run.state_->allocate_output(host, *sizes));
  DUALGEMM_TRY(run.state_->prepare_weights());
  return run;
}

Status DeviceRun::run(const Buffers& host, RunInfo* info) {
  DUALGEMM_TRY(state_->enqueue(nullptr, info));
  DUALGEMM_TRY(cuda::synchronize(nullptr));
  DUALGEMM_TRY(state_->d.download(host.d));
  return state_->d_scales.size() == 0 ? Status() : state_->d_scales.download(host.d_scales);
}

Expected<std::vector<double>> DeviceRun::time(std::vector<DeviceRun*> runs, int calls,
                                              int replays) {
  return cuda::time_graph(calls, replays, [&](void* stream, int call) {
    return runs[static_cast<size_t>(call) % runs.size()]->state_->enqueue(stream, nullptr);
  });
}

Expected<DevicePeaks> measure_device_peaks() {
  const Expected<cuda::DevicePeaks> peaks = cuda::measure_device_peaks();
  if (!peaks) return peaks.status();
  return DevicePeaks{peaks->f16_gflops, peaks->e4m3_gflops, peaks->read_gbps};
}

std::vector<Isa> isas_of_gpu(int compute_capability) { return cuda::isas_of(compute_capability); }

PredictedTime predicted_time(const Plan& plan, const DeviceCaps& caps) {
  const auto time = cuda::predicted_time(plan, caps);
  return time ? PredictedTime{time->us, time->low, time->high} : PredictedTime{};
}

#else

struct DeviceRun::State {};

std::vector<Isa> isas_of_gpu(int) { return {}; }

PredictedTime predicted_time(const Plan&, const DeviceCaps&) { return {}; }

Expected<DevicePeaks> measure_device_peaks() { return api::not_in_this_build(); }

Expected<DeviceRun> DeviceRun::make(const Plan&, const Buffers&) {
  return api::not_in_this_build();
}
Status DeviceRun::run(const Buffers&, RunInfo*) { return api::not_in_this_build(); }
Expected<std::vector<double>> DeviceRun::time(std::vector<DeviceRun*>, int, int) {
  return api::not_in_this_build();
}

#endif

DeviceRun::DeviceRun() noexcept = default;
DeviceRun::~DeviceRun() = default;
DeviceRun::DeviceRun(DeviceRun&&) noexcept = default;
DeviceRun& DeviceRun::operator=(DeviceRun&&) noexcept = default;

}  // namespace dualgemm::verify
