#include "cuda/strategies/gemm_work.hpp"

#include <string>

#include "cuda/kernels/common/join.hpp"
#include "cuda/kernels/common/nvfp4_source.hpp"
#include "cuda/kernels/convert/dequantize.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/convert/requantize.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "plan/prepared_bytes.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int64_t kRowAlignment = 16;  // bytes; of what cuBLASLt reads

using core::round_up;

int64_t bytes_of_values(GemmNumber number, int64_t count) noexcept {
  if (number == GemmNumber::kNvfp4) return count / 2;
  return number == GemmNumber::kE4M3 ? count : 2 * count;
}
int64_t values_of_bytes(GemmNumber number, int64_t bytes) noexcept {
  if (number == GemmNumber::kNvfp4) return 2 * bytes;
  return number == GemmNumber::kE4M3 ? bytes : bytes / 2;
}

PreparedFormat prepared_format(GemmNumber number) noexcept {
  constexpr PreparedFormat kFormats[] = {PreparedFormat::kGpuF16, PreparedFormat::kGpuBF16,
                                         PreparedFormat::kGpuE4M3, PreparedFormat::kGpuNvfp4};
  return kFormats[static_cast<size_t>(number)];
}

OutputType half_of(GemmNumber number) noexcept {
  return number == GemmNumber::kBF16 ? OutputType::kBF16 : OutputType::kF16;
}

HalfSource half_source(const core::ResolvedMatrix& matrix, const void* values) noexcept {
  return {.values = static_cast<const uint8_t*>(values),
          .row_bytes = matrix.row_bytes(),
          .batch_bytes = core::bytes_of(matrix.type, matrix.batch_stride)};
}

// Can rows that start at a multiple of 16 bytes be read in place?
bool rows_are_aligned(const core::ResolvedMatrix& matrix, int64_t batches) noexcept {
  const auto aligned = [&](int64_t stride) {
    return core::bytes_of(matrix.type, stride) % kRowAlignment == 0;
  };
  return aligned(matrix.ld) && (batches == 1 || aligned(matrix.batch_stride));
}

GemmShape shape_of(const GemmWork& work) noexcept {
  const Problem& p = work.problem.problem;
  const core::ResolvedMatrix& a = work.problem.a;
  const int64_t n = padded_n(p);
  const bool in_place = work.a == nullptr;
  return {.number = work.number,
          .m = p.m,
          .n = n,
          .k = p.k,
          .batches = p.l,
          .a_ld = in_place ? a.ld : p.k,
          .a_batch_stride = in_place ? a.batch_stride : p.m * p.k,
          .w_ld = p.k,
          .w_batch_stride = work.weights[0].batch_values,
          .d_ld = n,
          .d_batch_stride = p.m * n};
}

// Codes and scales as cuBLASLt wants them.
Status copy_nvfp4(const Nvfp4Source& source, const SourceExtent& extent, uint8_t* codes,
                  uint8_t* scales, cudaStream_t stream) {
  DUALGEMM_TRY(enqueue(repack_rows_launch({.source = source.codes,
                                           .destination = codes,
                                           .source_row_bytes = source.row_bytes,
                                           .source_batch_bytes = source.batch_bytes,
                                           .row_bytes = extent.cols / 2,
                                           .destination_row_bytes = extent.cols / 2,
                                           .rows = extent.rows,
                                           .batches = extent.batches}),
                       stream));
  return enqueue(repack_scales_launch({.source = source.scales,
                                       .destination = scales,
                                       .source_ld = source.scale_ld,
                                       .source_batch_bytes = source.scale_batch_bytes,
                                       .rows = extent.rows,
                                       .sf_cols = extent.cols / kSfVec,
                                       .batches = extent.batches}),
                 stream);
}

}  // namespace

int64_t padded_n(const Problem& problem) noexcept { return round_up(problem.n, 16); }

bool is_native(const Problem& problem) noexcept {
  return problem.a.type == DataType::kE2M1 && problem.k % 32 == 0 && problem.l == 1;
}

GemmNumber gemm_number(const Plan& plan, bool fp8) noexcept {
  const Problem& problem = plan.problem;
  if (fp8) return GemmNumber::kE4M3;
  if (plan.isa == Isa::kSm100a && is_native(problem)) return GemmNumber::kNvfp4;
  return problem.a.type == DataType::kBF16 ? GemmNumber::kBF16 : GemmNumber::kF16;
}

void take_weights(const Problem& problem, GemmNumber number, core::Arena& arena,
                  GemmWeights (&weights)[2]) noexcept {
  const int64_t batch_rows = padded_n(problem), rows = problem.l * batch_rows;
  for (GemmWeights& operand : weights) {
    operand.batch_rows = batch_rows;
    operand.batch_values = batch_rows * problem.k;
    operand.values = arena.take<uint8_t>(bytes_of_values(number, rows * problem.k));
    if (number == GemmNumber::kE4M3) {
      operand.row_scales = arena.take<float>(rows);
    }
    if (number == GemmNumber::kNvfp4) {
      operand.block_scales = arena.take<uint8_t>(swizzled_scale_bytes(rows, problem.k / kSfVec));
    }
  }
}

PreparedDescriptor prepared_gemm_weights(const Problem& problem, GemmNumber number) noexcept {
  Problem one = problem;
  one.l = 1;
  core::Arena counting(nullptr, kGemmAlignment);
  GemmWeights weights[2];
  take_weights(one, number, counting, weights);
  return plan::describe_prepared(prepared_format(number), problem, counting.used());
}

void take_prepared(const PreparedDescriptor& descriptor, GemmNumber number, uint8_t* first_part,
                   GemmWeights (&weights)[2]) noexcept {
  core::Arena arena(first_part, kGemmAlignment);
  take_weights({.n = descriptor.n, .k = descriptor.k}, number, arena, weights);
  if (descriptor.l == 1) return;
  for (GemmWeights& operand : weights) {
    operand.batch_rows = descriptor.expert_bytes / static_cast<int64_t>(sizeof(float));
    operand.batch_values = values_of_bytes(number, descriptor.expert_bytes);
  }
}

GemmWork lay_out(const Plan& plan, const core::ResolvedProblem& problem, bool fp8,
                 bool converts_weights, bool two_streams, core::Arena& arena) noexcept {
  const Problem& p = problem.problem;
  GemmWork work{.problem = problem, .number = gemm_number(plan, fp8), .copies_a = false};
  const int64_t rows = p.l * p.m;
  const bool converts_a = fp8 || p.a.type == DataType::kE2M1;
  work.copies_a = !converts_a && (plan.unaligned || !rows_are_aligned(work.problem.a, p.l));
  if (converts_a || work.copies_a)
    work.a = arena.take<uint8_t>(bytes_of_values(work.number, rows * p.k));
  if (fp8) {
    work.a_row_scales = arena.take<float>(rows);
  }
  if (work.number == GemmNumber::kNvfp4) {
    work.a_block_scales = arena.take<uint8_t>(swizzled_scale_bytes(rows, p.k / kSfVec));
  }
  if (converts_weights) take_weights(p, work.number, arena, work.weights);
  for (float*& product : work.products) {
    product = arena.take<float>(rows * padded_n(p));
  }
  work.gemm_workspaces[0] = arena.take<uint8_t>(kGemmWorkspaceBytes);
  work.gemm_workspaces[1] =
      two_streams ? arena.take<uint8_t>(kGemmWorkspaceBytes) : work.gemm_workspaces[0];
  return work;
}

Status check_call(const GemmWork& work) {
  const auto excess = reinterpret_cast<uintptr_t>(work.buffers->a) % kRowAlignment;
  if (work.a == nullptr && excess != 0) {
    return Status::unsupported(
        "a", "address % 16 = " + std::to_string(excess),
        "must be aligned to 16 bytes, or planned for with PlanOptions::unaligned");
  }
  return plan_gemm(shape_of(work));
}

namespace {

Status convert_batches(const GemmWork& work, const Nvfp4Source& source, const SourceExtent& extent,
                       const GemmWeights& to, cudaStream_t stream) {
  if (work.number == GemmNumber::kE4M3) {
    return enqueue(requantize_launch({source, extent, to.values, to.row_scales}), stream);
  }
  if (work.number == GemmNumber::kNvfp4) {
    return copy_nvfp4(source, extent, to.values, to.block_scales, stream);
  }
  return enqueue(dequantize_launch({source, extent, to.values}, half_of(work.number)), stream);
}

}  // namespace

Status convert_weights(const GemmWork& work, GemmOperand operand, cudaStream_t stream) {
  const Problem& p = work.problem.problem;
  const bool gate = operand == GemmOperand::kGate;
  Nvfp4Source source = nvfp4_source(gate ? work.problem.gate : work.problem.up,
                                    gate ? work.buffers->gate : work.buffers->up,
                                    gate ? work.buffers->gate_scales : work.buffers->up_scales);
  SourceExtent extent{.rows = p.n, .out_rows = padded_n(p), .batches = p.l, .cols = p.k};
  GemmWeights to = work.weights[static_cast<int>(operand)];
  if (to.batch_values == extent.out_rows * p.k)
    return convert_batches(work, source, extent, to, stream);
  extent.batches = 1;  // the kernels leave no gap between batches
  for (int64_t batch = 0; batch < p.l; ++batch) {
    DUALGEMM_TRY(convert_batches(work, source, extent, to, stream));
    source.codes += source.batch_bytes;
    source.scales += source.scale_batch_bytes;
    to.values += bytes_of_values(work.number, to.batch_values);
    if (to.row_scales != nullptr) to.row_scales += to.batch_rows;
  }
  return {};
}

Status convert_activation(const GemmWork& work, cudaStream_t stream) {
  if (work.a == nullptr) return {};
  const Problem& p = work.problem.problem;
  const core::ResolvedMatrix& a = work.problem.a;
  const SourceExtent extent{.rows = p.m, .out_rows = p.m, .batches = p.l, .cols = p.k};
  if (a.type == DataType::kE2M1) {
    const Nvfp4Source source = nvfp4_source(a, work.buffers->a, work.buffers->a_scales);
    if (work.number == GemmNumber::kE4M3) {
      return enqueue(requantize_launch({source, extent, work.a, work.a_row_scales}), stream);
    }
    if (work.number == GemmNumber::kNvfp4) {
      return copy_nvfp4(source, extent, work.a, work.a_block_scales, stream);
    }
    return enqueue(dequantize_launch({source, extent, work.a}, half_of(work.number)), stream);
  }
  const HalfSource source = half_source(a, work.buffers->a);
  if (work.number == GemmNumber::kE4M3) {
    const HalfType type = a.type == DataType::kBF16 ? HalfType::kBF16 : HalfType::kF16;
    return enqueue(requantize_launch({source, extent, work.a, work.a_row_scales}, type), stream);
  }
  const int64_t row_bytes = core::bytes_of(a.type, p.k);
  return enqueue(repack_rows_launch({.source = source.values,
                                     .destination = work.a,
                                     .source_row_bytes = source.row_bytes,
                                     .source_batch_bytes = source.batch_bytes,
                                     .row_bytes = row_bytes,
                                     .destination_row_bytes = row_bytes,
                                     .rows = p.m,
                                     .batches = p.l}),
                 stream);
}

Status multiply(const GemmWork& work, GemmOperand operand, cudaStream_t stream) {
  const int i = static_cast<int>(operand);
  return enqueue_gemm(shape_of(work),
                      {.a = work.a == nullptr ? work.buffers->a : work.a,
                       .w = work.weights[i].values,
                       .d = work.products[i],
                       .workspace = work.gemm_workspaces[i],
                       .a_scales = work.a_block_scales,
                       .w_scales = work.weights[i].block_scales},
                      stream);
}

Status join(const GemmWork& work, cudaStream_t stream) {
  const Problem& p = work.problem.problem;
  const core::ResolvedMatrix& d = work.problem.d;
  const core::ResolvedActivation& act = work.problem.act;
  const Buffers& buffers = *work.buffers;
  const OutputType type = d.type == DataType::kF16    ? OutputType::kF16
                          : d.type == DataType::kBF16 ? OutputType::kBF16
                                                      : OutputType::kF32;
  return enqueue(
      join_launch({.gate = work.products[0],
                   .up = work.products[1],
                   .product_ld = padded_n(p),
                   .d = static_cast<uint8_t*>(buffers.d),
                   .d_row_bytes = d.row_bytes(),
                   .d_batch_bytes = core::bytes_of(d.type, d.batch_stride),
                   .a_row_scale = buffers.a_row_scale,
                   .requantized_rows = work.a_row_scales,
                   .requantized_gate = work.weights[0].row_scales,
                   .requantized_up = work.weights[1].row_scales,
                   .requantized_stride = work.weights[0].batch_rows,
                   .alpha_gate_per_batch = buffers.alpha_gate_per_batch,
                   .alpha_up_per_batch = buffers.alpha_up_per_batch,
                   .alpha_gate = buffers.alpha_gate,
                   .alpha_up = buffers.alpha_up,
                   .bias = {buffers.bias_gate, buffers.bias_up, work.problem.bias_stride,
                            p.bias == BiasType::kBF16},
                   .act = {static_cast<ActKind>(act.kind), act.alpha, act.beta, act.limit},
                   .rows = p.m,
                   .n = p.n,
                   .batches = p.l},
                  OutputType::kF32, type),
      stream);
}

}  // namespace dualgemm::cuda
