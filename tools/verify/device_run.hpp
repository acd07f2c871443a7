// A problem whose operands lie in host memory, run on a GPU: copies there and back, and timing.
#pragma once

#include <memory>
#include <vector>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::verify {

// What the current GPU does at best, measured; 0 = not on this GPU.
struct DevicePeaks {
  double f16_gflops = 0.0, e4m3_gflops = 0.0;  // of cuBLASLt, 8192^3
  double read_gbps = 0.0;
};
Expected<DevicePeaks> measure_device_peaks();

// The instruction sets of a GPU of this compute capability (10 * major + minor); none without CUDA.
std::vector<Isa> isas_of_gpu(int compute_capability);

// What a plan should take on a described GPU, in microseconds, and where nine of ten times should
// lie; 0: no model knows its kernel, or the GPU. No measurement.
struct PredictedTime {
  double us = 0, low = 0, high = 0;
};
PredictedTime predicted_time(const Plan& plan, const DeviceCaps& caps);

class DeviceRun {
 public:
  DeviceRun() noexcept;
  ~DeviceRun();
  DeviceRun(DeviceRun&&) noexcept;
  DeviceRun& operator=(DeviceRun&&) noexcept;

  // Copies the operands of `host`, and D as it is, to the current GPU, allocates the workspace, and
  // prepares the weights if the plan says so.
  // Precondition: plan.device == kCuda, validated buffers; A's scales of contiguous groups linear,
  // or as large as operand_sizes() says.
  static Expected<DeviceRun> make(const Plan& plan, const Buffers& host);

  // Runs, waits, and copies D back to the host's.
  Status run(const Buffers& host, RunInfo* info);

  // Seconds per run: a CUDA graph of `calls` runs, which take the elements of `runs` in turn,
  // replayed `replays` times.
  static Expected<std::vector<double>> time(std::vector<DeviceRun*> runs, int calls, int replays);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dualgemm::verify
