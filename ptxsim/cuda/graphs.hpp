// Graphs: captured from streams, or made node by node. Nodes are done one after another, in an order that their edges
// allow.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "ptxsim/cuda/status.hpp"
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
  kEmpty
};  // cudaGraphNodeType

struct NodeWork {
  NodeType type = NodeType::kEmpty;
  Operation operation;                          // null: nothing to do
  std::shared_ptr<const LaunchRequest> launch;  // of a kernel, and
  std::shared_ptr<GridChain> chain;             // of its stream, where it was captured
};

// cudaGraphNode_t points to one. Copies, in clones and in graphs to be executed, have the number of the original.
struct GraphNode {
  uint64_t number = 0;
  NodeWork work;
  std::vector<uint64_t> after;  // numbers of other nodes
};

// cudaGraph_t and cudaGraphExec_t point to one.
struct Graph {
  std::list<GraphNode> nodes;
  std::vector<std::shared_ptr<GridChain>> chains;  // of the streams that were captured

  GraphNode* node(uint64_t number);
  // kInvalidValue: the edges go in a circle.
  Status sort();
  Status run() const;
};

// The other graph's work in the place of this one's. False: it has other nodes or edges.
bool take_work(Graph& graph, const Graph& other);

}  // namespace ptxsim::cuda
