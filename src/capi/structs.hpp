// C structs of any past or future size <-> the types of the C++ API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "dualgemm/dualgemm.h"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/quantize.h"
#include "dualgemm/quantize.hpp"

struct dualgemm_plan {
  dualgemm::Plan plan;
};

struct dualgemm_prepared {
  dualgemm::PreparedWeights weights;
};

struct dualgemm_workspace {
  dualgemm::Workspace memory;
};

namespace dualgemm::capi {

// No version of any struct comes near this: what is larger is an uninitialised field, not a struct.
inline constexpr uint64_t kMaxStructSize = 4096;

// The smallest struct_size of each struct, as the header documents it.
template <class T>
inline constexpr uint64_t kMinStructSize = 16;
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_problem> = offsetof(dualgemm_problem, l);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_buffers> = offsetof(dualgemm_buffers, d_scales);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_operand_bytes> = offsetof(dualgemm_operand_bytes,
                                                                            a_row_scale);

Status check_struct_size(const char* name, uint64_t size, uint64_t minimum);
// Error unless the bytes [known, size) are 0.
Status check_unknown_tail(const char* name, const void* data, uint64_t known, uint64_t size);

// The struct's defaults; specialised where one of them is not 0.
template <class T>
T defaults() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}
template <>
dualgemm_problem defaults<dualgemm_problem>();
template <>
dualgemm_buffers defaults<dualgemm_buffers>();

// Reads a caller's struct: fields that the caller does not know keep their defaults.
template <class T>
Status read_struct(const char* name, const T* from, T& to) {
  to = defaults<T>();
  if (from == nullptr) return Status::invalid(name, "null", "must not be null");
  const uint64_t size = from->struct_size;
  DUALGEMM_TRY(check_struct_size(name, size, kMinStructSize<T>));
  DUALGEMM_TRY(check_unknown_tail(name, from, sizeof(T), size));
  std::memcpy(&to, from, std::min<uint64_t>(size, sizeof(T)));
  to.struct_size = sizeof(T);
  return {};
}

// The same for a struct that may be left out.
template <class T>
Status read_optional_struct(const char* name, const T* from, T& to) {
  if (from != nullptr) return read_struct(name, from, to);
  to = defaults<T>();
  return {};
}

// Whether write_struct() will succeed; asked before the work so that a failure leaves nothing
// behind.
template <class T>
Status check_output_struct(const char* name, const T* to) {
  if (to == nullptr) return Status::invalid(name, "null", "must not be null");
  return check_struct_size(name, to->struct_size, kMinStructSize<T>);
}

// Fills in a caller's struct as far as it goes. Precondition: check_output_struct().
template <class T>
void write_struct(T value, T* to) {
  value.struct_size = to->struct_size;
  std::memcpy(to, &value, std::min<uint64_t>(value.struct_size, sizeof(T)));
}

// As dualgemm_*_init(): defaults in the part known here, 0 beyond.
template <class T>
Status init_struct(const char* name, T* to, uint64_t size) {
  if (to == nullptr) return Status::invalid(name, "null", "must not be null");
  DUALGEMM_TRY(check_struct_size(name, size, kMinStructSize<T>));
  T value = defaults<T>();
  value.struct_size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(to, &value, std::min<uint64_t>(size, sizeof(T)));
  return {};
}

// Fields that several structs have.
Expected<bool> to_flag(const char* argument, int32_t value);
Status check_reserved(const char* argument, int32_t value);
Matrix to_matrix(const dualgemm_matrix& from);
PreparedView to_view(const dualgemm_prepared_view& from);
Expected<Activation> to_activation(const dualgemm_activation& from);
dualgemm_activation from_activation(const Activation& from);

// Between dualgemm_buffers and Buffers, either way: all but prepared weights, which each of them
// holds in its own way.
template <class From, class To>
void copy_arrays(const From& from, To& to) {
  to.a = from.a;
  to.a_scales = from.a_scales;
  to.a_row_scale = from.a_row_scale;
  to.gate = from.gate;
  to.gate_scales = from.gate_scales;
  to.up = from.up;
  to.up_scales = from.up_scales;
  to.alpha_gate = from.alpha_gate;
  to.alpha_up = from.alpha_up;
  to.alpha_gate_per_batch = from.alpha_gate_per_batch;
  to.alpha_up_per_batch = from.alpha_up_per_batch;
  to.expert_offsets = from.expert_offsets;
  to.expert_rows = from.expert_rows;
  to.d = from.d;
  to.d_scales = from.d_scales;
  to.d_global_scale = from.d_global_scale;
  to.stream = from.stream;
  to.bias_gate = from.bias_gate;
  to.bias_up = from.bias_up;
  to.residual = from.residual;
  to.row_experts = from.row_experts;
  to.a_row_index = from.a_row_index;
}

// The prepared weights of a C struct's caller. `view`: where a view of them is put, if it has one.
template <class From, class To>
void take_prepared(const From& from, PreparedView* view, To& to) {
  to.prepared = from.prepared != nullptr ? &from.prepared->weights : nullptr;
  if (from.prepared_view == nullptr) return;
  *view = to_view(*from.prepared_view);
  to.prepared_view = view;
}

// From the caller's struct to the C++ type. Enumerations pass as they are: validate() judges them.
Expected<Problem> to_problem(const dualgemm_problem* from);
// `view`: where the buffers' view of prepared weights is put, if they have one.
Expected<Buffers> to_buffers(const dualgemm_buffers* from, PreparedView* view);
Expected<PlanOptions> to_plan_options(const dualgemm_plan_options* from);  // null: defaults
Expected<QuantizeOptions> to_quantize_options(const dualgemm_quantize_options* from);  // null too
Expected<ExecutionOptions> to_execution_options(
    const dualgemm_execution_options* from);  // null too

dualgemm_prepared_view from_view(const PreparedView& view);
dualgemm_prepared_descriptor from_descriptor(const PreparedDescriptor& descriptor);

dualgemm_plan_info from_plan(const Plan& plan);
dualgemm_run_info from_run_info(const RunInfo& info);
dualgemm_device_info from_device_caps(const DeviceCaps& caps);
dualgemm_scale_report from_scale_report(const ScaleReport& report);

}  // namespace dualgemm::capi
