// Parameters of nodes, as they are and others for them, in a graph or in an instance of it; nodes
// by their parameters.
#include <memory>
#include <variant>
#include <vector>

#include "fake_cuda/runtime/copy.hpp"
#include "fake_cuda/runtime/graph_node.hpp"
#include "fake_cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

struct UpdateResult {  // cudaGraphExecUpdateResultInfo
  int result;
  void *node, *node_of_other;
};

int set_kernel(void* executable, void* node, const abi::KernelParameters* parameters) {
  return with_node(executable, node, NodeType::kKernel, [&](Session& session, GraphNode& found) {
    return parameters == nullptr ? kInvalidValue
                                 : make_kernel(session, *parameters, found.work, found.work);
  });
}

// make(Session&, const Parameters&, NodeWork&) -> Status
template <class Parameters>
int set_parameters(void* executable, void* node, NodeType type, const Parameters* parameters,
                   Status (*make)(Session&, const Parameters&, NodeWork&)) {
  return with_node(executable, node, type, [&](Session& session, GraphNode& found) {
    return parameters == nullptr ? kInvalidValue : make(session, *parameters, found.work);
  });
}

// A node that was captured has them only where it is one copy.
template <class Parameters>
int get_parameters(void* node, NodeType type, Parameters* parameters) {
  return with_node(nullptr, node, type, [&](Session& session, GraphNode& found) {
    const auto* known = std::get_if<Parameters>(&found.work.parameters);
    if (parameters == nullptr) return kInvalidValue;
    if (known == nullptr) {
      session.recorder.refused("parameters of a graph's node", kNotSupported,
                               "those of a node that was captured are not modelled", false);
      return kNotSupported;
    }
    *parameters = *known;
    return kSuccess;
  });
}

Status refuse_type(Session& session, const char* function, int type) {
  session.recorder.refused(function, kNotSupported,
                           "nodes of type " + std::to_string(type) + " are not modelled", false);
  return kNotSupported;
}

// Makes a node of any type but a kernel's; a kernel keeps its old parameters where none are given.
Status make_any(Session& session, const char* function, abi::NodeParameters& p, NodeWork& work) {
  switch (static_cast<NodeType>(p.type)) {
    case NodeType::kKernel:
      return make_kernel(session, p.kernel, NodeWork(work), work);
    case NodeType::kMemcpy:
      return make_copy(session, p.memcpy.copy, work);
    case NodeType::kMemset:
      return make_memset(session, p.memset, work);
    case NodeType::kHost:
      return make_host(session, p.host, work);
    case NodeType::kGraph:
      return make_child(session, p.child.graph, work);
    case NodeType::kEmpty:
      return kSuccess;
    case NodeType::kMemoryAllocation:
      return make_allocation(session, p.allocation, work);
    case NodeType::kMemoryFree:
      return make_free(session, p.free, work);
    case NodeType::kConditional:
      return make_conditional(session, p.conditional, work);
  }
  return refuse_type(session, function, p.type);
}

int set_any(const char* function, void* executable, void* node, abi::NodeParameters* p) {
  if (p == nullptr) return remember(kInvalidValue);
  const auto type = static_cast<NodeType>(p->type);
  return with_node(executable, node, type, [&](Session& session, GraphNode& found) {
    if (type == NodeType::kConditional) return refuse_type(session, function, p->type);
    if (is_of_memory(type)) return kInvalidValue;  // an address stays as it is
    return make_any(session, function, *p, found.work);
  });
}

}  // namespace

// The pointers are to the node's own copies, and live until its parameters are set again.
PTXSIM_CUDA_API int cudaGraphKernelNodeGetParams(void* node, abi::KernelParameters* parameters) {
  return with_node(nullptr, node, NodeType::kKernel, [&](Session&, GraphNode& found) {
    static thread_local std::vector<void*> arguments;
    const LaunchRequest& request = *found.work.launch;
    const Entry& entry = *request.kernel->entry;
    arguments.clear();
    for (uint32_t i = 0; i < entry.num_params; ++i)
      arguments.push_back(const_cast<uint8_t*>(request.params.data()) + entry.variables[i].offset);
    const auto dim = [](const Dim3& d) { return abi::Dim{d[0], d[1], d[2]}; };
    *parameters = {Registry::get().host_of(*request.kernel),
                   dim(request.grid),
                   dim(request.block),
                   request.dynamic_shared_bytes,
                   arguments.data(),
                   nullptr};
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGraphKernelNodeSetParams(void* node,
                                                 const abi::KernelParameters* parameters) {
  return set_kernel(nullptr, node, parameters);
}
PTXSIM_CUDA_API int cudaGraphExecKernelNodeSetParams(void* executable, void* node,
                                                     const abi::KernelParameters* parameters) {
  return set_kernel(executable, node, parameters);
}

PTXSIM_CUDA_API int cudaGraphMemcpyNodeGetParams(void* node, abi::Copy3D* parameters) {
  return get_parameters(node, NodeType::kMemcpy, parameters);
}
PTXSIM_CUDA_API int cudaGraphMemcpyNodeSetParams(void* node, const abi::Copy3D* parameters) {
  return set_parameters(nullptr, node, NodeType::kMemcpy, parameters, make_copy);
}
PTXSIM_CUDA_API int cudaGraphExecMemcpyNodeSetParams(void* executable, void* node,
                                                     const abi::Copy3D* parameters) {
  return set_parameters(executable, node, NodeType::kMemcpy, parameters, make_copy);
}
PTXSIM_CUDA_API int cudaGraphMemsetNodeGetParams(void* node, abi::MemsetParameters* parameters) {
  return get_parameters(node, NodeType::kMemset, parameters);
}
PTXSIM_CUDA_API int cudaGraphMemsetNodeSetParams(void* node,
                                                 const abi::MemsetParameters* parameters) {
  return set_parameters(nullptr, node, NodeType::kMemset, parameters, make_memset);
}
PTXSIM_CUDA_API int cudaGraphExecMemsetNodeSetParams(void* executable, void* node,
                                                     const abi::MemsetParameters* parameters) {
  return set_parameters(executable, node, NodeType::kMemset, parameters, make_memset);
}
PTXSIM_CUDA_API int cudaGraphHostNodeGetParams(void* node, abi::HostParameters* parameters) {
  return get_parameters(node, NodeType::kHost, parameters);
}
PTXSIM_CUDA_API int cudaGraphHostNodeSetParams(void* node, const abi::HostParameters* parameters) {
  return set_parameters(nullptr, node, NodeType::kHost, parameters, make_host);
}
PTXSIM_CUDA_API int cudaGraphExecHostNodeSetParams(void* executable, void* node,
                                                   const abi::HostParameters* parameters) {
  return set_parameters(executable, node, NodeType::kHost, parameters, make_host);
}

PTXSIM_CUDA_API int cudaGraphAddNode(void** node, void* graph, void* const* others, const void*,
                                     size_t num_others, abi::NodeParameters* parameters) {
  if (parameters == nullptr) return remember(kInvalidValue);
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_any(session, "cudaGraphAddNode", *parameters, work);
  });
}
PTXSIM_CUDA_API int cudaGraphNodeSetParams(void* node, abi::NodeParameters* parameters) {
  return set_any("cudaGraphNodeSetParams", nullptr, node, parameters);
}
PTXSIM_CUDA_API int cudaGraphExecNodeSetParams(void* executable, void* node,
                                               abi::NodeParameters* parameters) {
  return set_any("cudaGraphExecNodeSetParams", executable, node, parameters);
}

PTXSIM_CUDA_API int cudaGraphExecUpdate(void* executable, void* graph, UpdateResult* result) {
  constexpr int kUpdated = 0, kTopologyChanged = 2;  // cudaGraphExecUpdateResult
  return call([&](Session& session) {
    Graph* ours = session.streams.find_graph(executable);
    const Graph* theirs = session.streams.find_graph(graph);
    if (ours == nullptr || theirs == nullptr) return kInvalidValue;
    Graph sorted = *theirs;
    sorted.frees_at_launch = ours->frees_at_launch;
    prepare_memory(session, sorted);
    const bool taken = sorted.instantiate() == kSuccess && take_work(*ours, sorted);
    if (result != nullptr) *result = {taken ? kUpdated : kTopologyChanged, nullptr, nullptr};
    return taken ? kSuccess : kGraphExecUpdateFailure;
  });
}

}  // namespace ptxsim::cuda::runtime
