// What the programs of scripts/clock_programs share: buffers of random numbers, and the time of a
// launch.
//   PROGRAM SIZE... [--launch | --time | --graph]
// By itself: one launch, whose results are checked in a few places; with --launch they are not.
// With --time: launches of a stream in a row, cold, as copies of the buffers that together exceed
// L2 several times take turns; the median of nine rows, in us a launch, goes to stdout. With
// --graph: the same launches as a graph.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace program {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

struct Options {
  std::vector<int> sizes;
  bool time = false, graph = false, check = true;
};

inline Options parse(int argc, char** argv, size_t sizes, const char* usage) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--time") == 0)
      options.time = true;
    else if (std::strcmp(argv[i], "--graph") == 0)
      options.time = options.graph = true;
    else if (std::strcmp(argv[i], "--launch") == 0)
      options.check = false;
    else
      options.sizes.push_back(std::atoi(argv[i]));
  }
  if (options.sizes.size() != sizes) {
    std::fprintf(stderr, "usage: %s %s [--launch | --time | --graph]\n", argv[0], usage);
    std::exit(2);
  }
  return options;
}

// Sums of four random bytes, -2 to 2, nearly normal: a GPU's power depends on its numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    const auto bits = static_cast<uint32_t>(state_ >> 32);
    const uint32_t sum = (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24);
    return (static_cast<float>(sum) - 510) / 255;
  }

 private:
  uint64_t state_;
};

inline std::vector<__half> random_halves(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<__half> values(count);
  for (__half& value : values) value = __float2half(random.next());
  return values;
}

// Device memory of the whole program.
inline std::vector<void*>& memory() {
  static struct Memory {
    std::vector<void*> list;
    ~Memory() {
      for (void* address : list) cudaFree(address);
    }
  } all;
  return all.list;
}

template <class T>
T* room_for(size_t count) {
  void* address = nullptr;
  check(cudaMalloc(&address, count * sizeof(T)), "cudaMalloc");
  memory().push_back(address);
  return static_cast<T*>(address);
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* address = room_for<T>(values.size());
  check(cudaMemcpy(address, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  return address;
}

template <class T>
std::vector<T> from_device(const T* memory, size_t count) {
  std::vector<T> values(count);
  check(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return values;
}

constexpr uint64_t kColdBytes = uint64_t{512} << 20;

inline size_t copies_of(uint64_t bytes) {
  return std::clamp<size_t>(kColdBytes / bytes + 1, 2, 64);
}

// us of each launch of `launch(copy, stream)`, which go through the copies in turn.
inline double time_of(const Options& options, size_t copies,
                      const std::function<void(size_t, cudaStream_t)>& launch) {
  constexpr double kRowUs = 20000;
  constexpr int kRows = 9, kMostRounds = 100;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  const auto enqueue = [&](int rounds) {
    for (int round = 0; round < rounds; ++round)
      for (size_t copy = 0; copy < copies; ++copy) launch(copy, stream);
  };
  const auto us_of = [&](int rounds, const std::function<void()>& row) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    row();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaStreamSynchronize(stream), "the kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    return 1e3 * ms / (static_cast<double>(rounds) * static_cast<double>(copies));
  };
  const auto direct = [&] { enqueue(1); };
  us_of(1, direct);  // warms up
  const double once = us_of(1, direct) * static_cast<double>(copies);
  const int rounds = std::clamp(static_cast<int>(kRowUs / once), 1, kMostRounds);
  std::function<void()> row = [&] { enqueue(rounds); };
  if (options.graph) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    enqueue(rounds);
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    row = [executable, stream] { check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch"); };
    us_of(rounds, row);
  }
  std::vector<double> times(kRows);
  for (double& time : times) time = us_of(rounds, row);
  std::sort(times.begin(), times.end());
  return times[kRows / 2];
}

}  // namespace program
