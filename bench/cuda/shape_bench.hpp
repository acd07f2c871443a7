// One shape (n, k): operands once, then point after point of m, everything in the same rounds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/cuda/baseline.hpp"
#include "bench/cuda/nvml.hpp"
#include "bench/cuda/operands.hpp"
#include "bench/cuda/read_floor.hpp"

namespace dualgemm::bench {

// A strategy of the library on one type of A.
struct OurResult {
  // cuBLASLt's path rounds the products to fp16 before the activation: 2^-11 of each.
  static constexpr double kMaxDifference = 0.01;

  StrategyId strategy = StrategyId::kFused;
  DataType a = DataType::kE2M1;
  bool prepared = false;  // weights by prepare(), before the clock starts
  Status status;          // why there is no time
  std::string config;     // of the plan
  Timing timing;          // seconds per call
  double share = 0.0;     // of the oracle's bound, sampled; above 1: wrong
  double differs = 0.0;   // worst tile against cuBLASLt in fp16
  bool right() const { return status.ok() && share <= 1.0 && differs <= kMaxDifference; }
};

struct BaselineResult {
  Status status;
  std::vector<BaselinePath> paths;
  std::map<std::string, Timing> path_timings;  // of the best algorithm of each path
  std::string best_path;
  int best_algorithm = 0;  // the heuristics' rank
  Timing timing;           // of the best path
  double differs = 0.0;    // E4M3: worst tile against fp16
};

struct Point {
  int64_t m = 0;
  // fused on NVFP4 and on fp16; both again with prepared weights, where the GPU's kernels take
  // such; then what else was asked for.
  std::vector<OurResult> ours;
  BaselineResult f16, e4m3;
  Timing floor;
  int64_t floor_bytes = 0;
  cuda::ReadShape floor_shape;
  GpuState before, after;  // read in the rounds: at the end of the warm-up and of the last one
};

class ShapeBench {
 public:
  // max_m: the largest that will be measured. The three references must outlive the result.
  static Expected<std::unique_ptr<ShapeBench>> make(LtContext& context, Stopwatch& stopwatch,
                                                    const Nvml& nvml, int64_t n, int64_t k,
                                                    int64_t max_m);

  Expected<Point> measure(int64_t m, const std::vector<StrategyId>& more,
                          const RoundLimits& limits);

 private:
  struct OurRun;
  struct BaselineRun;
  ShapeBench(LtContext& context, Stopwatch& stopwatch, const Nvml& nvml)
      : context_(context), stopwatch_(stopwatch), nvml_(nvml) {}
  Status fill(int64_t n, int64_t k, int64_t max_m);
  Status upload_activations();
  Problem problem_of(int64_t m, DataType a) const;
  Buffers buffers_of(int call, DataType a);
  Status record(int64_t m, OurRun& run);
  Status prepare_weights(const Plan& plan, DataType a);
  std::vector<OurResult> contestants(const std::vector<StrategyId>& more) const;
  Status record(int64_t m, BaselineRun& run);
  Status judge(int64_t m, const std::vector<uint16_t>& expected, OurRun& run);
  Expected<std::vector<uint16_t>> output_of(const cuda::RecordedCalls& recorded, int64_t m);
  Status time_all(const RoundLimits& limits, std::vector<OurRun>& ours,
                  const std::vector<BaselineRun*>& baselines, Point& point);

  LtContext& context_;
  Stopwatch& stopwatch_;
  const Nvml& nvml_;
  Problem largest_;
  HostOperands host_;
  ColdWeights packed_;
  DecodedOperands f16_, e4m3_;
  cuda::DeviceMemory a_, a_scales_, d_, products_;
  ReadFloor floor_;
  // The prepared weights of each strategy that was measured with them, for every m: as many as make
  // cold sets.
  std::map<StrategyId, std::vector<PreparedWeights>> prepared_;
};

}  // namespace dualgemm::bench
