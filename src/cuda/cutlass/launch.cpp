#include "cuda/cutlass/launch.hpp"

#include <fmt/format.h>

#include "core/arena.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::gated {
namespace {

using core::round_up;

constexpr int64_t kWorkspaceAlignment = 64;  // what the library's interface promises
constexpr int64_t kMaxWeightRows = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxCtasBeside = 65535;                    // of a grid along y and z
constexpr int64_t kMaxScaleStride = (int64_t{1} << 31) - 1;  // CUTLASS counts in 32 bits
constexpr int64_t kCodesMultiple = 32;                       // of k, as CUTLASS's loads want it

// Rows that end within 16 bytes are read to their end: the padding must belong to the row.
bool a_needs_copy(const core::ResolvedProblem& problem) {
  return data_needs_copy(problem.a, problem.problem.l) || problem.a.cols % kCodesMultiple != 0;
}

// Tight, without a header.
int64_t scale_bytes_of(const core::ResolvedMatrix& matrix) {
  return swizzled_scale_bytes(matrix.rows, matrix.sf_cols);
}

InterleaveParams::Source source_of(const core::ResolvedMatrix& matrix, const void* codes,
                                   const uint8_t* scales) {
  const bool swizzled = matrix.scale_layout == ScaleLayout::kSwizzled128x4;
  return {static_cast<const uint8_t*>(codes),
          matrix.ld / 2,
          matrix.batch_stride / 2,
          scales,
          swizzled ? 0 : matrix.scale_ld,
          matrix.scale_batch_stride};
}

// A stride that is never used must be legal all the same.
Operand a_of(const TmaOperand& a, int64_t batches, const uint8_t* memory) {
  const core::ResolvedMatrix& matrix = *a.matrix;
  const bool copied = a.data_copy != kNoCopy, scales_copied = a.scale_copy != kNoCopy;
  const int64_t row_bytes = copied || matrix.rows == 1 ? copied_row_bytes(matrix) : matrix.ld / 2;
  return {copied ? memory + a.data_copy : static_cast<const uint8_t*>(a.data), row_bytes,
          copied || batches == 1 ? row_bytes * matrix.rows : matrix.batch_stride / 2,
          scales_copied ? memory + a.scale_copy : a.scales,
          scales_copied || batches == 1 ? scale_bytes_of(matrix) : matrix.scale_batch_stride};
}

}  // namespace

Status supports(const Problem& problem) {
  if (problem.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", dualgemm::name_of(problem.grouping),
                               "the CUTLASS kernels take none");
  }
  if (problem.combine != Combine::kGlu) {
    return Status::unsupported("combine", dualgemm::name_of(problem.combine),
                               "the CUTLASS kernels write glu");
  }
  if (problem.a.type != DataType::kE2M1) {
    return Status::unsupported("a.type", dualgemm::name_of(problem.a.type),
                               "the CUTLASS kernels take e2m1");
  }
  if (problem.d.type == DataType::kE2M1) {
    return Status::unsupported("d.type", dualgemm::name_of(problem.d.type),
                               "the CUTLASS kernels write f16, bf16 or f32");
  }
  DUALGEMM_TRY(check_extents(problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_strides("a", resolved.a));
  const WeightLayout weights = weight_layout(problem.n, problem.k);
  if (weights.rows() > kMaxWeightRows || weights.tiles > kMaxCtasBeside ||
      problem.l > kMaxCtasBeside) {
    return Status::unsupported("n, l", fmt::format("{}, {}", problem.n, problem.l),
                               "must be at most 65535 tiles of 128 columns, and as many batches");
  }
  if (problem.l > 1 && (weights.bytes() > kMaxScaleStride - 1024 ||
                        resolved.a.scale_batch_stride > kMaxScaleStride)) {
    return Status::unsupported("n, k", fmt::format("{}, {}", problem.n, problem.k),
                               "batches of CUTLASS must be below 2^31 bytes apart");
  }
  return {};
}

Status suits(const Instance& instance, const Problem& problem) {
  if (instance.any_epilogue) return {};
  if (problem.act.kind != ActivationKind::kSilu) {
    return Status::unsupported("act.kind", dualgemm::name_of(problem.act.kind),
                               "the visitor tree computes silu");
  }
  if (problem.d.type != DataType::kF16) {
    return Status::unsupported("d.type", dualgemm::name_of(problem.d.type),
                               "the visitor tree writes f16");
  }
  if (problem.bias == BiasType::kNone) return {};
  return Status::unsupported("bias", dualgemm::name_of(problem.bias), "the visitor tree adds none");
}

int choose_tile_m(const Problem& problem, bool has_pairs) {
  return problem.m > kHalfTile && has_pairs ? 2 * kHalfTile : kHalfTile;
}

Workspace plan_workspace(const core::ResolvedProblem& problem, bool unaligned, bool prepared) {
  const int64_t batches = problem.problem.l;
  core::Arena arena(nullptr, kWorkspaceAlignment);
  Workspace workspace;
  if (unaligned || a_needs_copy(problem)) {
    workspace.a = arena.take_offset(copied_row_bytes(problem.a) * problem.a.rows * batches);
  }
  if (unaligned || !swizzled_scales_suit(problem.a, batches)) {
    workspace.sf_a = arena.take_offset(scale_bytes_of(problem.a) * batches);
  }
  if (!prepared) {
    workspace.weights =
        arena.take_offset(weight_layout(problem.problem.n, problem.problem.k).bytes() * batches);
  }
  workspace.bytes = arena.used();
  return workspace;
}

KernelLaunch interleave_weights(const core::ResolvedProblem& problem, const Buffers& buffers,
                                uint8_t* out, int64_t expert_bytes) {
  const Problem& p = problem.problem;
  return interleave_launch({source_of(problem.gate, buffers.gate, buffers.gate_scales),
                            source_of(problem.up, buffers.up, buffers.up_scales), out, expert_bytes,
                            weight_layout(p.n, p.k), p.n, p.k, p.l});
}

Expected<Launches> build_launches(const core::ResolvedProblem& problem, const Buffers& buffers,
                                  const Weights& prepared, const Workspace& workspace, void* memory,
                                  const Instance& instance, EncodeTiled encode_tiled) {
  const Problem& p = problem.problem;
  auto* const base = static_cast<uint8_t*>(memory);
  TmaOperand a{"a",         "a_scales",    &problem.a, buffers.a, buffers.a_scales,
               workspace.a, workspace.sf_a};
  DUALGEMM_TRY(settle_copy(a.name, a.data, a_needs_copy(problem), &a.data_copy));
  DUALGEMM_TRY(
      settle_copy(a.scales_name, a.scales, !swizzled_scales_suit(problem.a, p.l), &a.scale_copy));
  Launches launches;
  add_copies(a, p.l, base, launches.copies);

  const WeightLayout layout = weight_layout(p.n, p.k);
  Weights weights = prepared;
  if (weights.first == nullptr) {
    uint8_t* const out = base + workspace.weights;
    weights = {out, layout.bytes()};
    launches.copies.push_back(interleave_weights(problem, buffers, out, weights.expert_bytes));
  }
  Gemm gemm{.m = static_cast<int32_t>(p.m),
            .k = static_cast<int32_t>(round_up(p.k, kCodesMultiple)),
            .l = static_cast<int32_t>(p.l),
            .weight_rows = static_cast<int32_t>(layout.rows()),
            .a = a_of(a, p.l, base),
            .weights = {weights.first, layout.row_bytes, weights.expert_bytes,
                        weights.first + layout.code_bytes(), weights.expert_bytes},
            .epilogue = {}};
  set_epilogue(problem, buffers, gemm.epilogue);
  gemm.epilogue.output = output_type_of(p.d.type);
  const Expected<GridLaunch> launch = instance.launch(gemm, encode_tiled);
  if (!launch) return launch.status();
  launches.gemm = *launch;
  return launches;
}

}  // namespace dualgemm::cuda::gated
