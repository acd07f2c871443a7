#include "plan/thread_count.hpp"

#include <algorithm>

#include "core/problem.hpp"

namespace dualgemm::plan {
namespace {

// GOP/s of one core, a multiply and an add counted as two, with operands in the cache.
double giga_ops_a_second(StrategyId strategy, Isa isa, DataType activation) noexcept {
  const bool quantised_activation = activation == DataType::kE2M1;
  if (strategy == StrategyId::kReference) return 0.5;
  if (strategy == StrategyId::kFp8) return isa == Isa::kScalar ? 2.0 : 40.0;
  switch (isa) {
    case Isa::kAmxBf16:
      if (quantised_activation) return 400.0;
      [[fallthrough]];
    case Isa::kAvx512Bf16:
      if (activation == DataType::kBF16) return 160.0;
      [[fallthrough]];
    case Isa::kAvx512Vnni:
      return quantised_activation ? 250.0 : 80.0;
    case Isa::kAvx2:
      return quantised_activation ? 150.0 : 50.0;
    // Counted, not measured: two vector pipes at 3 GHz, 128 operations in 7 instructions (sdot), in
    // 5 (smmla), 8 in 17/16 of one (FP32); src/cpu/isa/neon.cpp.
    case Isa::kNeonI8mm:
      if (quantised_activation) return 150.0;
      [[fallthrough]];
    case Isa::kNeon:
      return quantised_activation ? 110.0 : 45.0;
    default:
      return 2.0;
  }
}

constexpr double kWeightGigabytesASecond = 20.0;  // read and unpacked by one core

}  // namespace

double one_thread_microseconds(const Problem& problem, StrategyId strategy, Isa isa) noexcept {
  const double weights = 2.0 * static_cast<double>(problem.l) * static_cast<double>(problem.n) *
                         static_cast<double>(problem.k);
  const double bytes = weights * (0.5 + 1.0 / kSfVec);
  const double rate = giga_ops_a_second(strategy, isa, problem.a.type);
  return (core::flops(problem) / rate + bytes / kWeightGigabytesASecond) * 1e-3;
}

int worthwhile_threads(const Problem& problem, StrategyId strategy, Isa isa, int cores) noexcept {
  const double threads = one_thread_microseconds(problem, strategy, isa) / kThreadMicroseconds;
  return static_cast<int>(std::clamp(threads, 1.0, static_cast<double>(std::max(cores, 1))));
}

}  // namespace dualgemm::plan
