#include "ptxsim/cuda/graphs.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace ptxsim::cuda {

GraphNode* Graph::node(uint64_t number) {
  const auto found = std::ranges::find(nodes, number, &GraphNode::number);
  return found == nodes.end() ? nullptr : &*found;
}

Status Graph::sort() {
  std::set<uint64_t> done;
  std::list<GraphNode> sorted;
  while (!nodes.empty()) {
    const auto ready = std::ranges::find_if(nodes, [&](const GraphNode& n) {
      return std::ranges::all_of(n.after, [&](uint64_t other) { return done.count(other) != 0; });
    });
    if (ready == nodes.end()) break;
    done.insert(ready->number);
    sorted.splice(sorted.end(), nodes, ready);
  }
  const bool is_circle = !nodes.empty();
  sorted.splice(sorted.end(), nodes);
  nodes = std::move(sorted);
  return is_circle ? kInvalidValue : kSuccess;
}

Status Graph::run() const {
  for (const std::shared_ptr<GridChain>& chain : chains) chain->clear();
  for (const GraphNode& one : nodes)
    if (one.work.operation)
      if (const Status status = one.work.operation(); status != kSuccess) return status;
  return kSuccess;
}

bool take_work(Graph& graph, const Graph& other) {
  if (graph.nodes.size() != other.nodes.size()) return false;
  std::map<uint64_t, uint64_t> numbers;  // of the other graph's nodes -> of ours
  auto ours = graph.nodes.begin();
  for (const GraphNode& theirs : other.nodes) {
    std::set<uint64_t> edges;
    for (const uint64_t number : theirs.after) edges.insert(numbers[number]);
    if (ours->work.type != theirs.work.type ||
        edges != std::set<uint64_t>(ours->after.begin(), ours->after.end()))
      return false;
    numbers[theirs.number] = ours->number;
    ++ours;
  }
  ours = graph.nodes.begin();
  for (const GraphNode& theirs : other.nodes) (ours++)->work = theirs.work;
  graph.chains = other.chains;
  return true;
}

}  // namespace ptxsim::cuda
