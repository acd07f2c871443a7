// What the fused kernel is compared with: cuBLASLt on weights that were decoded beforehand, and one
// kernel that activates. fp16: the exact values; E4M3: rounded to it with one scale a row.
#pragma once

#include <string>
#include <vector>

#include "bench/cuda/cold_sets.hpp"
#include "bench/cuda/lt_gemm.hpp"
#include "bench/cuda/stopwatch.hpp"

namespace dualgemm::bench {

// Decoded operands of one shape; A has rows for the largest m.
struct DecodedOperands {
  LtNumber number = LtNumber::kF16;
  int64_t n = 0, k = 0;
  ColdSets weights;  // each: Gate n x k, then Up n x k
  cuda::DeviceMemory a;
  cuda::DeviceMemory weight_scales, a_scales;  // E4M3: floats, [2n] and [m]
};

// `packed` and `problem` (with the largest m): NVFP4 in device memory, linear scales.
Expected<DecodedOperands> decode_operands(LtNumber number, const Problem& problem,
                                          const Buffers& packed, cudaStream_t stream);

// One way to compute D.
struct BaselinePath {
  std::string name;  // "two", "stacked"
  int algorithms_timed = 0;
  std::vector<int> best;  // of the algorithms, fastest first: at most two
};

class Baseline {
 public:
  static Expected<Baseline> make(LtContext& context, DecodedOperands& operands, int64_t m,
                                 float alpha, uint8_t* d, cuda::DeviceMemory& products);

  // Times all algorithms of both paths alone, and records the best with the activation.
  Status record(Stopwatch& stopwatch);

  struct Entry {
    std::string path;
    int algorithm;  // the heuristics' rank
    cuda::RecordedCalls recorded;
  };
  const std::vector<BaselinePath>& paths() const noexcept { return paths_; }
  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  Status multiply(bool stacked, int algorithm, int call, cudaStream_t stream);
  Status activate(bool stacked, cudaStream_t stream);
  Expected<BaselinePath> time_path(bool stacked, Stopwatch& stopwatch);

  DecodedOperands* operands_ = nullptr;
  int64_t m_ = 0;
  float alpha_ = 1.0f;
  uint8_t* d_ = nullptr;
  uint8_t* products_ = nullptr;  // fp16, m x 2n in all
  LtGemm single_, stacked_;
  std::vector<BaselinePath> paths_;
  std::vector<Entry> entries_;
};

}  // namespace dualgemm::bench
