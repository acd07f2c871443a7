// quantize.hpp through the C interface.
#include "dualgemm/quantize.h"

#include "capi/error.hpp"
#include "capi/structs.hpp"
#include "dualgemm/quantize.hpp"

namespace dualgemm::capi {

template <>
inline constexpr uint64_t kMinStructSize<dualgemm_quantize_problem> =
    offsetof(dualgemm_quantize_problem, l);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_quantize_buffers> =
    offsetof(dualgemm_quantize_buffers, expert_rows);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_dequantize_buffers> =
    offsetof(dualgemm_dequantize_buffers, expert_rows);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_transform_problem> =
    offsetof(dualgemm_transform_problem, l);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_transform_buffers> =
    sizeof(dualgemm_transform_buffers);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_quantize_bytes> = sizeof(dualgemm_quantize_bytes);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_scale_conversion> =
    sizeof(dualgemm_scale_conversion);

template <>
dualgemm_quantize_problem defaults<dualgemm_quantize_problem>() {
  const QuantizeProblem from;
  dualgemm_quantize_problem to{};
  to.struct_size = sizeof(to);
  to.l = from.l;
  to.x.type = static_cast<int32_t>(from.x.type);
  to.q.type = static_cast<int32_t>(from.q.type);
  to.scaling = static_cast<int32_t>(from.scaling);
  return to;
}

template <>
dualgemm_transform_problem defaults<dualgemm_transform_problem>() {
  const TransformProblem from;
  dualgemm_transform_problem to{};
  to.struct_size = sizeof(to);
  to.l = from.l;
  to.x.type = static_cast<int32_t>(from.x.type);
  to.y.type = static_cast<int32_t>(from.y.type);
  return to;
}

namespace {

static_assert(sizeof(dualgemm_quantize_problem) == 6 * 8 + 2 * 40 + 4 * 4);
static_assert(sizeof(dualgemm_quantize_buffers) == 13 * 8);
static_assert(sizeof(dualgemm_transform_problem) == 5 * 8 + 2 * 40 + 2 * 4);
static_assert(sizeof(dualgemm_transform_buffers) == 5 * 8);
static_assert(sizeof(dualgemm_dequantize_buffers) == 9 * 8);
static_assert(sizeof(dualgemm_execution_options) == 8 + 4 * 4);
static_assert(sizeof(dualgemm_quantize_bytes) == 6 * 8);
static_assert(sizeof(dualgemm_scale_placement) == 24 && sizeof(dualgemm_scale_conversion) == 80);
static_assert(offsetof(dualgemm_quantize_problem, l) == 24);
static_assert(offsetof(dualgemm_quantize_buffers, expert_rows) == 48);
static_assert(offsetof(dualgemm_dequantize_buffers, expert_rows) == 40);

Expected<QuantizeProblem> to_quantize_problem(const dualgemm_quantize_problem* caller) {
  dualgemm_quantize_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_TRY(check_reserved("problem.reserved", from.reserved));
  DUALGEMM_TRY(check_reserved("problem.reserved_too", from.reserved_too));
  DUALGEMM_CAPI_TRY_VALUE(four_over_six, to_flag("problem.four_over_six", from.four_over_six));
  DUALGEMM_CAPI_TRY_VALUE(factors, to_flag("problem.has_column_factors", from.has_column_factors));
  QuantizeProblem to;
  to.rows = from.rows;
  to.cols = from.cols;
  to.l = from.l;
  to.x = to_matrix(from.x);
  to.q = to_matrix(from.q);
  to.grouping = static_cast<Grouping>(from.grouping);
  to.scaling = static_cast<GlobalScaling>(from.scaling);
  to.four_over_six = four_over_six;
  to.transform = {.factors = factors, .hadamard = from.hadamard};
  return to;
}

Expected<QuantizeBuffers> to_quantize_buffers(const dualgemm_quantize_buffers* caller) {
  dualgemm_quantize_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  return QuantizeBuffers{.x = from.x,
                         .codes = from.codes,
                         .scales = from.scales,
                         .global_scale = from.global_scale,
                         .found_scale = from.found_scale,
                         .groups = {from.expert_rows, from.expert_offsets, from.row_experts},
                         .column_factors = from.column_factors,
                         .workspace = from.workspace,
                         .workspace_bytes = from.workspace_bytes,
                         .stream = from.stream};
}

Expected<DequantizeBuffers> to_dequantize_buffers(const dualgemm_dequantize_buffers* caller) {
  dualgemm_dequantize_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  return DequantizeBuffers{.codes = from.codes,
                           .scales = from.scales,
                           .global_scale = from.global_scale,
                           .x = from.x,
                           .groups = {from.expert_rows, from.expert_offsets, from.row_experts},
                           .stream = from.stream};
}

Expected<TransformProblem> to_transform_problem(const dualgemm_transform_problem* caller) {
  dualgemm_transform_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_TRY(check_reserved("problem.reserved", from.reserved));
  DUALGEMM_CAPI_TRY_VALUE(factors, to_flag("problem.has_column_factors", from.has_column_factors));
  return TransformProblem{.rows = from.rows,
                          .cols = from.cols,
                          .l = from.l,
                          .x = to_matrix(from.x),
                          .y = to_matrix(from.y),
                          .transform = {.factors = factors, .hadamard = from.hadamard}};
}

Expected<TransformBuffers> to_transform_buffers(const dualgemm_transform_buffers* caller) {
  dualgemm_transform_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  return TransformBuffers{
      .x = from.x, .column_factors = from.column_factors, .y = from.y, .stream = from.stream};
}

Expected<ScalePlacement> to_placement(const char* name, const dualgemm_scale_placement& from) {
  DUALGEMM_TRY(check_reserved(name, from.reserved));
  return ScalePlacement{static_cast<ScaleLayout>(from.layout), from.ld, from.batch_stride};
}

}  // namespace
}  // namespace dualgemm::capi

using namespace dualgemm;        // NOLINT(google-build-using-namespace): the definitions of one
using namespace dualgemm::capi;  // NOLINT(google-build-using-namespace): C interface

dualgemm_status dualgemm_quantize_problem_init(dualgemm_quantize_problem* problem,
                                               uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_quantize_buffers_init(dualgemm_quantize_buffers* buffers,
                                               uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("buffers", buffers, struct_size); });
}
dualgemm_status dualgemm_dequantize_buffers_init(dualgemm_dequantize_buffers* buffers,
                                                 uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("buffers", buffers, struct_size); });
}
dualgemm_status dualgemm_transform_problem_init(dualgemm_transform_problem* problem,
                                                uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_transform_buffers_init(dualgemm_transform_buffers* buffers,
                                                uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("buffers", buffers, struct_size); });
}
dualgemm_status dualgemm_execution_options_init(dualgemm_execution_options* options,
                                                uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("options", options, struct_size); });
}

dualgemm_status dualgemm_quantize_validate(const dualgemm_quantize_problem* problem,
                                           const dualgemm_quantize_buffers* groups) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_quantize_problem(problem));
    if (groups == nullptr) return validate(cpp_problem);
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_quantize_buffers(groups));
    return validate(cpp_problem, cpp_buffers.groups);
  });
}

dualgemm_status dualgemm_quantize_sizes(const dualgemm_quantize_problem* problem, int32_t device,
                                        dualgemm_quantize_bytes* sizes) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(check_output_struct("sizes", sizes));
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_quantize_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(found, quantize_sizes(cpp_problem, static_cast<DeviceKind>(device)));
    auto to = defaults<dualgemm_quantize_bytes>();
    to.x = found.x;
    to.codes = found.codes;
    to.scales = found.scales;
    to.global_scale = found.global_scale;
    to.workspace = found.workspace;
    write_struct(to, sizes);
    return {};
  });
}

dualgemm_status dualgemm_quantize_tensor(const dualgemm_quantize_problem* problem,
                                         const dualgemm_quantize_buffers* buffers,
                                         const dualgemm_execution_options* options) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_quantize_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_quantize_buffers(buffers));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_execution_options(options));
    return quantize(cpp_problem, cpp_buffers, cpp_options);
  });
}

dualgemm_status dualgemm_transform_rows(const dualgemm_transform_problem* problem,
                                        const dualgemm_transform_buffers* buffers,
                                        const dualgemm_execution_options* options) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_transform_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_transform_buffers(buffers));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_execution_options(options));
    return transform_rows(cpp_problem, cpp_buffers, cpp_options);
  });
}

dualgemm_status dualgemm_dequantize_tensor(const dualgemm_quantize_problem* problem,
                                           const dualgemm_dequantize_buffers* buffers,
                                           const dualgemm_execution_options* options) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_quantize_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_dequantize_buffers(buffers));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_execution_options(options));
    return dequantize(cpp_problem, cpp_buffers, cpp_options);
  });
}

dualgemm_status dualgemm_convert_tensor_scales(const dualgemm_scale_conversion* conversion,
                                               const uint8_t* src, uint8_t* dst, void* stream,
                                               const dualgemm_execution_options* options) noexcept {
  return guarded([&]() -> Status {
    dualgemm_scale_conversion known;
    DUALGEMM_TRY(read_struct("conversion", conversion, known));
    DUALGEMM_CAPI_TRY_VALUE(from, to_placement("conversion.from.reserved", known.from));
    DUALGEMM_CAPI_TRY_VALUE(to, to_placement("conversion.to.reserved", known.to));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_execution_options(options));
    return convert_scales({known.rows, known.sf_cols, known.l, from, to}, src, dst, stream,
                          cpp_options);
  });
}
