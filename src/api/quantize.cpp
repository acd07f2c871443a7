// quantize(), dequantize() and convert_scales(): checks, then the backend of the device.
#include "dualgemm/quantize.hpp"

#include <array>
#include <string>

#include "api/backend.hpp"
#include "api/guarded.hpp"
#include "core/arguments.hpp"
#include "core/enum_table.hpp"
#include "core/quantize_problem.hpp"
#include "core/row_transform.hpp"

namespace dualgemm {
namespace {

using api::guarded;

Expected<const api::Backend*> backend_for(const ExecutionOptions& options) {
  DUALGEMM_TRY(core::check_enumerator("device", options.device));
  DUALGEMM_TRY(core::check_not_negative("threads", options.threads));
  return &api::backend_of(options.device);
}

Status check_workspace_size(int64_t bytes, int64_t needed) {
  if (bytes >= needed) return {};
  return Status::error(StatusCode::kWorkspaceTooSmall, "workspace_bytes", std::to_string(bytes),
                       "must be at least " + std::to_string(needed));
}

Status check_places(const api::Backend& backend, const core::QuantizeArrays& arrays, void* stream,
                    const ExecutionOptions& options) {
  if (options.trusted_pointers) return {};
  const auto named = [](const core::MemoryRange& range) {
    return api::NamedArray{range.name, range.used() ? range.data : nullptr};
  };
  const std::array<api::NamedArray, 10> all{named(arrays.x),
                                            named(arrays.codes),
                                            named(arrays.scales),
                                            named(arrays.global_scale),
                                            named(arrays.found_scale),
                                            named(arrays.expert_rows),
                                            named(arrays.expert_offsets),
                                            named(arrays.row_experts),
                                            named(arrays.column_factors),
                                            named(arrays.workspace)};
  return backend.check_arrays(all, stream);
}

}  // namespace

Expected<QuantizeSizes> quantize_sizes(const QuantizeProblem& problem, DeviceKind device) {
  return guarded([&]() -> Expected<QuantizeSizes> {
    DUALGEMM_TRY(validate(problem));
    DUALGEMM_TRY(core::check_enumerator("device", device));
    const core::ResolvedQuantize resolved = core::resolve(problem);
    QuantizeSizes sizes = core::sizes_of(resolved);
    sizes.workspace = api::backend_of(device).quantize_workspace(resolved);
    return sizes;
  });
}

Status quantize(const QuantizeProblem& problem, const QuantizeBuffers& buffers,
                const ExecutionOptions& options) {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(validate(problem));
    const Expected<const api::Backend*> backend = backend_for(options);
    if (!backend) return backend.status();
    const core::ResolvedQuantize resolved = core::resolve(problem);
    const int64_t workspace = (*backend)->quantize_workspace(resolved);
    DUALGEMM_TRY(check_workspace_size(buffers.workspace_bytes, workspace));
    const core::QuantizeArrays arrays = core::arrays_of(resolved, buffers, workspace);
    DUALGEMM_TRY(core::check_arrays(resolved, arrays, true));
    DUALGEMM_TRY(check_places(**backend, arrays, buffers.stream, options));
    return (*backend)->quantize(resolved, buffers, options.threads);
  });
}

Status dequantize(const QuantizeProblem& problem, const DequantizeBuffers& buffers,
                  const ExecutionOptions& options) {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(validate(problem));
    const Expected<const api::Backend*> backend = backend_for(options);
    if (!backend) return backend.status();
    const core::ResolvedQuantize resolved = core::resolve(problem);
    const core::QuantizeArrays arrays = core::arrays_of(resolved, buffers);
    DUALGEMM_TRY(core::check_arrays(resolved, arrays, false));
    DUALGEMM_TRY(check_places(**backend, arrays, buffers.stream, options));
    return (*backend)->dequantize(resolved, buffers, options.threads);
  });
}

Status transform_rows(const TransformProblem& problem, const TransformBuffers& buffers,
                      const ExecutionOptions& options) {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(core::check_problem(problem));
    const Expected<const api::Backend*> backend = backend_for(options);
    if (!backend) return backend.status();
    DUALGEMM_TRY(core::check_arrays(problem, buffers));
    if (!options.trusted_pointers) {
      const std::array<api::NamedArray, 3> all{
          {{"x", buffers.x}, {"column_factors", buffers.column_factors}, {"y", buffers.y}}};
      DUALGEMM_TRY((*backend)->check_arrays(all, buffers.stream));
    }
    return (*backend)->transform_rows(problem, buffers, options.threads);
  });
}

Status convert_scales(const ScaleConversion& conversion, const uint8_t* src, uint8_t* dst,
                      void* stream, const ExecutionOptions& options) {
  return guarded([&]() -> Status {
    const Expected<core::ResolvedConversion> resolved = core::checked_conversion(conversion);
    if (!resolved) return resolved.status();
    const Expected<const api::Backend*> backend = backend_for(options);
    if (!backend) return backend.status();
    DUALGEMM_TRY(core::check_arrays(*resolved, src, dst));
    if (resolved->to_bytes == 0) return {};
    if (!options.trusted_pointers) {
      const std::array<api::NamedArray, 2> all{{{"src", src}, {"dst", dst}}};
      DUALGEMM_TRY((*backend)->check_arrays(all, stream));
    }
    return (*backend)->convert_scales(*resolved, src, dst, stream);
  });
}

}  // namespace dualgemm
