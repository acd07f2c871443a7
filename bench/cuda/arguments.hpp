// The command line of bench_cuda, checked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/stopwatch.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::bench {

struct Arguments {
  std::vector<std::pair<int64_t, int64_t>> shapes{
      {4096, 7168}, {3072, 7168}, {3072, 4096}, {14336, 4096}};  // n, k
  std::vector<int64_t> m{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<StrategyId> strategies;  // besides fused
  RoundLimits limits;
  std::string json;  // path, or empty
  bool help = false;
};

// An error is one line.
Expected<Arguments> parse_arguments(int argc, const char* const* argv);
std::string help_text();

}  // namespace dualgemm::bench
