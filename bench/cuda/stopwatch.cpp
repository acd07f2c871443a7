#include "bench/cuda/stopwatch.hpp"

#include <algorithm>
#include <numeric>

#include "cuda/kernels/common/read_bytes.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::bench {
namespace {

constexpr int64_t kSpacerBytes = int64_t{512} << 20;
constexpr int kWarmUps = 2;

}  // namespace

Expected<Stopwatch> Stopwatch::make() {
  Stopwatch out;
  cudaStream_t stream = nullptr;
  DUALGEMM_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  out.stream_.reset(stream);
  for (auto* event : {&out.begin_, &out.end_}) {
    cudaEvent_t made = nullptr;
    DUALGEMM_CUDA_TRY(cudaEventCreate(&made));
    event->reset(made);
  }
  auto spacer = cuda::DeviceMemory::allocate(kSpacerBytes + 256, "spacer");
  if (!spacer) return spacer.status();
  out.spacer_ = *std::move(spacer);
  const Expected<DeviceCaps> caps = cuda::detect_device_caps();
  if (!caps) return caps.status();
  out.num_sms_ = caps->num_sms;
  return out;
}

Expected<double> Stopwatch::seconds_per_call(const cuda::RecordedCalls& recorded,
                                             const std::function<void()>& meanwhile) {
  const cuda::ReadBytesParams read{spacer_.data(), kSpacerBytes,
                                   reinterpret_cast<uint32_t*>(spacer_.data() + kSpacerBytes)};
  DUALGEMM_TRY(cuda::enqueue(cuda::read_bytes_launch(read, num_sms_), stream()));
  DUALGEMM_CUDA_TRY(cudaEventRecord(begin_.get(), stream()));
  DUALGEMM_TRY(recorded.replay(stream()));
  DUALGEMM_CUDA_TRY(cudaEventRecord(end_.get(), stream()));
  if (meanwhile) meanwhile();
  DUALGEMM_CUDA_TRY(cudaEventSynchronize(end_.get()));
  float milliseconds = 0.0f;
  DUALGEMM_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
  return static_cast<double>(milliseconds) * 1e-3 / recorded.calls();
}

Timing timing_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const size_t last = seconds.size() - 1;
  return {.median = 0.5 * (seconds[last / 2] + seconds[(last + 1) / 2]),
          .p90 = seconds[(9 * last + 5) / 10],
          .min = seconds.front(),
          .rounds = static_cast<int>(seconds.size())};
}

Expected<std::vector<Timing>> time_in_turn(Stopwatch& stopwatch,
                                           std::span<const cuda::RecordedCalls* const> recorded,
                                           const RoundLimits& limits,
                                           const std::function<void()>& meanwhile) {
  std::vector<std::vector<double>> seconds(recorded.size());
  std::vector<size_t> order(recorded.size());
  std::iota(order.begin(), order.end(), size_t{0});
  double one_round = 0.0;
  int rounds = limits.min_rounds;
  for (int round = -kWarmUps; round < rounds; ++round) {
    const bool watched = meanwhile && (round == -1 || round == rounds - 1);
    one_round = 0.0;
    for (const size_t i : order) {
      const auto one = stopwatch.seconds_per_call(
          *recorded[i], watched && i == order.back() ? meanwhile : std::function<void()>());
      if (!one) return one.status();
      one_round += *one * recorded[i]->calls() + 150e-6;  // the spacer and the host
      if (round >= 0) seconds[i].push_back(*one);
    }
    std::reverse(order.begin(), order.end());
    if (round == -1) {
      rounds = std::clamp(static_cast<int>(limits.seconds / one_round), limits.min_rounds,
                          std::max(limits.min_rounds, limits.max_rounds));
    }
  }
  std::vector<Timing> timings;
  for (std::vector<double>& of_one : seconds) timings.push_back(timing_of(std::move(of_one)));
  return timings;
}

}  // namespace dualgemm::bench
