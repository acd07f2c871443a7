// What nodes of graphs do, by their parameters, and how they are found.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fake_cuda/abi.hpp"
#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {

// kInvalidValue, or what a launch gives: parameters that no node may have. What those of a kernel
// do not say stays as it was in `old`: clusters, cooperation, overlap.
Status make_kernel(Session& session, const abi::KernelParameters& p, const NodeWork& old,
                   NodeWork& work);
Status make_memset(Session& session, const abi::MemsetParameters& p, NodeWork& work);
Status make_host(Session& session, const abi::HostParameters& p, NodeWork& work);
Status make_child(Session& session, void* graph, NodeWork& work);
// An IF, WHILE or SWITCH node with empty bodies, which it adds to the session's graphs.
Status make_conditional(Session& session, abi::ConditionalParameters& p, NodeWork& work);

// Nodes that allocate and free memory. An allocation has its address from here on, in `p`.
Status make_allocation(Session& session, abi::AllocationParameters& p, NodeWork& work);
Status make_free(Session& session, const abi::FreeParameters& p, NodeWork& work);
// What an instance allocates and does not free must not be there when it is launched, or is freed
// then.
void prepare_memory(Session& session, Graph& instance);
// A graph with nodes that allocate or free is instantiated once at a time (CUDA 13.0,
// cudaGraphAddMemAllocNode).
bool has_other_instance(Session& session, const Graph& graph);

// Neither a clone nor a child node may have it: it has conditional nodes, or such as allocate or
// free.
bool has_uncopied_nodes(const Graph& graph);

// Appends the numbers of nodes that must all be of `graph`.
inline Status numbers_of(Session& session, const Graph& graph, void* const* nodes, size_t count,
                         std::vector<uint64_t>& numbers) {
  for (size_t i = 0; i < count; ++i) {
    Graph* its_graph = nullptr;
    const GraphNode* node = session.streams.find_node(nodes[i], &its_graph);
    if (node == nullptr || its_graph != &graph) return kInvalidValue;
    numbers.push_back(node->number);
  }
  return kSuccess;
}

// f(Session&, NodeWork&) -> Status
template <class F>
int add_node(void** node, void* graph, void* const* others, size_t num_others, F&& f) {
  return call([&](Session& session) {
    Graph* found = session.streams.find_graph(graph);
    if (found == nullptr || node == nullptr) return kInvalidValue;
    std::vector<uint64_t> after;
    if (const Status status = numbers_of(session, *found, others, num_others, after);
        status != kSuccess)
      return status;
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

}  // namespace ptxsim::cuda::runtime
