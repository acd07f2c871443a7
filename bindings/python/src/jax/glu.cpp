// dualgemm/_jax.so: the gated product as a target of XLA's foreign function interface, on XLA's
// headers alone. dualgemm/jax.py checks shapes and types before it calls; what is checked here too
// is what memory safety depends on.
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "../plan_cache.hpp"
#include "../status.hpp"
#include "xla/ffi/api/ffi.h"

namespace dualgemm::python {
namespace {

namespace ffi = xla::ffi;

// Optional operands are always there, with no elements where they are not given: an operand's place
// then says what it is.
struct Operands {
  ffi::AnyBuffer a, a_scales, gate, gate_scales, up, up_scales;
  ffi::AnyBuffer alpha_gate, alpha_up, a_row_scale, bias_gate, bias_up;
};

struct Attributes {
  int32_t activation;
  // NaN where not given. They arrive as text: JAX compares attributes, and NaN equals nothing.
  float act_alpha, act_beta, act_limit;
  int32_t batch_invariant;
  int32_t strategy;
  std::string config;
};

float number(std::string_view text) {
  return text.empty() ? std::numeric_limits<float>::quiet_NaN()
                      : std::strtof(std::string(text).c_str(), nullptr);
}

int32_t data_type_of(const char* name, const ffi::AnyBuffer& buffer) {
  switch (buffer.element_type()) {
    case ffi::DataType::U8:
      return DUALGEMM_E2M1;
    case ffi::DataType::F16:
      return DUALGEMM_F16;
    case ffi::DataType::BF16:
      return DUALGEMM_BF16;
    case ffi::DataType::F32:
      return DUALGEMM_F32;
    default:
      refuse(name, "another type", "must be uint8, float16, bfloat16 or float32");
  }
}

// [batches, rows, columns]; leading dimensions of a matrix without batches are rows.
struct Shape {
  int64_t batches = 1, rows = 1, columns = 0;
};
Shape shape_of(const char* name, const ffi::AnyBuffer& buffer, bool is_batched) {
  const auto dimensions = buffer.dimensions();
  const size_t rank = dimensions.size();
  if (is_batched ? rank != 3 : rank < 2) {
    refuse(name, std::to_string(rank) + " dimensions",
           is_batched ? "must be 3" : "must be 2 or more");
  }
  Shape shape;
  shape.columns = dimensions[rank - 1];
  if (is_batched) shape.batches = dimensions[0];
  for (size_t dim = is_batched ? 1 : 0; dim + 1 < rank; ++dim) shape.rows *= dimensions[dim];
  return shape;
}

void check_elements(const char* name, const ffi::AnyBuffer& buffer, int64_t wanted) {
  const auto elements = static_cast<int64_t>(buffer.element_count());
  if (elements != wanted) {
    refuse(name, std::to_string(elements) + " elements", "must be " + std::to_string(wanted));
  }
}

// Scales with as many dimensions as their codes are linear.
const uint8_t* scales_of(const char* name, const ffi::AnyBuffer& scales,
                         const ffi::AnyBuffer& codes, const Shape& shape, int64_t k,
                         dualgemm_matrix& matrix) {
  const int64_t blocks = k / DUALGEMM_SF_VEC;
  const bool is_linear = scales.dimensions().size() == codes.dimensions().size();
  int64_t span = shape.rows * blocks;
  if (!is_linear) {
    matrix.scale_layout = DUALGEMM_SCALES_SWIZZLED_128X4;
    check(dualgemm_scale_span(DUALGEMM_SCALES_SWIZZLED_128X4, shape.rows, blocks, 0, &span));
  }
  check_elements(name, scales, span * shape.batches);
  return static_cast<const uint8_t*>(scales.untyped_data());
}

const void* optional_of(const char* name, const ffi::AnyBuffer& buffer, int64_t elements) {
  if (buffer.element_count() == 0) return nullptr;
  check_elements(name, buffer, elements);
  return buffer.untyped_data();
}

struct Call {
  PlanKey key;
  dualgemm_buffers buffers{};
};

Call call_of(const Operands& given, const ffi::AnyBuffer& d, const Attributes& attributes) {
  Call call;
  dualgemm_problem& problem = call.key.problem;
  dualgemm_buffers& buffers = call.buffers;
  check(dualgemm_problem_init(&problem, sizeof problem));
  check(dualgemm_buffers_init(&buffers, sizeof buffers));

  const bool is_batched = given.gate.dimensions().size() == 3;
  const Shape gate = shape_of("gate", given.gate, is_batched);
  const Shape a = shape_of("a", given.a, is_batched);
  problem.m = a.rows;
  problem.n = gate.rows;
  problem.k = gate.columns * 2;
  problem.l = gate.batches;
  problem.a.type = data_type_of("a", given.a);
  problem.d.type = data_type_of("d", d);
  problem.act = {attributes.activation, attributes.act_alpha, attributes.act_beta,
                 attributes.act_limit};
  problem.batch_invariant = attributes.batch_invariant;

  const int64_t rows = a.rows * gate.batches;
  const bool is_nvfp4 = problem.a.type == DUALGEMM_E2M1;
  check_elements("a", given.a, rows * (is_nvfp4 ? gate.columns : problem.k));
  check_elements("up", given.up, gate.batches * gate.rows * gate.columns);
  check_elements("d", d, rows * gate.rows);
  buffers.a = given.a.untyped_data();
  if (is_nvfp4) {
    buffers.a_scales = scales_of("a_scales", given.a_scales, given.a, a, problem.k, problem.a);
  }
  buffers.gate = given.gate.untyped_data();
  buffers.gate_scales =
      scales_of("gate_scales", given.gate_scales, given.gate, gate, problem.k, problem.gate);
  buffers.up = given.up.untyped_data();
  buffers.up_scales =
      scales_of("up_scales", given.up_scales, given.up, gate, problem.k, problem.up);
  buffers.d = d.untyped_data();

  const auto floats = [](const char* name, const ffi::AnyBuffer& buffer, int64_t elements) {
    return static_cast<const float*>(optional_of(name, buffer, elements));
  };
  buffers.alpha_gate_per_batch = floats("alpha_gate", given.alpha_gate, gate.batches);
  buffers.alpha_up_per_batch = floats("alpha_up", given.alpha_up, gate.batches);
  buffers.a_row_scale = floats("a_row_scale", given.a_row_scale, rows);
  buffers.bias_gate = optional_of("bias_gate", given.bias_gate, gate.batches * gate.rows);
  buffers.bias_up = optional_of("bias_up", given.bias_up, gate.batches * gate.rows);
  for (const ffi::AnyBuffer* bias : {&given.bias_gate, &given.bias_up}) {
    if (bias->element_count() == 0) continue;
    problem.bias =
        bias->element_type() == ffi::DataType::F32 ? DUALGEMM_BIAS_F32 : DUALGEMM_BIAS_BF16;
  }
  call.key.strategy = attributes.strategy;
  call.key.config = attributes.config;
  return call;
}

// XLA's threads must see no exception.
template <typename Function>
ffi::Error caught(const Function& function) {
  try {
    function();
    return ffi::Error::Success();
  } catch (const std::bad_alloc&) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "dualgemm: out_of_memory");
  } catch (const std::exception& error) {
    return ffi::Error::InvalidArgument(error.what());
  }
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

#define DUALGEMM_OPERANDS                                                                     \
  ffi::AnyBuffer a, ffi::AnyBuffer a_scales, ffi::AnyBuffer gate, ffi::AnyBuffer gate_scales, \
      ffi::AnyBuffer up, ffi::AnyBuffer up_scales, ffi::AnyBuffer alpha_gate,                 \
      ffi::AnyBuffer alpha_up, ffi::AnyBuffer a_row_scale, ffi::AnyBuffer bias_gate,          \
      ffi::AnyBuffer bias_up, ffi::Result<ffi::AnyBuffer> d, int32_t activation,              \
      std::string_view act_alpha, std::string_view act_beta, std::string_view act_limit,      \
      int32_t batch_invariant, int32_t strategy, std::string_view config
#define DUALGEMM_CALL                                                                           \
  call_of({a, a_scales, gate, gate_scales, up, up_scales, alpha_gate, alpha_up, a_row_scale,    \
           bias_gate, bias_up},                                                                 \
          *d,                                                                                   \
          {activation, number(act_alpha), number(act_beta), number(act_limit), batch_invariant, \
           strategy, std::string(config)})

// The CPU platform has no scratch memory for handlers (jaxlib 0.10.2): the workspace is malloc's.
ffi::Error glu_on_cpu(DUALGEMM_OPERANDS) {
  return caught([&] {
    Call call = DUALGEMM_CALL;
    const std::shared_ptr<const Plan> plan = plan_for(call.key);
    const auto bytes = static_cast<size_t>(plan->workspace_bytes);
    std::unique_ptr<void, Free> workspace;
    if (bytes > 0) {
      workspace.reset(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
      if (workspace == nullptr) throw std::bad_alloc();
    }
    check(dualgemm_run(plan->plan, &call.buffers, workspace.get(), plan->workspace_bytes, nullptr));
  });
}

// XLA has made the stream's GPU the current one.
ffi::Error glu_on_cuda(void* stream, int32_t ordinal, ffi::ScratchAllocator scratch,
                       DUALGEMM_OPERANDS) {
  return caught([&] {
    Call call = DUALGEMM_CALL;
    call.key.device = DUALGEMM_DEVICE_CUDA;
    call.key.device_index = ordinal;
    call.buffers.stream = stream;
    const std::shared_ptr<const Plan> plan = plan_for(call.key);
    std::optional<void*> workspace = nullptr;
    if (plan->workspace_bytes > 0) {
      workspace = scratch.Allocate(static_cast<size_t>(plan->workspace_bytes), 256);
      if (!workspace.has_value()) throw std::bad_alloc();
    }
    check(dualgemm_run(plan->plan, &call.buffers, *workspace, plan->workspace_bytes, nullptr));
  });
}

#undef DUALGEMM_OPERANDS
#undef DUALGEMM_CALL

template <typename Binding>
auto with_operands(Binding binding) {
  return std::move(binding)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<int32_t>("activation")
      .template Attr<std::string_view>("act_alpha")
      .template Attr<std::string_view>("act_beta")
      .template Attr<std::string_view>("act_limit")
      .template Attr<int32_t>("batch_invariant")
      .template Attr<int32_t>("strategy")
      .template Attr<std::string_view>("config");
}

}  // namespace
}  // namespace dualgemm::python

#define DUALGEMM_VISIBLE extern "C" __attribute__((visibility("default")))
// XLA of an older version of the interface refuses the handlers, and then does not start at all.
DUALGEMM_VISIBLE int32_t dualgemm_jax_interface_major() { return XLA_FFI_API_MAJOR; }
DUALGEMM_VISIBLE int32_t dualgemm_jax_interface_minor() { return XLA_FFI_API_MINOR; }
DUALGEMM_VISIBLE XLA_FFI_Error* dualgemm_jax_glu_cpu(XLA_FFI_CallFrame* frame);
DUALGEMM_VISIBLE XLA_FFI_Error* dualgemm_jax_glu_cuda(XLA_FFI_CallFrame* frame);

XLA_FFI_DEFINE_HANDLER_SYMBOL(dualgemm_jax_glu_cpu, dualgemm::python::glu_on_cpu,
                              dualgemm::python::with_operands(xla::ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    dualgemm_jax_glu_cuda, dualgemm::python::glu_on_cuda,
    dualgemm::python::with_operands(xla::ffi::Ffi::Bind()
                                        .Ctx<xla::ffi::PlatformStream<void*>>()
                                        .Ctx<xla::ffi::DeviceOrdinal>()
                                        .Ctx<xla::ffi::ScratchAllocator>()));
