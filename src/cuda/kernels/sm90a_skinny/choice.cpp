// Which problems the kernel takes, with which instance.
#include <fmt/format.h>

#include <algorithm>

#include "cuda/kernels/sm90a/extents.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "cuda/kernels/sm90a_skinny/operand_a.hpp"

namespace dualgemm::cuda::sm90a_skinny {
namespace {

AType a_type_of(DataType type) {
  return type == DataType::kE2M1  ? AType::kE2M1
         : type == DataType::kF16 ? AType::kF16
                                  : AType::kBF16;
}

Status check_stride(const char* name, int64_t bytes, int64_t alignment) {
  if (bytes % alignment == 0) return {};
  return Status::unsupported(name, fmt::format("a stride of {} bytes", bytes),
                             fmt::format("must be a multiple of {} for this kernel", alignment));
}

Status check_weight(const char* name, const char* scales_name, const core::ResolvedMatrix& matrix) {
  DUALGEMM_TRY(check_stride(name, matrix.ld / 2, kCodeAlignment));
  DUALGEMM_TRY(check_stride(name, matrix.batch_stride / 2, kCodeAlignment));
  DUALGEMM_TRY(check_stride(scales_name, matrix.scale_batch_stride, kScaleAlignment));
  if (matrix.scale_layout == ScaleLayout::kSwizzled128x4) return {};
  return check_stride(scales_name, matrix.scale_ld, kScaleAlignment);
}

}  // namespace

Status supports(const Problem& problem) {
  DUALGEMM_TRY(sm90a::supports(problem));
  if (problem.m > kTokens) {
    return Status::unsupported("m", std::to_string(problem.m),
                               fmt::format("must be at most {} for this kernel", kTokens));
  }
  if (problem.k % kStepK != 0) {
    return Status::unsupported("k", std::to_string(problem.k),
                               fmt::format("must be a multiple of {} for this kernel", kStepK));
  }
  const core::ResolvedProblem resolved = core::resolve(problem);
  const int64_t alignment = a_alignment(problem.a.type);
  DUALGEMM_TRY(check_stride("a", core::bytes_of(problem.a.type, resolved.a.ld), alignment));
  DUALGEMM_TRY(
      check_stride("a", core::bytes_of(problem.a.type, resolved.a.batch_stride), alignment));
  DUALGEMM_TRY(check_weight("gate", "gate_scales", resolved.gate));
  return check_weight("up", "up_scales", resolved.up);
}

const Instance* find_instance(DataType a_type, int64_t cols) {
  for (const Instance& instance : instances()) {
    if (instance.config.a_type == a_type_of(a_type) && cols_of(instance.config) == cols)
      return &instance;
  }
  return nullptr;
}

// The tile that leaves the least to the busiest CTA: its columns and, once a tile, the decoding of
// a, as much as half a unit.
const Instance& choose_instance(const Problem& problem, int num_sms) {
  const Instance* best = nullptr;
  int64_t least = 0;
  for (const Instance& instance : instances()) {
    if (instance.config.a_type != a_type_of(problem.a.type)) continue;
    const int64_t tiles = sm90a::ceil_div(problem.n, cols_of(instance.config)) * problem.l;
    const int64_t cost = sm90a::ceil_div(tiles, num_sms) * (2 * instance.config.units + 1);
    if (best == nullptr || cost <= least) best = &instance, least = cost;
  }
  return *best;
}

int64_t ctas_for(const Problem& problem, const Config& config, int64_t most) {
  return std::min(sm90a::ceil_div(problem.n, cols_of(config)) * problem.l, most);
}

}  // namespace dualgemm::cuda::sm90a_skinny
