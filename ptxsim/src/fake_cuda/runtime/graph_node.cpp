#include "fake_cuda/runtime/graph_node.hpp"

#include <algorithm>

#include "fake_cuda/issue.hpp"
#include "fake_cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

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

}  // namespace

Status make_kernel(Session& session, const abi::KernelParameters& p, const NodeWork& old,
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

Status make_host(Session&, const abi::HostParameters& p, NodeWork& work) {
  if (p.function == nullptr) return kInvalidValue;
  work = {NodeType::kHost,
          [p] {
            p.function(p.argument);
            return kSuccess;
          },
          nullptr, nullptr, p};
  return kSuccess;
}
Status make_memset(Session& session, const abi::MemsetParameters& p, NodeWork& work) {
  if (p.element_bytes != 1 && p.element_bytes != 2 && p.element_bytes != 4) return kInvalidValue;
  const auto fill = [p, &session] {
    Status status = kSuccess;
    for (size_t row = 0; row < p.height && status == kSuccess; ++row)
      status = session.memory.fill(static_cast<char*>(p.to) + row * p.pitch, &p.value,
                                   p.element_bytes, p.width);
    return status;
  };
  work = {NodeType::kMemset, fill, nullptr, nullptr, p};
  return kSuccess;
}

Status make_child(Session& session, void* graph, NodeWork& work) {
  const Graph* found = session.streams.find_graph(graph);
  if (found == nullptr || has_uncopied_nodes(*found)) return kInvalidValue;
  Graph copy = *found;
  const Status status = copy.sort();
  work = {NodeType::kGraph, [copy] { return copy.run(); }, nullptr, nullptr};
  return status;
}

// CUDA 13.0: driver_types.h, "cudaGraphNodeTypeConditional"; cudaGraphAddMemAllocNode.
bool has_uncopied_nodes(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
    return node.work.type == NodeType::kConditional || is_of_memory(node.work.type);
  });
}

}  // namespace ptxsim::cuda::runtime
