#include "bench/probes/timing.hpp"

#include <algorithm>
#include <vector>

#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/graph_timer.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "tools/measure/median.hpp"

namespace dualgemm::bench {
namespace {

constexpr uint64_t kAheadClocks = 10000;  // for each launch that the host enqueues: some 5 us

class Events {
 public:
  static Expected<Events> make() {
    Events out;
    DUALGEMM_CUDA_TRY(cudaStreamCreateWithFlags(&out.stream, cudaStreamNonBlocking));
    DUALGEMM_CUDA_TRY(cudaEventCreate(&out.begin));
    DUALGEMM_CUDA_TRY(cudaEventCreate(&out.end));
    return out;
  }
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  Events& operator=(Events&&) = delete;
  Events(Events&& other) noexcept
      : stream(std::exchange(other.stream, nullptr)),
        begin(std::exchange(other.begin, nullptr)),
        end(std::exchange(other.end, nullptr)) {}
  ~Events() {
    for (cudaEvent_t event : {begin, end})
      if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
    if (stream != nullptr) static_cast<void>(cudaStreamDestroy(stream));
  }

  Expected<double> seconds(const cuda::KernelLaunch& before, const cuda::KernelLaunch& launch,
                           int calls) {
    DUALGEMM_TRY(cuda::enqueue(before, stream));
    DUALGEMM_CUDA_TRY(cudaEventRecord(begin, stream));
    for (int call = 0; call < calls; ++call) DUALGEMM_TRY(cuda::enqueue(launch, stream));
    DUALGEMM_CUDA_TRY(cudaEventRecord(end, stream));
    DUALGEMM_CUDA_TRY(cudaEventSynchronize(end));
    float milliseconds = 0.0f;
    DUALGEMM_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin, end));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

cuda::KernelLaunch spin_for(uint64_t clocks) {
  SpinParams spin{};
  spin.clocks = clocks;
  return spin_launch(spin, 1, 32, 0, false);
}

}  // namespace

Expected<double> seconds_in_graph(const cuda::KernelLaunch& launch, int calls, int rounds) {
  const auto seconds = cuda::time_graph(calls, rounds, [&](void* stream, int) {
    return cuda::enqueue(launch, static_cast<cudaStream_t>(stream));
  });
  if (!seconds) return seconds.status();
  return measure::median(*seconds);
}

Expected<double> seconds_in_stream(const cuda::KernelLaunch& launch, int calls, int rounds) {
  auto events = Events::make();
  if (!events) return events.status();
  std::vector<double> seconds;
  for (int round = -1; round < rounds; ++round) {  // one before them does not count
    const auto one =
        events->seconds(spin_for(kAheadClocks * (rounds == 1 ? 0 : calls)), launch, calls);
    if (!one) return one.status();
    if (round >= 0) seconds.push_back(*one / calls);
  }
  return measure::median(seconds);
}

Expected<double> median_clocks(const cuda::KernelLaunch& launch, const cuda::DeviceMemory& clocks,
                               int rounds) {
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    DUALGEMM_TRY(cuda::enqueue(launch, nullptr));
    DUALGEMM_TRY(cuda::synchronize(nullptr));
    uint64_t once = 0;
    DUALGEMM_TRY(clocks.download(&once));
    all.push_back(static_cast<double>(once));
  }
  return measure::median(std::move(all));
}

Expected<double> event_step(int rounds) {
  auto events = Events::make();
  if (!events) return events.status();
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto one = events->seconds(spin_for(0), spin_for(static_cast<uint64_t>(round) * 97), 1);
    if (!one) return one.status();
    seconds.push_back(*one);
  }
  std::sort(seconds.begin(), seconds.end());
  double step = 0.0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    const double difference = seconds[i] - seconds[i - 1];
    if (difference > 1e-9 && (step == 0.0 || difference < step)) step = difference;
  }
  return step;
}

}  // namespace dualgemm::bench
