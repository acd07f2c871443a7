// Copies as nodes of graphs that are given by two pointers, or by a variable and a pointer.
#include "fake_cuda/runtime/copy.hpp"
#include "fake_cuda/runtime/graph_node.hpp"
#include "fake_cuda/runtime/registry.hpp"

namespace ptxsim::cuda::runtime {
namespace {

int set_copy(void* executable, void* node, void* to, const void* from, size_t bytes,
             int direction) {
  return with_node(executable, node, NodeType::kMemcpy, [&](Session& session, GraphNode& found) {
    return make_copy(session, copy_of_bytes(to, from, bytes, direction), found.work);
  });
}

// The address of the variable's byte `offset`.
Status address_of(Session& session, const void* symbol, size_t offset, size_t bytes,
                  void*& address) {
  LoadedModule* module = nullptr;
  ModuleVariable* variable = nullptr;
  const Status status = Registry::get().variable_of(session, symbol, module, variable);
  if (status != kSuccess) return status;
  if (offset > variable->bytes || bytes > variable->bytes - offset) return kInvalidValue;
  address = reinterpret_cast<void*>(variable->address + offset);
  return kSuccess;
}

Status copy_to_symbol(Session& session, const void* symbol, const void* from, size_t bytes,
                      size_t offset, int direction, NodeWork& work) {
  void* to = nullptr;
  const Status status = address_of(session, symbol, offset, bytes, to);
  return status != kSuccess ? status
                            : make_copy(session, copy_of_bytes(to, from, bytes, direction), work);
}
Status copy_from_symbol(Session& session, void* to, const void* symbol, size_t bytes, size_t offset,
                        int direction, NodeWork& work) {
  void* from = nullptr;
  const Status status = address_of(session, symbol, offset, bytes, from);
  return status != kSuccess ? status
                            : make_copy(session, copy_of_bytes(to, from, bytes, direction), work);
}

}  // namespace

PTXSIM_CUDA_API int cudaGraphAddMemcpyNode(void** node, void* graph, void* const* others,
                                           size_t num_others, const abi::Copy3D* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return parameters == nullptr ? kInvalidValue : make_copy(session, *parameters, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddMemcpyNode1D(void** node, void* graph, void* const* others,
                                             size_t num_others, void* to, const void* from,
                                             size_t bytes, int direction) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return make_copy(session, copy_of_bytes(to, from, bytes, direction), work);
  });
}
PTXSIM_CUDA_API int cudaGraphMemcpyNodeSetParams1D(void* node, void* to, const void* from,
                                                   size_t bytes, int direction) {
  return set_copy(nullptr, node, to, from, bytes, direction);
}
PTXSIM_CUDA_API int cudaGraphExecMemcpyNodeSetParams1D(void* executable, void* node, void* to,
                                                       const void* from, size_t bytes,
                                                       int direction) {
  return set_copy(executable, node, to, from, bytes, direction);
}

PTXSIM_CUDA_API int cudaGraphAddMemcpyNodeToSymbol(void** node, void* graph, void* const* others,
                                                   size_t num_others, const void* symbol,
                                                   const void* from, size_t bytes, size_t offset,
                                                   int direction) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return copy_to_symbol(session, symbol, from, bytes, offset, direction, work);
  });
}
PTXSIM_CUDA_API int cudaGraphAddMemcpyNodeFromSymbol(void** node, void* graph, void* const* others,
                                                     size_t num_others, void* to,
                                                     const void* symbol, size_t bytes,
                                                     size_t offset, int direction) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return copy_from_symbol(session, to, symbol, bytes, offset, direction, work);
  });
}
PTXSIM_CUDA_API int cudaGraphExecMemcpyNodeSetParamsToSymbol(void* executable, void* node,
                                                             const void* symbol, const void* from,
                                                             size_t bytes, size_t offset,
                                                             int direction) {
  return with_node(executable, node, NodeType::kMemcpy, [&](Session& session, GraphNode& found) {
    return copy_to_symbol(session, symbol, from, bytes, offset, direction, found.work);
  });
}
PTXSIM_CUDA_API int cudaGraphMemcpyNodeSetParamsToSymbol(void* node, const void* symbol,
                                                         const void* from, size_t bytes,
                                                         size_t offset, int direction) {
  return cudaGraphExecMemcpyNodeSetParamsToSymbol(nullptr, node, symbol, from, bytes, offset,
                                                  direction);
}
PTXSIM_CUDA_API int cudaGraphExecMemcpyNodeSetParamsFromSymbol(void* executable, void* node,
                                                               void* to, const void* symbol,
                                                               size_t bytes, size_t offset,
                                                               int direction) {
  return with_node(executable, node, NodeType::kMemcpy, [&](Session& session, GraphNode& found) {
    return copy_from_symbol(session, to, symbol, bytes, offset, direction, found.work);
  });
}
PTXSIM_CUDA_API int cudaGraphMemcpyNodeSetParamsFromSymbol(void* node, void* to, const void* symbol,
                                                           size_t bytes, size_t offset,
                                                           int direction) {
  return cudaGraphExecMemcpyNodeSetParamsFromSymbol(nullptr, node, to, symbol, bytes, offset,
                                                    direction);
}

}  // namespace ptxsim::cuda::runtime
