// Graphs: captured from streams, or made node by node. Nodes are done one after another, in an
// order that their edges allow.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <variant>
#include <vector>

#include "fake_cuda/abi.hpp"
#include "fake_cuda/status.hpp"
#include "fake_cuda/stream_order.hpp"
#include "ptxsim/machine/grid_trail.hpp"

namespace ptxsim::cuda {

struct LaunchRequest;
using Operation = std::function<Status()>;

enum class NodeType : int {
  kKernel,
  kMemcpy,
  kMemset,
  kHost,
  kGraph,
  kEmpty,
  kMemoryAllocation = 10,
  kMemoryFree,
  kConditional = 13
};  // cudaGraphNodeType
inline bool is_of_memory(NodeType type) {
  return type == NodeType::kMemoryAllocation || type == NodeType::kMemoryFree;
}

struct Graph;

// A node that runs one of its bodies, or none, as a value says that kernels set
// (cudaGraphSetConditional).
struct Conditional {
  enum Type : int { kIf, kWhile, kSwitch };  // cudaGraphConditionalNodeType
  Type type = kIf;
  std::function<Status(uint32_t&)> value;
  Operation endless;  // what a loop gives that does not end
  // Graphs, which the program fills. They are taken as they are when the graph is instantiated.
  std::vector<void*> bodies;
};
// The body of a WHILE node runs no more often than this: what has not ended then does not end.
inline constexpr uint64_t kMostIterations = 1'000'000;

// What the program can ask for, and set.
using WorkParameters =
    std::variant<std::monostate, abi::Copy3D, abi::MemsetParameters, abi::HostParameters,
                 abi::AllocationParameters, abi::FreeParameters>;

struct NodeWork {
  NodeType type = NodeType::kEmpty;
  Operation operation;                          // null: nothing to do
  std::shared_ptr<const LaunchRequest> launch;  // of a kernel, and
  std::shared_ptr<GridChain> chain;             // of its stream, where it was captured
  WorkParameters parameters = {};
  std::shared_ptr<const Conditional> conditional = {};  // of a graph that is not instantiated
};

// cudaGraphNode_t points to one. Copies, in clones and in graphs to be executed, have the number of
// the original.
struct GraphNode {
  uint64_t number = 0;
  NodeWork work;
  std::vector<uint64_t> after;  // numbers of other nodes
};

// cudaGraph_t and cudaGraphExec_t point to one.
struct Graph {
  std::list<GraphNode> nodes;
  std::vector<std::shared_ptr<GridChain>> chains;  // of the streams that were captured
  std::vector<Operation> at_begin = {};  // of each run: conditional handles get their defaults
  bool is_body = false;                  // of a conditional node, and goes with it
  bool is_instance = false;
  // What an instance allocates and does not free, a launch of it frees first
  // (cudaGraphInstantiateFlagAutoFreeOnLaunch).
  bool frees_at_launch = false;
  // What the next launch of an instance comes after, too: its launches never overlap.
  StreamClock known = {};

  GraphNode* node(uint64_t number);
  // kInvalidValue: the edges go in a circle.
  Status sort();
  // In the order of its edges, with copies of the bodies of conditional nodes: what is done to the
  // original later does not change it. kInvalidValue: as for sort(), or a body has what no body may
  // have.
  Status instantiate();
  Status run() const;
};

// The other graph's work in the place of this one's. False: it has other nodes or edges.
bool take_work(Graph& graph, const Graph& other);

}  // namespace ptxsim::cuda
