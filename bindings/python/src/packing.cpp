// Weights as the bytes that a device's kernels read.
#include "call.hpp"
#include "launch.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

// A plan for one row of that dtype, its weights packed.
Tensor pack(Call& call) {
  call.key.prepared = 1;
  const OnDevice on_device(call.place);
  const std::shared_ptr<const Plan> plan = plan_for(call.key);
  const int64_t bytes = plan->prepared.bytes;
  Tensor packed = new_tensor(call.place, dtypes().uint8, {bytes});
  if (call.place.is_cuda) call.buffers.stream = current_cuda_stream(call.place.index);
  check(dualgemm_prepare_into(plan->plan, &call.buffers, packed.data_ptr(), bytes));
  return packed;
}

// What packing needs of a call: the weights, and one row of nothing.
Call begin_pack(const Weights& weights, ScalarType rows_dtype) {
  Call call;
  call.place = Place::of(weights.first_name, given(weights.first_name, weights.gate));
  take_first(weights, call);
  call.a.rows = 1;
  call.a.columns = call.first.columns;
  const bool is_nvfp4 = static_cast<int32_t>(rows_dtype) == dtypes().uint8 ||
                        static_cast<int32_t>(rows_dtype) == dtypes().float4_e2m1fn_x2;
  call.a.layout.type = is_nvfp4 ? DUALGEMM_E2M1 : data_type_of("a_dtype", rows_dtype);
  call.key.device = call.place.is_cuda ? DUALGEMM_DEVICE_CUDA : DUALGEMM_DEVICE_CPU;
  call.key.device_index = call.place.is_cuda ? call.place.index : 0;
  check(dualgemm_buffers_init(&call.buffers, sizeof call.buffers));
  return call;
}

}  // namespace

Tensor pack_weights(const Weights& weights, ScalarType rows_dtype,
                    const std::string& scale_layout) {
  Call call = begin_pack(weights, rows_dtype);
  Choice choice;
  choice.scale_layout = scale_layout;
  fill_dual(weights, {}, {"silu", {}, {}, {}}, choice, call);
  call.key.problem.d.type = call.a.layout.type == DUALGEMM_E2M1 ? DUALGEMM_F16 : call.a.layout.type;
  call.key.unaligned = any_unaligned(
      call, {call.buffers.gate, call.buffers.gate_scales, call.buffers.up, call.buffers.up_scales});
  return pack(call);
}

Tensor pack_linear(const Weights& weights, ScalarType rows_dtype, const std::string& scale_layout) {
  Call call = begin_pack(weights, rows_dtype);
  const Weights linear = with_linear_scales(weights, scale_layout, call);
  Choice choice;
  choice.scale_layout = "linear";
  dualgemm_matrix d{};
  d.type = call.a.layout.type == DUALGEMM_E2M1 ? DUALGEMM_F16 : call.a.layout.type;
  fill_linear(linear, {}, choice, {}, d, call);
  call.key.unaligned = any_unaligned(
      call, {call.buffers.gate, call.buffers.gate_scales, call.buffers.up, call.buffers.up_scales});
  return pack(call);
}

}  // namespace dualgemm::python
