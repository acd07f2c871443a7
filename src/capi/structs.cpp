#include "capi/structs.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include "capi/error.hpp"

namespace dualgemm::capi {
namespace {

// A gap inside a struct would carry a caller's stack garbage, so that no later version could use
// it.
static_assert(sizeof(void*) == 8, "the C structs assume 64-bit pointers");
static_assert(sizeof(dualgemm_matrix) == 40 && sizeof(dualgemm_activation) == 16);
static_assert(sizeof(dualgemm_problem) == 5 * 8 + 4 * 40 + 16 + 16 + 32);
static_assert(sizeof(dualgemm_buffers) == 24 * 8);
static_assert(sizeof(dualgemm_prepared_descriptor) == 8 * 8);
static_assert(sizeof(dualgemm_prepared_view) == 10 * 8);
static_assert(DUALGEMM_PREPARED_HEADER_BYTES == kPreparedHeaderBytes);
static_assert(sizeof(dualgemm_plan_options) == 8 + 6 * 4 + 8 + 2 * 4);
static_assert(sizeof(dualgemm_operand_bytes) == 12 * 8);
static_assert(sizeof(dualgemm_plan_info) == 8 + 6 * 4 + 8 * 8 + 2 * 4 + 24);
static_assert(sizeof(dualgemm_run_info) == 8 + 4 * 4 + 8);
static_assert(sizeof(dualgemm_device_info) == 8 + 2 * 4 + 3 * 8 + 16 * 4 + 128);
static_assert(sizeof(dualgemm_quantize_options) == 8 + 4 * 4 + 8);
static_assert(sizeof(dualgemm_scale_report) == 7 * 8);
static_assert(offsetof(dualgemm_problem, l) == 32 && offsetof(dualgemm_buffers, d_scales) == 112);
static_assert(offsetof(dualgemm_operand_bytes, a_row_scale) == 72);

constexpr float kNotGiven = std::numeric_limits<float>::quiet_NaN();

}  // namespace

// NaN is not given, and so is 0 where an initialiser that names some fields left it. The header
// says which those are.
Expected<Activation> to_activation(const dualgemm_activation& from) {
  const auto given = [](float value, bool zero_counts) {
    return std::isnan(value) || (value == 0.0f && !zero_counts) ? std::nullopt
                                                                : std::optional<float>(value);
  };
  const bool zeroed = from.alpha == 0.0f && from.beta == 0.0f && from.limit == 0.0f;
  if (from.kind == DUALGEMM_SWIGLU_OAI && from.beta == 0.0f && !zeroed) {
    return Status::invalid("act.beta", "0",
                           "must be given beside alpha or limit (NaN: the default, 1); swiglu_oai "
                           "with beta 0 is clamped_swiglu with that alpha and limit");
  }
  return Activation{static_cast<ActivationKind>(from.kind), given(from.alpha, false),
                    given(from.beta, !zeroed), given(from.limit, false)};
}

dualgemm_activation from_activation(const Activation& from) {
  return {static_cast<int32_t>(from.kind), from.alpha.value_or(kNotGiven),
          from.beta.value_or(kNotGiven), from.limit.value_or(kNotGiven)};
}

Expected<bool> to_flag(const char* argument, int32_t value) {
  if (value == 0 || value == 1) return value == 1;
  return Status::invalid(argument, std::to_string(value), "must be 0 or 1");
}

Status check_reserved(const char* argument, int32_t value) {
  if (value == 0) return {};
  return Status::invalid(argument, std::to_string(value), "must be 0 in this version");
}

Matrix to_matrix(const dualgemm_matrix& from) {
  return {static_cast<DataType>(from.type),
          from.ld,
          from.batch_stride,
          static_cast<ScaleLayout>(from.scale_layout),
          from.scale_ld,
          from.scale_batch_stride};
}

Status check_struct_size(const char* name, uint64_t size, uint64_t minimum) {
  if (size >= minimum && size <= kMaxStructSize && size % 8 == 0) return {};
  return Status::invalid(std::string(name) + ".struct_size", std::to_string(size),
                         "must be a multiple of 8 from " + std::to_string(minimum) + " to " +
                             std::to_string(kMaxStructSize) +
                             ", that is sizeof of the struct in the caller's dualgemm.h");
}

Status check_unknown_tail(const char* name, const void* data, uint64_t known, uint64_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (uint64_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return Status::invalid(name, "byte " + std::to_string(i) + " is " + std::to_string(bytes[i]),
                           "this library is older than the caller's dualgemm.h and knows " +
                               std::to_string(known) + " bytes; the rest must be 0");
  }
  return {};
}

Expected<ExecutionOptions> to_execution_options(const dualgemm_execution_options* caller) {
  dualgemm_execution_options from;
  DUALGEMM_TRY(read_optional_struct("options", caller, from));
  DUALGEMM_TRY(check_reserved("options.reserved", from.reserved));
  DUALGEMM_CAPI_TRY_VALUE(trusted, to_flag("options.trusted_pointers", from.trusted_pointers));
  ExecutionOptions to;
  to.device = static_cast<DeviceKind>(from.device);
  to.threads = from.threads;
  to.trusted_pointers = trusted;
  return to;
}

template <>
dualgemm_problem defaults<dualgemm_problem>() {
  const Problem from;
  dualgemm_problem to{};
  to.struct_size = sizeof(to);
  to.l = from.l;
  for (auto [matrix, type] : {std::pair{&to.a, from.a.type}, std::pair{&to.gate, from.gate.type},
                              std::pair{&to.up, from.up.type}, std::pair{&to.d, from.d.type}}) {
    matrix->type = static_cast<int32_t>(type);
  }
  to.act = from_activation(from.act);
  return to;
}

template <>
dualgemm_buffers defaults<dualgemm_buffers>() {
  const Buffers from;
  dualgemm_buffers to{};
  to.struct_size = sizeof(to);
  to.alpha_gate = from.alpha_gate;
  to.alpha_up = from.alpha_up;
  to.d_global_scale = from.d_global_scale;
  return to;
}

Expected<Problem> to_problem(const dualgemm_problem* caller) {
  dualgemm_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_TRY(check_reserved("problem.reserved", from.reserved));
  DUALGEMM_CAPI_TRY_VALUE(batch_invariant, to_flag("batch_invariant", from.batch_invariant));
  DUALGEMM_CAPI_TRY_VALUE(act, to_activation(from.act));
  DUALGEMM_CAPI_TRY_VALUE(residual, to_flag("residual", from.residual));
  Problem to;
  to.m = from.m;
  to.n = from.n;
  to.k = from.k;
  to.l = from.l;
  to.a = to_matrix(from.a);
  to.gate = to_matrix(from.gate);
  to.up = to_matrix(from.up);
  to.d = to_matrix(from.d);
  to.act = act;
  to.grouping = static_cast<Grouping>(from.grouping);
  to.batch_invariant = batch_invariant;
  to.bias = static_cast<BiasType>(from.bias);
  to.bias_stride = from.bias_stride;
  to.a_rows = from.a_rows;
  to.combine = static_cast<Combine>(from.combine);
  to.up_column = from.up_column;
  to.residual = residual;
  return to;
}

PreparedView to_view(const dualgemm_prepared_view& from) {
  const dualgemm_prepared_descriptor& d = from.descriptor;
  return {.descriptor = {.format = static_cast<PreparedFormat>(d.format),
                         .version = d.version,
                         .n = d.n,
                         .k = d.k,
                         .l = d.l,
                         .expert_bytes = d.expert_bytes,
                         .bytes = d.bytes,
                         .alignment = d.alignment,
                         .columns = d.columns},
          .memory = from.memory,
          .bytes = from.bytes};
}

dualgemm_prepared_descriptor from_descriptor(const PreparedDescriptor& d) {
  return {static_cast<int32_t>(d.format),
          d.version,
          d.n,
          d.k,
          d.l,
          d.expert_bytes,
          d.bytes,
          d.alignment,
          d.columns};
}

dualgemm_prepared_view from_view(const PreparedView& view) {
  return {from_descriptor(view.descriptor), view.memory, view.bytes};
}

Expected<Buffers> to_buffers(const dualgemm_buffers* caller, PreparedView* view) {
  dualgemm_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  DUALGEMM_TRY(check_reserved("buffers.reserved", from.reserved));
  Buffers to;
  copy_arrays(from, to);
  take_prepared(from, view, to);
  return to;
}

Expected<PlanOptions> to_plan_options(const dualgemm_plan_options* caller) {
  dualgemm_plan_options from;
  DUALGEMM_TRY(read_optional_struct("options", caller, from));
  DUALGEMM_TRY(check_reserved("options.reserved", from.reserved));
  DUALGEMM_CAPI_TRY_VALUE(prepared, to_flag("options.prepared", from.prepared));
  DUALGEMM_CAPI_TRY_VALUE(unaligned, to_flag("options.unaligned", from.unaligned));
  DUALGEMM_CAPI_TRY_VALUE(trusted, to_flag("options.trusted_pointers", from.trusted_pointers));
  PlanOptions to;
  to.strategy = static_cast<StrategyId>(from.strategy);
  to.device = static_cast<DeviceKind>(from.device);
  to.isa = static_cast<Isa>(from.isa);
  to.threads = from.threads;
  to.prepared = prepared;
  if (from.config != nullptr) to.config = from.config;
  to.unaligned = unaligned;
  to.trusted_pointers = trusted;
  return to;
}

Expected<QuantizeOptions> to_quantize_options(const dualgemm_quantize_options* caller) {
  dualgemm_quantize_options from;
  DUALGEMM_TRY(read_optional_struct("options", caller, from));
  DUALGEMM_CAPI_TRY_VALUE(four_over_six, to_flag("options.four_over_six", from.four_over_six));
  QuantizeOptions to;
  to.global_scale = from.global_scale;
  to.four_over_six = four_over_six;
  to.scale_layout = static_cast<ScaleLayout>(from.scale_layout);
  to.scale_ld = from.scale_ld;
  to.threads = from.threads;
  return to;
}

dualgemm_plan_info from_plan(const Plan& plan) {
  auto to = defaults<dualgemm_plan_info>();
  to.strategy = static_cast<int32_t>(plan.strategy);
  to.device = static_cast<int32_t>(plan.device);
  to.isa = static_cast<int32_t>(plan.isa);
  to.regime = static_cast<int32_t>(plan.regime);
  to.threads = plan.threads;
  to.prepared = plan.prepared ? 1 : 0;
  to.tile_m = plan.shape.tile_m;
  to.tile_n = plan.shape.tile_n;
  to.tile_k = plan.shape.tile_k;
  to.workspace_bytes = plan.workspace_bytes;
  to.prepared_bytes = plan.prepared_bytes;
  to.stages = plan.shape.stages;
  to.k_warpgroups = plan.shape.k_warpgroups;
  to.ctas = plan.shape.ctas;
  to.preparation = static_cast<int32_t>(plan.preparation);
  plan.kernel.copy(to.kernel, sizeof(to.kernel) - 1);
  return to;
}

dualgemm_run_info from_run_info(const RunInfo& info) {
  auto to = defaults<dualgemm_run_info>();
  to.isa = static_cast<int32_t>(info.isa);
  to.regime = static_cast<int32_t>(info.regime);
  to.threads = info.threads;
  to.intermediate_bytes = info.intermediate_bytes;
  return to;
}

dualgemm_device_info from_device_caps(const DeviceCaps& caps) {
  auto to = defaults<dualgemm_device_info>();
  to.kind = static_cast<int32_t>(caps.kind);
  to.cores = caps.cores;
  to.l1d_bytes = caps.l1d_bytes;
  to.l2_bytes = caps.l2_bytes;
  to.l3_bytes = caps.l3_bytes;
  const std::size_t num_isas = std::min(caps.isas.size(), std::size(to.isas));
  to.num_isas = static_cast<int32_t>(num_isas);
  for (std::size_t i = 0; i < num_isas; ++i) to.isas[i] = static_cast<int32_t>(caps.isas[i]);
  caps.name.copy(to.name, sizeof(to.name) - 1);
  return to;
}

dualgemm_scale_report from_scale_report(const ScaleReport& report) {
  auto to = defaults<dualgemm_scale_report>();
  to.negative = report.negative;
  to.nan = report.nan;
  to.zero = report.zero;
  to.subnormal = report.subnormal;
  to.first_bad_row = report.first_bad_row;
  to.first_bad_col = report.first_bad_col;
  return to;
}

}  // namespace dualgemm::capi
