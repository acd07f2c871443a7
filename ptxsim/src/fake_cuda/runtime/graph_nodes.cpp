// Nodes of graphs: made one by one, and looked at. Their parameters: graph_parameters.cpp,
// graph_copies.cpp. The names and arguments are those of CUDA 13.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "fake_cuda/runtime/graph_node.hpp"

namespace ptxsim::cuda::runtime {
namespace {

// As CUDA gives lists: how many there are, or, with room for them, so many of them.
template <class T>
Status give_list(const std::vector<T*>& all, void** list, size_t* count) {
  if (count == nullptr) return kInvalidValue;
  if (list != nullptr)
    for (size_t i = 0; i < *count; ++i) list[i] = i < all.size() ? all[i] : nullptr;
  *count = list == nullptr ? all.size() : std::min(*count, all.size());
  return kSuccess;
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
    if (found == nullptr || has_uncopied_nodes(*found)) return kInvalidValue;
    *clone = session.streams.add_graph(*found);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaGraphAddEmptyNode(void** node, void* graph, void* const* others,
                                          size_t num_others) {
  return add_node(node, graph, others, num_others, [](Session&, NodeWork&) { return kSuccess; });
}
PTXSIM_CUDA_API int cudaGraphAddKernelNode(void** node, void* graph, void* const* others,
                                           size_t num_others,
                                           const abi::KernelParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_kernel(session, *parameters, {}, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddMemsetNode(void** node, void* graph, void* const* others,
                                           size_t num_others,
                                           const abi::MemsetParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_memset(session, *parameters, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddHostNode(void** node, void* graph, void* const* others,
                                         size_t num_others, const abi::HostParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_host(session, *parameters, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddChildGraphNode(void** node, void* graph, void* const* others,
                                               size_t num_others, void* child) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_child(session, child, work);
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
    if (found->work.conditional != nullptr)
      for (void* body : found->work.conditional->bodies) session.streams.destroy_graph(body);
    for (GraphNode& one : graph->nodes) std::erase(one.after, number);
    graph->nodes.remove_if([&](const GraphNode& one) { return one.number == number; });
    return kSuccess;
  });
}

}  // namespace ptxsim::cuda::runtime
