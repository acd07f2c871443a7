// Nodes of graphs: made one by one, looked at, and given other parameters, in a graph or in an instance of it. The names
// and arguments are those of CUDA 13.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "ptxsim/cuda/issue.hpp"
#include "ptxsim/cuda/runtime/call.hpp"
#include "ptxsim/cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

struct KernelParameters {  // cudaKernelNodeParams
  const void* function;
  abi::Dim grid, block;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};
struct MemsetParameters {  // cudaMemsetParams
  void* to;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
};
struct HostParameters {  // cudaHostNodeParams
  void (*function)(void*);
  void* argument;
};
struct UpdateResult {  // cudaGraphExecUpdateResultInfo
  int result;
  void *node, *node_of_other;
};

NodeWork kernel_work(Session& session, LaunchRequest request,
                     const std::shared_ptr<GridChain>& chain) {
  const auto shared = std::make_shared<const LaunchRequest>(std::move(request));
  return {NodeType::kKernel,
          [&session, shared, chain] {
            GridChain own;  // edges of a graph that was made by hand order whole grids
            return session.launch(*shared, chain == nullptr ? own : *chain);
          },
          shared, chain};
}

// What the new parameters do not say stays as it was: clusters, cooperation, overlap.
Status make_kernel(Session& session, const KernelParameters& p, const NodeWork& old,
                   NodeWork& work) {
  LaunchRequest request = old.launch == nullptr ? LaunchRequest{} : *old.launch;
  request.kernel = session.find_kernel(const_cast<void*>(p.function));
  if (request.kernel == nullptr)
    if (const Status status = Registry::get().kernel_of(session, p.function, request.kernel);
        status != kSuccess)
      return status;
  request.grid = abi::extents_of(p.grid);
  request.block = abi::extents_of(p.block);
  request.dynamic_shared_bytes = p.shared_bytes;
  if (p.extra != nullptr) return kNotSupported;
  if (const Status status = prepare_launch(session, request, p.arguments); status != kSuccess)
    return status;
  work = kernel_work(session, std::move(request), old.chain);
  return kSuccess;
}

NodeWork copy_work(Session& session, void* to, const void* from, size_t bytes) {
  return {NodeType::kMemcpy, [=, &session] { return session.memory.copy(to, from, bytes); },
          nullptr, nullptr};
}
NodeWork host_work(const HostParameters& p) {
  return {NodeType::kHost,
          [p] {
            p.function(p.argument);
            return kSuccess;
          },
          nullptr, nullptr};
}
Status make_memset(Session& session, const MemsetParameters& p, NodeWork& work) {
  if (p.element_bytes != 1 && p.element_bytes != 2 && p.element_bytes != 4) return kInvalidValue;
  const auto fill = [p, &session] {
    Status status = kSuccess;
    for (size_t row = 0; row < p.height && status == kSuccess; ++row)
      status = session.memory.fill(static_cast<char*>(p.to) + row * p.pitch, &p.value,
                                   p.element_bytes, p.width);
    return status;
  };
  work = {NodeType::kMemset, fill, nullptr, nullptr};
  return kSuccess;
}

// f(Session&, NodeWork&) -> Status
template <class F>
int add_node(void** node, void* graph, void* const* others, size_t num_others, F&& f) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (found == nullptr || node == nullptr) return kInvalidValue;
    std::vector<uint64_t> after;
    for (size_t i = 0; i < num_others; ++i) {
      Graph* its_graph = nullptr;
      const GraphNode* other = session.streams.find_node(others[i], &its_graph);
      if (other == nullptr || its_graph != found) return kInvalidValue;
      after.push_back(other->number);
    }
    NodeWork work;
    const Status status = f(session, work);
    if (status == kSuccess)
      *node = session.streams.add_node(*found, std::move(work), std::move(after));
    return status;
  });
}

// The node itself, or that of the instance `executable` that was made of it.
template <class F>
int with_node(void* executable, void* handle, NodeType type, F&& f) {
  return call([&](Session& session) {
    GraphNode* node = session.streams.find_node(handle);
    if (node != nullptr && executable != nullptr) {
      Graph* graph = session.streams.find_graph(executable);
      node = graph == nullptr ? nullptr : graph->node(node->number);
    }
    if (node == nullptr || node->work.type != type) return kInvalidValue;
    return f(session, *node);
  });
}

// As CUDA gives lists: how many there are, or, with room for them, so many of them.
template <class T>
Status give_list(const std::vector<T*>& all, void** list, size_t* count) {
  if (count == nullptr) return kInvalidValue;
  if (list != nullptr)
    for (size_t i = 0; i < *count; ++i) list[i] = i < all.size() ? all[i] : nullptr;
  *count = list == nullptr ? all.size() : std::min(*count, all.size());
  return kSuccess;
}

int set_kernel(void* executable, void* node, const KernelParameters* parameters) {
  return with_node(executable, node, NodeType::kKernel, [&](Session& session, GraphNode& found) {
    return parameters == nullptr ? kInvalidValue
                                 : make_kernel(session, *parameters, found.work, found.work);
  });
}

}  // namespace

PTXSIM_CUDA_API int cudaGraphCreate(void** graph, unsigned) {
  return call([&](Session& session) {
    *graph = session.streams.add_graph({});
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGraphClone(void** clone, void* graph) {
  return call([&](Session& session) {
    const Graph* found = session.streams.find_graph(graph);
    if (found == nullptr) return kInvalidValue;
    *clone = session.streams.add_graph(*found);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaGraphAddEmptyNode(void** node, void* graph, void* const* others,
                                          size_t num_others) {
  return add_node(node, graph, others, num_others, [](Session&, NodeWork&) { return kSuccess; });
}
PTXSIM_CUDA_API int cudaGraphAddKernelNode(void** node, void* graph, void* const* others,
                                           size_t num_others, const KernelParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_kernel(session, *parameters, {}, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddMemsetNode(void** node, void* graph, void* const* others,
                                           size_t num_others, const MemsetParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_memset(session, *parameters, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddMemcpyNode1D(void** node, void* graph, void* const* others,
                                             size_t num_others, void* to, const void* from,
                                             size_t bytes, int) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    work = copy_work(session, to, from, bytes);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGraphAddHostNode(void** node, void* graph, void* const* others,
                                         size_t num_others, const HostParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session&, NodeWork& work) {
    work = host_work(*parameters);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGraphAddChildGraphNode(void** node, void* graph, void* const* others,
                                               size_t num_others, void* child) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    const Graph* found = session.streams.find_graph(child);
    if (found == nullptr) return kInvalidValue;
    Graph copy = *found;
    const Status status = copy.sort();
    work = {NodeType::kGraph, [copy] { return copy.run(); }, nullptr, nullptr};
    return status;
  });
}
PTXSIM_CUDA_API int cudaGraphAddDependencies(void* graph, void* const* from, void* const* to,
                                             const void*, size_t count) {
  return call([&](Session& session) {
    if (session.streams.find_graph(graph) == nullptr) return kInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      const GraphNode* first = session.streams.find_node(from[i]);
      GraphNode* second = session.streams.find_node(to[i]);
      if (first == nullptr || second == nullptr) return kInvalidValue;
      second->after.push_back(first->number);
    }
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaGraphGetNodes(void* graph, void** nodes, size_t* count) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (found == nullptr) return kInvalidValue;
    std::vector<GraphNode*> all;
    for (GraphNode& node : found->nodes) all.push_back(&node);
    return give_list(all, nodes, count);
  });
}
PTXSIM_CUDA_API int cudaGraphGetRootNodes(void* graph, void** nodes, size_t* count) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (found == nullptr) return kInvalidValue;
    std::vector<GraphNode*> roots;
    for (GraphNode& node : found->nodes)
      if (node.after.empty()) roots.push_back(&node);
    return give_list(roots, nodes, count);
  });
}
PTXSIM_CUDA_API int cudaGraphGetEdges(void* graph, void** from, void** to, void*, size_t* count) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (found == nullptr) return kInvalidValue;
    std::vector<GraphNode*> first, second;
    for (GraphNode& node : found->nodes)
      for (const uint64_t number : node.after) {
        first.push_back(found->node(number));
        second.push_back(&node);
      }
    size_t same = count == nullptr ? 0 : *count;
    if (const Status status = give_list(first, from, &same); status != kSuccess) return status;
    return give_list(second, to, count);
  });
}
PTXSIM_CUDA_API int cudaGraphNodeGetDependencies(void* node, void** others, void*, size_t* count) {
  return call([&](Session& session) {
    Graph* graph = nullptr;
    const GraphNode* found = session.streams.find_node(node, &graph);
    if (found == nullptr) return kInvalidValue;
    std::vector<GraphNode*> all;
    for (const uint64_t number : found->after) all.push_back(graph->node(number));
    return give_list(all, others, count);
  });
}
PTXSIM_CUDA_API int cudaGraphNodeGetType(void* node, int* type) {
  return call([&](Session& session) {
    const GraphNode* found = session.streams.find_node(node);
    if (found == nullptr) return kInvalidValue;
    *type = static_cast<int>(found->work.type);
    return kSuccess;
  });
}
// Edges of the node go with it.
PTXSIM_CUDA_API int cudaGraphDestroyNode(void* node) {
  return call([&](Session& session) {
    Graph* graph = nullptr;
    const GraphNode* found = session.streams.find_node(node, &graph);
    if (found == nullptr) return kInvalidValue;
    const uint64_t number = found->number;
    for (GraphNode& one : graph->nodes) std::erase(one.after, number);
    graph->nodes.remove_if([&](const GraphNode& one) { return one.number == number; });
    return kSuccess;
  });
}

// The pointers are to the node's own copies, and live until its parameters are set again.
PTXSIM_CUDA_API int cudaGraphKernelNodeGetParams(void* node, KernelParameters* parameters) {
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
PTXSIM_CUDA_API int cudaGraphKernelNodeSetParams(void* node, const KernelParameters* parameters) {
  return set_kernel(nullptr, node, parameters);
}
PTXSIM_CUDA_API int cudaGraphExecKernelNodeSetParams(void* executable, void* node,
                                                     const KernelParameters* parameters) {
  return set_kernel(executable, node, parameters);
}
PTXSIM_CUDA_API int cudaGraphExecMemcpyNodeSetParams1D(void* executable, void* node, void* to,
                                                       const void* from, size_t bytes, int) {
  return with_node(executable, node, NodeType::kMemcpy, [&](Session& session, GraphNode& found) {
    found.work = copy_work(session, to, from, bytes);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGraphExecMemsetNodeSetParams(void* executable, void* node,
                                                     const MemsetParameters* parameters) {
  return with_node(executable, node, NodeType::kMemset, [&](Session& session, GraphNode& found) {
    return make_memset(session, *parameters, found.work);
  });
}
PTXSIM_CUDA_API int cudaGraphExecHostNodeSetParams(void* executable, void* node,
                                                   const HostParameters* parameters) {
  return with_node(executable, node, NodeType::kHost, [&](Session&, GraphNode& found) {
    found.work = host_work(*parameters);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaGraphExecUpdate(void* executable, void* graph, UpdateResult* result) {
  constexpr int kUpdated = 0, kTopologyChanged = 2;  // cudaGraphExecUpdateResult
  return call([&](Session& session) {
    Graph* ours = session.streams.find_graph(executable);
    const Graph* theirs = session.streams.find_graph(graph);
    if (ours == nullptr || theirs == nullptr) return kInvalidValue;
    Graph sorted = *theirs;
    const bool taken = sorted.sort() == kSuccess && take_work(*ours, sorted);
    if (result != nullptr) *result = {taken ? kUpdated : kTopologyChanged, nullptr, nullptr};
    return taken ? kSuccess : kGraphExecUpdateFailure;
  });
}

}  // namespace ptxsim::cuda::runtime
