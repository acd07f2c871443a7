// validate, plan, prepare, run and device of the C interface.
#include <memory>

#include "capi/error.hpp"
#include "capi/structs.hpp"
#include "capi/text.hpp"

namespace dualgemm::capi {
namespace {

template <class Text>
dualgemm_status copy_plan_text(const dualgemm_plan* plan, Text text, char* buffer, size_t capacity,
                               size_t* required) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    return copy_text(text(plan->plan), buffer, capacity, required);
  });
}

dualgemm_operand_bytes from_operand_sizes(const OperandSizes& sizes) {
  auto to = defaults<dualgemm_operand_bytes>();
  to.a = sizes.a;
  to.a_scales = sizes.a_scales;
  to.gate = sizes.gate;
  to.gate_scales = sizes.gate_scales;
  to.up = sizes.up;
  to.up_scales = sizes.up_scales;
  to.d = sizes.d;
  to.d_scales = sizes.d_scales;
  to.a_row_scale = sizes.a_row_scale;
  to.bias_gate = sizes.bias_gate;
  to.bias_up = sizes.bias_up;
  return to;
}

}  // namespace
}  // namespace dualgemm::capi

using namespace dualgemm;        // NOLINT(google-build-using-namespace): the definitions of one
using namespace dualgemm::capi;  // NOLINT(google-build-using-namespace): C interface

dualgemm_status dualgemm_problem_init(dualgemm_problem* problem, uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_buffers_init(dualgemm_buffers* buffers, uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("buffers", buffers, struct_size); });
}
dualgemm_status dualgemm_plan_options_init(dualgemm_plan_options* options,
                                           uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("options", options, struct_size); });
}

dualgemm_status dualgemm_validate(const dualgemm_problem* problem,
                                  const dualgemm_buffers* buffers) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_problem(problem));
    if (buffers == nullptr) return validate(cpp_problem);
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_buffers(buffers, &view));
    return validate(cpp_problem, cpp_buffers);
  });
}

dualgemm_status dualgemm_operand_sizes(const dualgemm_problem* problem,
                                       dualgemm_operand_bytes* sizes) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(check_output_struct("sizes", sizes));
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_sizes, operand_sizes(cpp_problem));
    write_struct(from_operand_sizes(cpp_sizes), sizes);
    return {};
  });
}

dualgemm_status dualgemm_plan_create(const dualgemm_problem* problem,
                                     const dualgemm_plan_options* options,
                                     dualgemm_plan** plan) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    *plan = nullptr;
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_plan_options(options));
    DUALGEMM_CAPI_TRY_VALUE(made, make_plan(cpp_problem, cpp_options));
    *plan = new dualgemm_plan{std::move(made)};
    return {};
  });
}

void dualgemm_plan_destroy(dualgemm_plan* plan) noexcept { delete plan; }

dualgemm_status dualgemm_plan_workspace_size(const dualgemm_plan* plan, int64_t* bytes) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    DUALGEMM_TRY(require(bytes, "bytes"));
    *bytes = plan->plan.workspace_bytes;
    return {};
  });
}

dualgemm_status dualgemm_plan_get_info(const dualgemm_plan* plan,
                                       dualgemm_plan_info* info) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    DUALGEMM_TRY(check_output_struct("info", info));
    write_struct(from_plan(plan->plan), info);
    return {};
  });
}

dualgemm_status dualgemm_plan_config(const dualgemm_plan* plan, char* buffer, size_t capacity,
                                     size_t* required) noexcept {
  return copy_plan_text(
      plan, [](const Plan& p) { return p.config(); }, buffer, capacity, required);
}
dualgemm_status dualgemm_plan_explain(const dualgemm_plan* plan, char* buffer, size_t capacity,
                                      size_t* required) noexcept {
  return copy_plan_text(
      plan, [](const Plan& p) { return p.explain(); }, buffer, capacity, required);
}

dualgemm_status dualgemm_prepare(const dualgemm_plan* plan, const dualgemm_buffers* buffers,
                                 dualgemm_prepared** prepared) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(prepared, "prepared"));
    *prepared = nullptr;
    DUALGEMM_TRY(require(plan, "plan"));
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_buffers(buffers, &view));
    DUALGEMM_CAPI_TRY_VALUE(weights, prepare(plan->plan, cpp_buffers));
    *prepared = new dualgemm_prepared{std::move(weights)};
    return {};
  });
}

dualgemm_status dualgemm_prepared_size(const dualgemm_prepared* prepared, int64_t* bytes) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(prepared, "prepared"));
    DUALGEMM_TRY(require(bytes, "bytes"));
    *bytes = prepared->weights.size_bytes();
    return {};
  });
}

void dualgemm_prepared_destroy(dualgemm_prepared* prepared) noexcept { delete prepared; }

dualgemm_status dualgemm_plan_prepared_descriptor(
    const dualgemm_plan* plan, dualgemm_prepared_descriptor* descriptor) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    DUALGEMM_TRY(require(descriptor, "descriptor"));
    DUALGEMM_CAPI_TRY_VALUE(made, prepared_descriptor(plan->plan));
    *descriptor = from_descriptor(made);
    return {};
  });
}

dualgemm_status dualgemm_prepare_into(const dualgemm_plan* plan, const dualgemm_buffers* buffers,
                                      void* memory, int64_t bytes) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_buffers(buffers, &view));
    return prepare(plan->plan, cpp_buffers, memory, bytes);
  });
}

dualgemm_status dualgemm_prepared_read_header(const void* header, int64_t bytes,
                                              dualgemm_prepared_descriptor* descriptor) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(descriptor, "descriptor"));
    DUALGEMM_CAPI_TRY_VALUE(found, read_prepared_header(header, bytes));
    *descriptor = from_descriptor(found);
    return {};
  });
}

dualgemm_status dualgemm_prepared_open(const void* memory, int64_t bytes,
                                       dualgemm_prepared_view* view) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(view, "view"));
    DUALGEMM_CAPI_TRY_VALUE(found, open_prepared(memory, bytes));
    *view = from_view(found);
    return {};
  });
}

dualgemm_status dualgemm_prepared_experts(const dualgemm_prepared_view* all, int64_t first,
                                          int64_t count, dualgemm_prepared_view* some) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(all, "all"));
    DUALGEMM_TRY(require(some, "some"));
    DUALGEMM_CAPI_TRY_VALUE(found, prepared_experts(to_view(*all), first, count));
    *some = from_view(found);
    return {};
  });
}

dualgemm_status dualgemm_prepared_get_view(const dualgemm_prepared* prepared,
                                           dualgemm_prepared_view* view) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(prepared, "prepared"));
    DUALGEMM_TRY(require(view, "view"));
    *view = from_view(prepared->weights.view());
    return {};
  });
}

dualgemm_status dualgemm_prepared_borrow(const dualgemm_prepared_view* view,
                                         dualgemm_prepared** prepared) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(prepared, "prepared"));
    *prepared = nullptr;
    DUALGEMM_TRY(require(view, "view"));
    DUALGEMM_CAPI_TRY_VALUE(handle, PreparedWeights::borrow(to_view(*view)));
    *prepared = new dualgemm_prepared{std::move(handle)};
    return {};
  });
}

dualgemm_status dualgemm_workspace_create(const dualgemm_plan* plan,
                                          dualgemm_workspace** workspace) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(workspace, "workspace"));
    *workspace = nullptr;
    DUALGEMM_TRY(require(plan, "plan"));
    DUALGEMM_CAPI_TRY_VALUE(memory, Workspace::allocate(plan->plan));
    *workspace = new dualgemm_workspace{std::move(memory)};
    return {};
  });
}

void* dualgemm_workspace_data(const dualgemm_workspace* workspace) noexcept {
  return workspace == nullptr ? nullptr : workspace->memory.data();
}
int64_t dualgemm_workspace_size(const dualgemm_workspace* workspace) noexcept {
  return workspace == nullptr ? 0 : workspace->memory.size_bytes();
}

void dualgemm_workspace_destroy(dualgemm_workspace* workspace) noexcept { delete workspace; }

dualgemm_status dualgemm_run(const dualgemm_plan* plan, const dualgemm_buffers* buffers,
                             void* workspace, int64_t workspace_bytes,
                             dualgemm_run_info* info) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    if (info != nullptr) DUALGEMM_TRY(check_output_struct("info", info));
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_buffers(buffers, &view));
    RunInfo cpp_info;
    DUALGEMM_TRY(run(plan->plan, cpp_buffers, workspace, workspace_bytes, &cpp_info));
    if (info != nullptr) write_struct(from_run_info(cpp_info), info);
    return {};
  });
}

dualgemm_status dualgemm_run_once(const dualgemm_problem* problem, const dualgemm_buffers* buffers,
                                  const dualgemm_plan_options* options,
                                  dualgemm_run_info* info) noexcept {
  return guarded([&]() -> Status {
    if (info != nullptr) DUALGEMM_TRY(check_output_struct("info", info));
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_problem(problem));
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_buffers(buffers, &view));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_plan_options(options));
    RunInfo cpp_info;
    DUALGEMM_TRY(run(cpp_problem, cpp_buffers, cpp_options, &cpp_info));
    if (info != nullptr) write_struct(from_run_info(cpp_info), info);
    return {};
  });
}

dualgemm_status dualgemm_get_device_info(dualgemm_device_info* info) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(check_output_struct("info", info));
    write_struct(from_device_caps(device_caps()), info);
    return {};
  });
}

dualgemm_status dualgemm_experimental_strategies(int32_t* strategies, size_t capacity,
                                                 size_t* count) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(count, "count"));
    const auto all = all_strategies();
    *count = all.size();
    if (strategies == nullptr && capacity == 0) return {};
    DUALGEMM_TRY(require(strategies, "strategies"));
    if (capacity < all.size()) {
      return Status::invalid("capacity", std::to_string(capacity),
                             "must be at least " + std::to_string(all.size()));
    }
    for (size_t i = 0; i < all.size(); ++i) strategies[i] = static_cast<int32_t>(all[i]);
    return {};
  });
}
