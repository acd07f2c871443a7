#include "tools/cli/commands/bench_limits.hpp"

#include <algorithm>
#include <limits>

namespace dualgemm::cli {
namespace {

// Up to here the weights' traffic matters, and reading them from a cache would flatter.
constexpr int64_t kRotateBelowM = 32;
constexpr int64_t kMaxOperandSets = 6;
constexpr int64_t kMaxDeviceOperandSets = 64;
constexpr int64_t kBeyondCache =
    2;  // times the cache: what is left of it from the last turn hardly helps

double bandwidth_limit(double gbps, bool from_memory) {
  return from_memory ? gbps : std::numeric_limits<double>::infinity();
}

}  // namespace

Rotation rotation_for(const Problem& problem, const OperandSizes& sizes, int64_t cache_bytes,
                      bool gpu) {
  const int64_t weights = sizes.gate + sizes.gate_scales + sizes.up + sizes.up_scales;
  Rotation rotation;
  if (problem.m <= kRotateBelowM || gpu) {
    const int64_t wanted = 3 * cache_bytes / std::max<int64_t>(weights, 1) + 1;
    rotation.sets = std::clamp<int64_t>(wanted, 1, gpu ? kMaxDeviceOperandSets : kMaxOperandSets);
  }
  const double all = static_cast<double>(rotation.sets) *
                     (static_cast<double>(weights) + static_cast<double>(sizes.a));
  rotation.from_memory = all > static_cast<double>(kBeyondCache * cache_bytes);
  return rotation;
}

double measure::Peaks::*arithmetic_peak(Isa isa, DataType a_type) {
  const bool int8 = a_type == DataType::kE2M1;
  if (isa == Isa::kAvx2)
    return int8 ? &measure::Peaks::avx2_dot_gops : &measure::Peaks::fma_ymm_gflops;
  if (isa == Isa::kAmxBf16 && int8) return &measure::Peaks::amx_bf16_gflops;
  const bool pairs = isa == Isa::kAmxBf16 || isa == Isa::kAvx512Bf16;
  if (pairs && a_type == DataType::kBF16) return &measure::Peaks::bf16_zmm_gflops;
  if (pairs || isa == Isa::kAvx512Vnni)
    return int8 ? &measure::Peaks::vnni_zmm_gops : &measure::Peaks::fma_zmm_gflops;
  if (isa == Isa::kNeon || isa == Isa::kNeonI8mm) {
    if (!int8) return &measure::Peaks::fma_neon_gflops;
    return isa == Isa::kNeon ? &measure::Peaks::sdot_gops : &measure::Peaks::smmla_gops;
  }
  return nullptr;
}

bool is_limit(double measure::Peaks::*peak, const Problem& problem, Isa isa, bool from_memory) {
  double measure::Peaks::*const arithmetic = arithmetic_peak(isa, problem.a.type);
  if (arithmetic == nullptr) return false;
  return peak == arithmetic || (from_memory && peak == &measure::Peaks::read_gbps);
}

measure::MachineLimits limits_of(const measure::Peaks& peaks, const Problem& problem, Isa isa,
                                 bool from_memory) {
  double measure::Peaks::*const peak = arithmetic_peak(isa, problem.a.type);
  if (peak == nullptr) return {};
  return {peaks.*peak, bandwidth_limit(peaks.read_gbps, from_memory)};
}

measure::MachineLimits limits_of(const verify::DevicePeaks& peaks, StrategyId strategy, Isa isa,
                                 bool from_memory) {
  if (isa == Isa::kSm100a) return {};  // NVFP4 tensor cores have no measured peak
  return {strategy == StrategyId::kFp8 ? peaks.e4m3_gflops : peaks.f16_gflops,
          bandwidth_limit(peaks.read_gbps, from_memory)};
}

}  // namespace dualgemm::cli
