#include "bench/cuda/read_floor.hpp"

#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::bench {
namespace {

constexpr int kReadReplays = 5;  // of each shape, after one that does not count
constexpr int kThreads[] = {256, 512, 1024};
constexpr int kMostCtasPerSm = 8;

std::vector<cuda::ReadShape> shapes() {
  std::vector<cuda::ReadShape> all;
  for (const int loads : cuda::read_loads()) {
    for (const int threads : kThreads) {
      if (threads > cuda::max_read_threads(loads)) continue;
      for (int ctas = 1; ctas <= kMostCtasPerSm; ++ctas) all.push_back({threads, loads, ctas});
    }
  }
  return all;
}

}  // namespace

Expected<ReadFloor> make_read_floor(ColdSets& sets, uint8_t* sum, int num_sms,
                                    Stopwatch& stopwatch) {
  ReadFloor best;
  double best_seconds = 0.0;
  for (const cuda::ReadShape& shape : shapes()) {
    auto recorded =
        cuda::RecordedCalls::record(sets.calls(), stopwatch.stream(), [&](void* stream, int call) {
          const cuda::KernelLaunch launch = cuda::read_bytes_launch(
              {sets.of_call(call), sets.set_bytes() / 16 * 16, reinterpret_cast<uint32_t*>(sum)},
              num_sms, shape);
          return cuda::enqueue(launch, static_cast<cudaStream_t>(stream));
        });
    if (!recorded) return recorded.status();
    std::vector<double> seconds;
    for (int replay = -1; replay < kReadReplays; ++replay) {
      const auto one = stopwatch.seconds_per_call(*recorded);
      if (!one) return one.status();
      if (replay >= 0) seconds.push_back(*one);
    }
    const double median = timing_of(std::move(seconds)).median;
    if (best.bytes != 0 && median >= best_seconds) continue;
    best_seconds = median;
    best = {*std::move(recorded), sets.set_bytes(), shape};
  }
  return best;
}

}  // namespace dualgemm::bench
