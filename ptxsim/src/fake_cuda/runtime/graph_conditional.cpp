// Conditional nodes. A handle is the address of a word of device memory: cudaGraphSetConditional of
// a kernel stores to it, with all checks of a store.
#include <cstring>
#include <string>

#include "fake_cuda/runtime/graph_node.hpp"

namespace ptxsim::cuda::runtime {
namespace {

constexpr unsigned kAssignDefault = 1;  // cudaGraphCondAssignDefault

GlobalBuffer* buffer_of(Session& session, uint64_t handle) {
  Location location;
  if (session.memory.locate(reinterpret_cast<void*>(handle), sizeof(uint32_t), location) !=
          kSuccess ||
      location.allocation == nullptr || location.allocation->home != Home::kCondition)
    return nullptr;
  return &session.memory.buffer_of(*location.allocation);
}

Status value_of(Session& session, uint64_t handle, uint32_t& value) {
  GlobalBuffer* buffer = buffer_of(session, handle);
  if (buffer == nullptr) return kInvalidValue;
  if (session.settings.options.check_uninitialized && !buffer->written[0]) {
    session.recorder.refused("cudaGraphLaunch", kLaunchFailed,
                             "the handle of a conditional node has no default, and no kernel has "
                             "set it in this launch",
                             false);
    return session.sticky = kLaunchFailed;
  }
  std::memcpy(&value, buffer->data.data(), sizeof value);
  return kSuccess;
}

// What a launch begins with: the default, or nothing that a program may rely on.
Status begin(Session& session, uint64_t handle, std::optional<uint32_t> value) {
  GlobalBuffer* buffer = buffer_of(session, handle);
  if (buffer == nullptr) return kInvalidValue;
  if (value) std::memcpy(buffer->data.data(), &*value, sizeof *value);
  buffer->written.assign(sizeof(uint32_t), value.has_value());
  return kSuccess;
}

}  // namespace

Status make_conditional(Session& session, abi::ConditionalParameters& p, NodeWork& work) {
  const bool is_known = p.type >= Conditional::kIf && p.type <= Conditional::kSwitch;
  const unsigned most = p.type == Conditional::kIf      ? 2
                        : p.type == Conditional::kWhile ? 1
                                                        : UINT32_MAX;
  if (!is_known || p.size < 1 || p.size > most || buffer_of(session, p.handle) == nullptr)
    return kInvalidValue;
  const auto conditional = std::make_shared<Conditional>();
  conditional->type = static_cast<Conditional::Type>(p.type);
  conditional->value = [&session, handle = p.handle](uint32_t& value) {
    return value_of(session, handle, value);
  };
  conditional->endless = [&session] {
    session.recorder.refused("cudaGraphLaunch", kLaunchTimeout,
                             "the body of a WHILE node ran " + std::to_string(kMostIterations) +
                                 " times, and the condition still holds",
                             false);
    return session.sticky = kLaunchTimeout;
  };
  for (unsigned i = 0; i < p.size; ++i) {
    Graph* body = session.streams.add_graph({});
    body->is_body = true;
    conditional->bodies.push_back(body);
  }
  p.bodies = conditional->bodies.data();
  work = {NodeType::kConditional, nullptr, nullptr, nullptr, {}, conditional};
  return kSuccess;
}

PTXSIM_CUDA_API int cudaGraphConditionalHandleCreate(uint64_t* handle, void* graph, unsigned value,
                                                     unsigned flags) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (handle == nullptr || found == nullptr || (flags & ~kAssignDefault) != 0)
      return kInvalidValue;
    uint64_t address = 0;
    const Status status = session.memory.allocate(Home::kCondition, sizeof(uint32_t), address);
    if (status != kSuccess) return status;
    const auto at_launch = (flags & kAssignDefault) != 0 ? std::optional(value) : std::nullopt;
    found->at_begin.push_back(
        [&session, address, at_launch] { return begin(session, address, at_launch); });
    *handle = address;
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaStreamBeginCaptureToGraph(void* stream, void* graph, void* const* others,
                                                  const void*, size_t num_others, int) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (found == nullptr) return kInvalidValue;
    std::vector<uint64_t> after;
    if (const Status status = numbers_of(session, *found, others, num_others, after);
        status != kSuccess)
      return status;
    return session.streams.begin_capture(stream, found, std::move(after));
  });
}

}  // namespace ptxsim::cuda::runtime
