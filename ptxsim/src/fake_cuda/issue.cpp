#include "fake_cuda/issue.hpp"

#include <memory>
#include <utility>

namespace ptxsim::cuda {

void apply_attributes(LaunchRequest& request, const abi::LaunchAttribute* attributes,
                      uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (attributes[i].id == abi::kAttributeClusterDimension) {
      request.cluster = abi::extents_of(attributes[i].cluster);
      request.has_cluster = true;
    }
    if (attributes[i].id == abi::kAttributeCooperative)
      request.cooperative = attributes[i].cooperative != 0;
    if (attributes[i].id == abi::kAttributeProgrammaticStreamSerialization)
      request.overlaps = attributes[i].programmatic_stream_serialization != 0;
  }
}

Status prepare_launch(Session& session, LaunchRequest& request, void** arguments) {
  LoadedModule::program_of(*request.kernel);  // its shared memory is part of what is checked
  const Status status = session.check_launch(request);
  if (status != kSuccess) return status;
  return session.take_parameters(*request.kernel, arguments, request.params) ? kSuccess
                                                                             : kInvalidValue;
}

Status issue_launch(Session& session, LaunchRequest request, void** arguments, void* stream) {
  const Status status = prepare_launch(session, request, arguments);
  if (status != kSuccess) return status;
  const auto shared = std::make_shared<const LaunchRequest>(std::move(request));
  return session.streams.issue_grid(
      stream, [&session, shared](GridChain& chain) { return session.launch(*shared, chain); },
      shared);
}

}  // namespace ptxsim::cuda
