#include "bench/cuda/read_floor.hpp"

#include "cuda/kernels/portable/read_bytes.hpp"

namespace dualgemm::bench {
namespace {

constexpr int kTrialReplays = 5;  // of each shape, after one that does not count
// CTAs of 512 threads for each SM; 4 are there at a time. A thread reads 16 bytes eight times.
constexpr int kCtasPerSm[] = {1, 2, 3, 4, 8, 16};
constexpr int64_t kCtaBytes = int64_t{512} * 16 * 8;

}  // namespace

Expected<ReadFloor> make_read_floor(ColdSets& sets, uint8_t* sum, int num_sms,
                                    Stopwatch& stopwatch) {
  std::vector<uint32_t> shapes;
  for (const int ctas : kCtasPerSm) shapes.push_back(static_cast<uint32_t>(ctas * num_sms));
  // As many as read all bytes in one go, or in two.
  const auto whole = static_cast<uint32_t>((sets.set_bytes() + kCtaBytes - 1) / kCtaBytes);
  shapes.push_back(whole), shapes.push_back((whole + 1) / 2);
  ReadFloor best;
  double best_seconds = 0.0;
  for (const uint32_t ctas : shapes) {
    auto recorded =
        cuda::RecordedCalls::record(sets.calls(), stopwatch.stream(), [&](void* stream, int call) {
          cuda::KernelLaunch launch = cuda::read_bytes_launch(
              {sets.of_call(call), sets.set_bytes() / 16 * 16, reinterpret_cast<uint32_t*>(sum)},
              num_sms);
          launch.ctas = ctas;
          return cuda::enqueue(launch, static_cast<cudaStream_t>(stream));
        });
    if (!recorded) return recorded.status();
    std::vector<double> seconds;
    for (int replay = -1; replay < kTrialReplays; ++replay) {
      const auto one = stopwatch.seconds_per_call(*recorded);
      if (!one) return one.status();
      if (replay >= 0) seconds.push_back(*one);
    }
    const double median = timing_of(std::move(seconds)).median;
    if (best.ctas != 0 && median >= best_seconds) continue;
    best_seconds = median;
    best = {*std::move(recorded), sets.set_bytes(), ctas};
  }
  return best;
}

}  // namespace dualgemm::bench
