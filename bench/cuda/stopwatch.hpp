// Times recorded calls on the GPU, several of them in turn.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/recorded_calls.hpp"

namespace dualgemm::bench {

class Stopwatch {
 public:
  static Expected<Stopwatch> make();

  cudaStream_t stream() const noexcept { return stream_.get(); }

  // One replay, divided by its calls. A read of 512 MiB goes before it: while that runs, the host
  // has time to enqueue the graph, which then begins without a gap, and L2 is the same for all.
  // `meanwhile` runs on the host while the GPU works.
  Expected<double> seconds_per_call(const cuda::RecordedCalls& recorded,
                                    const std::function<void()>& meanwhile = {});

 private:
  template <class Handle, cudaError_t (*kDestroy)(Handle)>
  struct Destroy {
    using pointer = Handle;
    void operator()(Handle handle) const noexcept { static_cast<void>(kDestroy(handle)); }
  };
  std::unique_ptr<CUstream_st, Destroy<cudaStream_t, cudaStreamDestroy>> stream_;
  std::unique_ptr<CUevent_st, Destroy<cudaEvent_t, cudaEventDestroy>> begin_, end_;
  cuda::DeviceMemory spacer_;
  int num_sms_ = 0;
};

// Statistics of the seconds per call over all rounds.
struct Timing {
  double median = 0.0, p90 = 0.0, min = 0.0;
  int rounds = 0;
};
Timing timing_of(std::vector<double> seconds);

struct RoundLimits {
  double seconds = 0.5;  // to measure for, all together
  int min_rounds = 7, max_rounds = 41;
};

// Replays all of them in turn, in the reverse order every other round, so that a warm or throttled
// GPU hurts all alike. Two rounds before do not count; `meanwhile` runs during the last one of them
// and during the last round.
Expected<std::vector<Timing>> time_in_turn(Stopwatch& stopwatch,
                                           std::span<const cuda::RecordedCalls* const> recorded,
                                           const RoundLimits& limits,
                                           const std::function<void()>& meanwhile = {});

}  // namespace dualgemm::bench
