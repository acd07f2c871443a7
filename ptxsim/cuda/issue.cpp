#include "ptxsim/cuda/issue.hpp"

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

Status issue_launch(Session& session, LaunchRequest request, void** arguments, void* stream) {
  LoadedModule::program_of(*request.kernel);  // its shared memory is part of what is checked
  const Status status = session.check_launch(request);
  if (status != kSuccess) return status;
  if (!session.take_parameters(*request.kernel, arguments, request.params)) return kInvalidValue;
  return session.streams.issue_grid(
      stream, [&session, request](GridChain& chain) { return session.launch(request, chain); });
}

}  // namespace ptxsim::cuda
