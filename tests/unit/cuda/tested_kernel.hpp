// Every compiled kernel of the fused strategy behind one face, so that one set of tests runs on all
// of them. A further family needs a function in tested_kernel.cpp; its instances come in by
// themselves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cuda/runtime/kernel_launch.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {

// What a host decides about one call.
struct KernelCall {
  core::ResolvedProblem problem;
  int64_t max_ctas = 1;    // where the kernel shares out its work: among at most so many CTAs
  bool unaligned = false;  // PlanOptions::unaligned
};

struct TestedKernel {
  std::string name;  // of its entry point
  Isa isa = Isa::kAuto;
  std::vector<DataType> a_types;
  int64_t tile_m = 0, tile_n = 0;  // rows and columns of D per tile: sizes near them are edges
  // What a problem must keep to: rows of A, a multiple in k and of the bytes between rows.
  int64_t most_m = 300, step_k = 16;
  bool any_alignment = true;  // of A; of the weights also where they are packed before
  std::function<bool(int compute_capability)> runs_on;
  std::function<bool(const Problem&)> suits;  // the type of D, both products side by side
  std::function<int64_t(const KernelCall&)> workspace_bytes;
  // Kernels for prepared weights: their size, and the launch that makes them. Else empty.
  std::function<int64_t(const KernelCall&)> packed_bytes;
  std::function<cuda::KernelLaunch(const KernelCall&, const Buffers&, uint8_t* out)> pack;
  // packed: null for the other kernels.
  std::function<Expected<std::vector<cuda::KernelLaunch>>(const KernelCall&, const Buffers&,
                                                          const uint8_t* packed, void* workspace)>
      launches;

  bool prepared() const { return pack != nullptr; }
  bool any_weights() const { return any_alignment || prepared(); }
};

const std::vector<TestedKernel>& tested_kernels();

// `wanted` as near as the kernel takes it.
inline int64_t rows_for(const TestedKernel& kernel, int64_t wanted) {
  return std::min(wanted, kernel.most_m);
}
inline int64_t k_for(const TestedKernel& kernel, int64_t wanted) {
  return (wanted + kernel.step_k - 1) / kernel.step_k * kernel.step_k;
}

inline std::ostream& operator<<(std::ostream& out, const TestedKernel& kernel) {
  return out << kernel.name;
}

// A case on the GPU with one kernel and a poisoned workspace, to be enqueued again and again.
class KernelRun {
 public:
  // max_ctas = 0: the GPU's SMs.
  KernelRun(const TestedKernel& kernel, RandomCase& data, int64_t max_ctas = 0, Shifts shifts = {})
      : device_(data, shifts) {
    const int64_t farthest = kernel.prepared() ? shifts.a : std::max(shifts.a, shifts.weights);
    const KernelCall call{.problem = data.resolved,
                          .max_ctas = max_ctas == 0 ? gpu_caps().num_sms : max_ctas,
                          .unaligned = farthest % 16 != 0};
    workspace_ = GuardedDevice(kernel.workspace_bytes(call), 64);  // as aligned as it must be
    Buffers buffers = device_.buffers();
    if (kernel.prepared()) {
      pack(kernel, call);
      buffers = without_weights(buffers);
    }
    auto made = kernel.launches(call, buffers, packed_.data(), workspace_.data());
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made) launches_ = *std::move(made);
  }

  Status enqueue(void* stream = nullptr) {
    for (const cuda::KernelLaunch& launch : launches_) {
      DUALGEMM_TRY(cuda::enqueue(launch, static_cast<cudaStream_t>(stream)));
    }
    return {};
  }
  // D after one call on a poisoned D, its padding included.
  std::vector<uint8_t> run() {
    poison_d();
    const Status status = enqueue();
    EXPECT_TRUE(status.ok()) << status.message();
    const Status done = cuda::synchronize(nullptr);
    EXPECT_TRUE(done.ok()) << done.message();
    workspace_.check_margins();
    if (packed_.size() > 0) packed_.check_margins();
    return d();
  }
  void run(RandomCase& data) {
    run();
    device_.download_d(data);
  }
  void poison_d() { device_.poison_d(); }
  std::vector<uint8_t> d() const { return device_.d(); }

 private:
  void pack(const TestedKernel& kernel, const KernelCall& call) {
    packed_ = GuardedDevice(kernel.packed_bytes(call), 0);
    const Status status =
        cuda::enqueue(kernel.pack(call, device_.buffers(), packed_.data()), nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    const Status done = cuda::synchronize(nullptr);
    EXPECT_TRUE(done.ok()) << done.message();
  }

  OnGpu device_;
  GuardedDevice workspace_, packed_;
  std::vector<cuda::KernelLaunch> launches_;
};

// The tests of every kernel (TEST_P; instantiated in tested_kernel.cpp). Skips where it does not
// run.
class EveryKernelOnGpu : public ::testing::TestWithParam<TestedKernel> {
 protected:
  void SetUp() override {
    DUALGEMM_NEEDS_GPU();
    if (!GetParam().runs_on(gpu_caps().compute_capability)) {
      GTEST_SKIP() << GetParam().name << " does not run on " << gpu_caps().name;
    }
  }
};

}  // namespace dualgemm::test
