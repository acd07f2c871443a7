// Nodes of graphs that allocate and free, what captured allocations are, and how much memory graphs
// have. Each launch allocates anew, at the address that the node has had from the start: what an
// earlier launch has written is not there any more.
#include <algorithm>
#include <string>

#include "fake_cuda/runtime/calls.hpp"
#include "fake_cuda/runtime/graph_node.hpp"

namespace ptxsim::cuda::runtime {
namespace {

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::string text_of(const abi::AllocationParameters& p) {
  return std::to_string(p.bytes) + " bytes of a graph's node";
}

Status refuse(Session& session, Status status, const std::string& message) {
  session.recorder.refused("cudaGraphLaunch", status, message);
  return status;
}

Status free_promised(Session& session, void* pointer) {
  const Status status = session.memory.release(address_of(pointer), false);
  return status == kSuccess ? status : refuse(session, status, "frees what is not allocated");
}

// What a launch of an instance begins with.
Status begin(Session& session, const abi::AllocationParameters& p, bool frees) {
  if (session.memory.allocations().count(address_of(p.address)) == 0) return kSuccess;
  if (frees) return session.memory.release(address_of(p.address), false);
  return refuse(session, kInvalidValue, text_of(p) + " are there still from an earlier launch");
}

bool is_freed_in(const Graph& graph, const void* address) {
  return std::ranges::any_of(graph.nodes, [&](const GraphNode& node) {
    const auto* freed = std::get_if<abi::FreeParameters>(&node.work.parameters);
    return freed != nullptr && freed->address == address;
  });
}

bool is_capturing(Session& session, void* handle) {
  const Stream* stream = session.streams.find(handle);
  return stream != nullptr && stream->capture != nullptr;
}

}  // namespace

// Pools are alike: what the parameters say of theirs has no effect.
Status make_allocation(Session& session, abi::AllocationParameters& p, NodeWork& work) {
  uint64_t address = 0;
  if (const Status status = session.memory.promise(p.bytes, address); status != kSuccess)
    return status;
  p.address = reinterpret_cast<void*>(address);
  work = {NodeType::kMemoryAllocation,
          [&session, p] {
            const Status status = session.memory.allocate_promised(address_of(p.address));
            return status == kSuccess ? status
                                      : refuse(session, status, text_of(p) + " for the launch");
          },
          nullptr, nullptr, p};
  return kSuccess;
}

Status make_free(Session& session, const abi::FreeParameters& p, NodeWork& work) {
  const Allocation* promised = session.memory.find_promised(p.address, 1);
  if (promised == nullptr || promised->address != address_of(p.address)) return kInvalidValue;
  work = {NodeType::kMemoryFree, [&session, p] { return free_promised(session, p.address); },
          nullptr, nullptr, p};
  return kSuccess;
}

void prepare_memory(Session& session, Graph& instance) {
  for (const GraphNode& node : instance.nodes) {
    const auto* p = std::get_if<abi::AllocationParameters>(&node.work.parameters);
    if (p != nullptr && !is_freed_in(instance, p->address))
      instance.at_begin.push_back([&session, allocation = *p, frees = instance.frees_at_launch] {
        return begin(session, allocation, frees);
      });
  }
}

bool has_other_instance(Session& session, const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const GraphNode& node) {
    return is_of_memory(node.work.type) && session.streams.has_instance_of(node.number);
  });
}

PTXSIM_CUDA_API int cudaGraphAddMemAllocNode(void** node, void* graph, void* const* others,
                                             size_t num_others,
                                             abi::AllocationParameters* parameters) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    return parameters == nullptr ? kInvalidValue : make_allocation(session, *parameters, work);
  });
}
PTXSIM_CUDA_API int cudaGraphMemAllocNodeGetParams(void* node,
                                                   abi::AllocationParameters* parameters) {
  return with_node(nullptr, node, NodeType::kMemoryAllocation, [&](Session&, GraphNode& found) {
    if (parameters == nullptr) return kInvalidValue;
    *parameters = std::get<abi::AllocationParameters>(found.work.parameters);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGraphAddMemFreeNode(void** node, void* graph, void* const* others,
                                            size_t num_others, void* pointer) {
  return add_node(node, graph, others, num_others, [&](Session& session, NodeWork& work) {
    if (is_freed_in(*session.streams.find_graph(graph), pointer)) return kInvalidValue;
    return make_free(session, {pointer}, work);
  });
}
PTXSIM_CUDA_API int cudaGraphMemFreeNodeGetParams(void* node, void** pointer) {
  return with_node(nullptr, node, NodeType::kMemoryFree, [&](Session&, GraphNode& found) {
    if (pointer == nullptr) return kInvalidValue;
    *pointer = std::get<abi::FreeParameters>(found.work.parameters).address;
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  bool is_captured = false;
  const int status = call([&](Session& session) {
    is_captured = is_capturing(session, stream);
    if (!is_captured) return kSuccess;
    if (pointer == nullptr) return kInvalidValue;
    abi::AllocationParameters p{};
    p.pool.type = 1;           // cudaMemAllocationTypePinned
    p.pool.location = {1, 0};  // the GPU
    p.bytes = bytes;
    NodeWork work;
    if (const Status made = make_allocation(session, p, work); made != kSuccess) return made;
    *pointer = p.address;
    return session.streams.issue(stream, work.operation, work.type, work.parameters);
  });
  return is_captured || status != kSuccess ? status : cudaMalloc(pointer, bytes);
}
PTXSIM_CUDA_ALIAS(cudaMallocAsync, _ptsz);
PTXSIM_CUDA_API int cudaMallocFromPoolAsync(void** pointer, size_t bytes, void*, void* stream) {
  return cudaMallocAsync(pointer, bytes, stream);
}
PTXSIM_CUDA_ALIAS(cudaMallocFromPoolAsync, _ptsz);

PTXSIM_CUDA_API int cudaFreeAsync(void* pointer, void* stream) {
  bool is_captured = false;
  const int status = call([&](Session& session) {
    is_captured = is_capturing(session, stream);
    if (!is_captured) return kSuccess;
    NodeWork work;
    if (const Status made = make_free(session, {pointer}, work); made != kSuccess) return made;
    return session.streams.issue(stream, work.operation, work.type, work.parameters);
  });
  return is_captured || status != kSuccess ? status : cudaFree(pointer);
}
PTXSIM_CUDA_ALIAS(cudaFreeAsync, _ptsz);

// How much of its memory graphs use, in bytes. Launches never overlap: those of several streams
// have the same memory one after the other.
PTXSIM_CUDA_API int cudaDeviceGetGraphMemAttribute(int, int attribute, void* value) {
  return call([&](Session& session) {
    const GraphMemory& memory = session.memory.of_graphs;
    const uint64_t values[] = {memory.used, memory.highest_used, memory.reserved,
                               memory.highest_reserved};  // cudaGraphMemAttributeType
    if (value == nullptr || attribute < 0 || attribute >= 4) return kInvalidValue;
    *static_cast<uint64_t*>(value) = values[attribute];
    return kSuccess;
  });
}
// The highest values begin anew.
PTXSIM_CUDA_API int cudaDeviceSetGraphMemAttribute(int, int attribute, void* value) {
  return call([&](Session& session) {
    GraphMemory& memory = session.memory.of_graphs;
    const bool is_highest = attribute == 1 || attribute == 3;
    if (value == nullptr || !is_highest || *static_cast<uint64_t*>(value) != 0)
      return kInvalidValue;
    (attribute == 1 ? memory.highest_used : memory.highest_reserved) =
        attribute == 1 ? memory.used : memory.reserved;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaDeviceGraphMemTrim(int) {
  return call([](Session& session) {
    session.memory.of_graphs.reserved = session.memory.of_graphs.used;
    return kSuccess;
  });
}

}  // namespace ptxsim::cuda::runtime
