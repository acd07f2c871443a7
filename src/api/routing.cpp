// route_tokens() and combine_tokens(): checks, then the backend of the device.
#include <vector>

#include "api/backend.hpp"
#include "api/guarded.hpp"
#include "core/arguments.hpp"
#include "core/enum_table.hpp"
#include "core/routing.hpp"
#include "dualgemm/experts.hpp"

namespace dualgemm {
namespace {

using api::guarded;

// run(backend), once all else has been looked at.
template <class Problem, class Buffers, class Run>
Status checked(const Problem& problem, const Buffers& buffers, const ExecutionOptions& options,
               const Run& run) {
  DUALGEMM_TRY(validate(problem));
  DUALGEMM_TRY(core::check_enumerator("device", options.device));
  DUALGEMM_TRY(core::check_not_negative("threads", options.threads));
  DUALGEMM_TRY(core::check_arrays(problem, buffers));
  const api::Backend& backend = api::backend_of(options.device);
  if (!options.trusted_pointers) {
    std::vector<api::NamedArray> arrays;
    for (const core::MemoryRange& range : core::arrays_of(problem, buffers).all)
      arrays.push_back({range.name, range.used() ? range.data : nullptr});
    DUALGEMM_TRY(backend.check_arrays(arrays, buffers.stream));
  }
  return run(backend);
}

}  // namespace

Status route_tokens(const RoutingProblem& problem, const RoutingBuffers& buffers,
                    const ExecutionOptions& options) {
  return guarded([&]() -> Status {
    return checked(problem, buffers, options, [&](const api::Backend& backend) {
      return backend.route_tokens(problem, buffers);
    });
  });
}

Status combine_tokens(const CombineProblem& problem, const CombineBuffers& buffers,
                      const ExecutionOptions& options) {
  return guarded([&]() -> Status {
    return checked(problem, buffers, options, [&](const api::Backend& backend) {
      return backend.combine_tokens(problem, buffers, options.threads);
    });
  });
}

}  // namespace dualgemm
