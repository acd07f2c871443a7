#include "cuda/kernels/sm80/launch.hpp"

#include <fmt/format.h>

#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/sm80/params.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

constexpr int64_t kVectorBytes = 16;

constexpr int64_t kMaxR1Bytes = int64_t{1} << 40;  // far beyond any memory, and of an offset
constexpr int64_t kSectorFloats = 8;               // memory moves 32 bytes

using core::ceil_div;

int64_t r1_ld(const Problem& problem) { return core::round_up(problem.n, kSectorFloats); }

OperandView view_of(const core::ResolvedMatrix& matrix, const void* rows, const uint8_t* scales) {
  OperandView view{};
  view.rows = static_cast<const uint8_t*>(rows);
  view.row_bytes = core::bytes_of(matrix.type, matrix.ld);
  view.batch_bytes = core::bytes_of(matrix.type, matrix.batch_stride);
  if (matrix.type != DataType::kE2M1) return view;
  const bool swizzled = matrix.scale_layout == ScaleLayout::kSwizzled128x4;
  constexpr int64_t kScaleTileBytes = 512;  // 128 rows x 4 scales
  view.scales = {.bytes = scales,
                 .ld = swizzled ? ceil_div(matrix.sf_cols, 4) * kScaleTileBytes : matrix.scale_ld,
                 .batch_bytes = matrix.scale_batch_stride,
                 .swizzled = swizzled};
  return view;
}

bool is_aligned16(const OperandView& view) {
  return (reinterpret_cast<uintptr_t>(view.rows) | static_cast<uintptr_t>(view.row_bytes) |
          static_cast<uintptr_t>(view.batch_bytes)) %
             kVectorBytes ==
         0;
}

// With the narrow tiles.
Status check_group_tiles(const Problem& problem) {
  DUALGEMM_TRY(check_groups(problem));
  int64_t tiles = most_listed_tiles(problem, kGroupRows);  // below 2^59
  if (!__builtin_mul_overflow(tiles, ceil_div(problem.n, kMmaRows / 2), &tiles) &&
      tiles <= kMaxCtas) {
    return {};
  }
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "experts must have at most 2^31 - 1 tiles of 8 x 8");
}

}  // namespace

Status supports(const Problem& problem) {
  DUALGEMM_TRY(check_rows_type(problem));
  DUALGEMM_TRY(check_extents(problem));
  if (problem.grouping != Grouping::kNone) return check_group_tiles(problem);
  // The narrow tiles have 8 rows, at least 8 columns, and are chosen for at most 8 rows of A.
  int64_t tiles = ceil_div(problem.m, 64) * ceil_div(problem.n, kMmaRows / 2);  // below 2^53
  if (!__builtin_mul_overflow(tiles, problem.l, &tiles) && tiles <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^31 - 1 tiles of 64 x 8");
}

Status supports_r1(const Problem& problem) {
  int64_t elements = 0;
  if (!__builtin_mul_overflow(problem.m * problem.l, r1_ld(problem), &elements) &&
      elements <= kMaxR1Bytes / static_cast<int64_t>(sizeof(float))) {
    return {};
  }
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "the Gate product in FP32 must be at most 2^40 bytes");
}

int64_t r1_bytes(const Problem& problem) {
  return problem.l * problem.m * r1_ld(problem) * static_cast<int64_t>(sizeof(float));
}

bool is_for(const Config& config, const Problem& problem, Pass pass) {
  if (config.a_type != a_type_of(problem.a.type) || config.pass != pass) return false;
  return problem.d.type != DataType::kE2M1 || pass == Pass::kGate || writes_nvfp4(config);
}

const Instance* find_instance(const Problem& problem, int64_t tile_m, int64_t tile_n, Pass pass) {
  for (const Instance& instance : instances()) {
    const Config& config = instance.config;
    if (is_for(config, problem, pass) && config.tile_m == tile_m &&
        (tile_n == 0 || tile_n_of(config) == tile_n))
      return &instance;
  }
  return nullptr;
}

Pass fused_pass(const Problem& problem) {
  return problem.grouping == Grouping::kNone ? Pass::kFused : Pass::kGroups;
}

const Instance& choose_instance(const Problem& problem, Pass pass) {
  // The narrow tile for groups has 8 columns, half a block of NVFP4.
  const Instance* const narrow =
      usual_rows(problem) <= kGroupRows ? find_instance(problem, kGroupRows, 0, pass) : nullptr;
  return narrow != nullptr ? *narrow : *find_instance(problem, 64, 0, pass);
}

int64_t workspace_bytes(const Problem& problem, const Instance& instance) {
  if (problem.grouping == Grouping::kNone) return 0;
  return group_tiles_bytes(problem, instance.config.tile_m);
}

std::vector<KernelLaunch> build_fused(const core::ResolvedProblem& problem, const Buffers& buffers,
                                      void* workspace, const Instance& instance) {
  std::vector<KernelLaunch> launches;
  if (problem.problem.grouping != Grouping::kNone) {
    launches.push_back(
        group_tiles_launch(problem.problem, buffers, instance.config.tile_m, workspace));
  }
  launches.push_back(build_launch(problem, buffers, workspace, instance));
  return launches;
}

KernelLaunch build_launch(const core::ResolvedProblem& given, const Buffers& buffers,
                          void* workspace, const Instance& instance) {
  const core::ResolvedProblem problem = with_shared_rows(given);
  const Problem& p = problem.problem;
  const bool grouped = p.grouping != Grouping::kNone;
  Params params{};
  params.a = view_of(problem.a, buffers.a, buffers.a_scales);
  params.gate = view_of(problem.gate, buffers.gate, buffers.gate_scales);
  params.up = view_of(problem.up, buffers.up, buffers.up_scales);
  set_epilogue(problem, buffers, params);
  params.r1 = static_cast<float*>(workspace);
  params.r1_ld = r1_ld(p);
  params.output = output_type_of(p.d.type);
  params.aligned16 = is_aligned16(params.a) && is_aligned16(params.gate) && is_aligned16(params.up);
  params.k16 = static_cast<uint32_t>(p.k / 16);
  params.groups = group_tiles_of(p, buffers, workspace);
  params.row_index = row_index_of(p, buffers);
  const int64_t tile_m = instance.config.tile_m;
  const int64_t tiles_m = grouped ? most_group_tiles(p, tile_m) : ceil_div(p.m, tile_m) * p.l;
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, tile_m));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, tile_n_of(instance.config)));
  KernelLaunch launch{.kernel = {"dual_gemm_sm80", instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(tiles_m * params.tiles_n),
                      .threads = static_cast<uint32_t>(threads_of(instance.config))};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm80
