// A random problem on the GPU: its operands in device memory, and strategies that run there.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/strategies/strategies.hpp"
#include "plan/choose.hpp"
#include "support/checked.hpp"
#include "support/every_activation.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

inline bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

#define DUALGEMM_NEEDS_GPU() \
  if (!::dualgemm::test::has_gpu()) GTEST_SKIP() << "no CUDA device on this machine"

// What a GPU that is not there would say of itself.
inline DeviceCaps made_up_gpu(int compute_capability, int sms = 132) {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.name = "made up GPU";
  caps.compute_capability = compute_capability;
  caps.isas = cuda::isas_of(compute_capability);
  caps.num_sms = sms;
  return caps;
}

inline const Strategy& strategy_of(StrategyId id) {
  return *plan::find_strategy(cuda::strategies(), id, DeviceKind::kCuda);
}

// `size` bytes between two margins that must not be written, `shift` bytes past a multiple of 256.
class GuardedDevice {
 public:
  GuardedDevice() = default;
  GuardedDevice(int64_t size, int64_t shift, const void* from = nullptr)
      : size_(size), begin_(kMargin + shift) {
    auto memory = cuda::DeviceMemory::allocate(begin_ + size + kMargin, "test");
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    if (!memory) return;
    memory_ = *std::move(memory);
    const auto bytes = static_cast<size_t>(size);
    EXPECT_EQ(cudaMemset(memory_.data(), kCanary, static_cast<size_t>(memory_.size())),
              cudaSuccess);
    EXPECT_EQ(cudaMemset(data(), kPoison, bytes), cudaSuccess);
    if (from != nullptr) {
      EXPECT_EQ(cudaMemcpy(data(), from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    }
  }
  uint8_t* data() { return memory_.data() + begin_; }
  int64_t size() const { return size_; }

  // The bytes; fails the test if a margin has changed.
  std::vector<uint8_t> download() const {
    check_margins();
    return copy(begin_, size_);
  }
  void check_margins() const {
    for (const auto& [first, count] : {std::pair{int64_t{0}, begin_}, {begin_ + size_, kMargin}}) {
      const std::vector<uint8_t> margin = copy(first, count);
      const auto written =
          std::find_if(margin.begin(), margin.end(), [](uint8_t byte) { return byte != kCanary; });
      if (written == margin.end()) continue;
      ADD_FAILURE() << "byte " << first - begin_ + (written - margin.begin())
                    << " beside an array of " << size_ << " was written";
    }
  }

 private:
  static constexpr int64_t kMargin = 256;
  static constexpr uint8_t kCanary = 0xC9;
  std::vector<uint8_t> copy(int64_t first, int64_t count) const {
    std::vector<uint8_t> bytes(static_cast<size_t>(memory_.size() == 0 ? 0 : count));
    EXPECT_EQ(
        cudaMemcpy(bytes.data(), memory_.data() + first, bytes.size(), cudaMemcpyDeviceToHost),
        cudaSuccess);
    return bytes;
  }
  cuda::DeviceMemory memory_;
  int64_t size_ = 0, begin_ = 0;
};

// Bytes past a multiple of 256 at which operands start.
struct Shifts {
  int64_t a = 0;        // and its scales; D, as near as its elements allow
  int64_t weights = 0;  // Gate, Up and their scales
  static Shifts all(int64_t bytes) { return {bytes, bytes}; }
};

// The operands of a case on the GPU.
class OnGpu {
 public:
  OnGpu() = default;  // nowhere
  explicit OnGpu(RandomCase& data, int64_t shift = 0) : OnGpu(data, Shifts::all(shift)) {}
  OnGpu(RandomCase& data, Shifts shifts) : buffers_(data.buffers()) {
    buffers_.a = put(data.a.data.data(), data.a.data.size(), shifts.a);
    buffers_.a_scales = put_if(buffers_.a_scales, data.a.scales.size(), shifts.a);
    buffers_.gate = put(data.gate.data.data(), data.gate.data.size(), shifts.weights);
    buffers_.gate_scales = put_if(buffers_.gate_scales, data.gate.scales.size(), shifts.weights);
    buffers_.up = put(data.up.data.data(), data.up.data.size(), shifts.weights);
    buffers_.up_scales = put_if(buffers_.up_scales, data.up.scales.size(), shifts.weights);
    buffers_.a_row_scale = put_floats(data.a_row_scale);
    buffers_.alpha_gate_per_batch = put_floats(data.alpha_gate_per_batch);
    buffers_.alpha_up_per_batch = put_floats(data.alpha_up_per_batch);
    buffers_.expert_offsets = put_experts(data.expert_offsets);
    buffers_.expert_rows = put_experts(data.expert_rows);
    buffers_.row_experts = put_experts(data.row_experts);
    buffers_.a_row_index = put_experts(data.a_row_index);
    buffers_.bias_gate = put_if(static_cast<const uint8_t*>(buffers_.bias_gate),
                                data.bias_gate.size(), core::bytes_of(data.problem.bias));
    buffers_.bias_up = put_if(static_cast<const uint8_t*>(buffers_.bias_up), data.bias_up.size(),
                              core::bytes_of(data.problem.bias));
    d_ = GuardedDevice(data.d.data.size(), (shifts.a + 3) / 4 * 4);  // an element's alignment
    buffers_.d = d_.data();
    if (data.problem.residual) {
      in_place_.assign(data.residual.begin(), data.residual.end());
      buffers_.residual = data.in_place
                              ? d_.data()
                              : put(in_place_.data(), data.residual.size(), (shifts.a + 3) / 4 * 4);
      if (!data.in_place) in_place_.clear();
      poison_d();
    }
    if (buffers_.d_scales == nullptr) return;
    d_scales_ = GuardedDevice(data.d.scales.size(), shifts.a);
    buffers_.d_scales = d_scales_.data();
  }

  Buffers buffers() const { return buffers_; }
  // Or, in place, the residual.
  void poison_d() {
    for (GuardedDevice* array : {&d_, &d_scales_}) {
      if (array->size() == 0) continue;
      EXPECT_EQ(cudaMemset(array->data(), kPoison, bytes(array->size())), cudaSuccess);
    }
    if (!in_place_.empty()) {
      EXPECT_EQ(cudaMemcpy(d_.data(), in_place_.data(), in_place_.size(), cudaMemcpyHostToDevice),
                cudaSuccess);
    }
  }
  std::vector<uint8_t> d() const { return d_.download(); }
  // The offsets or counts of `data` in place of those that lie there, of the same number.
  void upload_experts(const RandomCase& data) {
    const auto copy = [](const int32_t* to, const std::vector<int32_t>& from) {
      if (to == nullptr) return;
      EXPECT_EQ(cudaMemcpy(const_cast<int32_t*>(to), from.data(), from.size() * sizeof(int32_t),
                           cudaMemcpyHostToDevice),
                cudaSuccess);
    };
    copy(buffers_.expert_offsets, data.expert_offsets);
    copy(buffers_.expert_rows, data.expert_rows);
  }
  void download_d(RandomCase& data) const {
    const std::vector<uint8_t> got = d();
    std::memcpy(data.d.data.data(), got.data(), got.size());
    if (d_scales_.size() == 0) return;
    const std::vector<uint8_t> scales = d_scales_.download();
    std::memcpy(data.d.scales.data(), scales.data(), scales.size());
  }

 private:
  static size_t bytes(int64_t size) { return static_cast<size_t>(size); }
  uint8_t* put(const void* from, int64_t size, int64_t shift) {
    arrays_.emplace_back(size, shift, from);
    return arrays_.back().data();
  }
  const uint8_t* put_if(const uint8_t* from, int64_t size, int64_t shift) {
    return from == nullptr ? nullptr : put(from, size, shift);
  }
  const float* put_floats(const std::vector<float>& from) {
    if (from.empty()) return nullptr;
    return reinterpret_cast<float*>(
        put(from.data(), static_cast<int64_t>(from.size() * sizeof(float)), 0));
  }

  const int32_t* put_experts(const std::vector<int32_t>& from) {
    if (from.empty()) return nullptr;
    return reinterpret_cast<int32_t*>(
        put(from.data(), static_cast<int64_t>(from.size() * sizeof(int32_t)), 0));
  }

  std::vector<GuardedDevice> arrays_;
  GuardedDevice d_, d_scales_;
  std::vector<uint8_t> in_place_;  // the residual, if D begins as it
  Buffers buffers_;
};

inline const DeviceCaps& gpu_caps() {
  static const DeviceCaps caps = [] {
    auto detected = cuda::detect_device_caps();
    return detected ? *detected : DeviceCaps();
  }();
  return caps;
}

// One strategy with its plan, weights and poisoned workspace, ready to run again and again.
struct GpuRun {
  Status status;
  const Strategy* strategy = nullptr;
  Plan plan;
  GuardedDevice prepared_bytes;
  PreparedWeights prepared;  // over these bytes
  GuardedDevice workspace;
  RunInfo info;

  GpuRun(const Problem& problem, const Buffers& buffers, const PlanOptions& options) {
    const auto chosen = plan::choose(problem, options, gpu_caps(), cuda::strategies(), "");
    status = chosen.status();
    if (!chosen) return;
    plan = *chosen;
    strategy = plan::find_strategy(cuda::strategies(), plan.strategy, DeviceKind::kCuda);
    if (plan.prepared) {
      prepared_bytes = GuardedDevice(plan.prepared_bytes, 0);
      status = strategy->prepare(plan, checked(plan.problem), buffers, prepared_bytes.data());
      if (!status.ok()) return;
      auto handle = PreparedWeights::borrow(
          {strategy->prepared_descriptor(plan), prepared_bytes.data(), prepared_bytes.size()});
      status = handle.status();
      if (!handle) return;
      prepared = *std::move(handle);
    }
    workspace = GuardedDevice(plan.workspace_bytes, 64);  // no better aligned than it must be
  }

  Status enqueue(Buffers buffers, cudaStream_t stream = nullptr) {
    if (!status.ok()) return status;
    if (plan.prepared) {
      buffers = without_weights(buffers);  // a prepared run must not look at the rows again
      buffers.prepared = &prepared;
    }
    buffers.stream = stream;
    return strategy->run(plan, checked(plan.problem), buffers, workspace.data(), &info);
  }
  Status run(const Buffers& buffers) {
    DUALGEMM_TRY(enqueue(buffers));
    DUALGEMM_TRY(cuda::synchronize(nullptr));
    workspace.check_margins();
    if (plan.prepared) prepared_bytes.check_margins();
    return {};
  }
};

}  // namespace dualgemm::test
