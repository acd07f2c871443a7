#include "fake_cuda/graphs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ptxsim::cuda {

namespace {

// CUDA 13.0, driver_types.h, "struct cudaConditionalNodeParams".
bool is_allowed_in_body(NodeType type) {
  return type == NodeType::kKernel || type == NodeType::kEmpty || type == NodeType::kGraph ||
         type == NodeType::kMemset || type == NodeType::kMemcpy || type == NodeType::kConditional;
}

// The index of the body that runs next; one that is none: no body does.
size_t body_of(Conditional::Type type, uint32_t value) {
  if (type == Conditional::kSwitch) return value;
  if (type == Conditional::kIf) return value != 0 ? 0 : 1;
  return value != 0 ? 0 : SIZE_MAX;
}

Status run_conditional(const Conditional& conditional, const std::vector<Graph>& bodies) {
  for (uint64_t iteration = 0; iteration < kMostIterations; ++iteration) {
    uint32_t value = 0;
    if (const Status status = conditional.value(value); status != kSuccess) return status;
    const size_t body = body_of(conditional.type, value);
    if (body >= bodies.size()) return kSuccess;
    if (const Status status = bodies[body].run(); status != kSuccess) return status;
    if (conditional.type != Conditional::kWhile) return kSuccess;
  }
  return conditional.endless();
}

}  // namespace

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

Status Graph::instantiate() {
  if (const Status status = sort(); status != kSuccess) return status;
  for (GraphNode& one : nodes) {
    const std::shared_ptr<const Conditional> conditional = std::move(one.work.conditional);
    if (conditional == nullptr) continue;
    const auto bodies = std::make_shared<std::vector<Graph>>();
    for (const void* body : conditional->bodies) {
      Graph copy = *static_cast<const Graph*>(body);
      for (const GraphNode& inner : copy.nodes)
        if (!is_allowed_in_body(inner.work.type)) return kInvalidValue;
      if (const Status status = copy.instantiate(); status != kSuccess) return status;
      bodies->push_back(std::move(copy));
    }
    one.work.operation = [conditional, bodies] { return run_conditional(*conditional, *bodies); };
  }
  return kSuccess;
}

Status Graph::run() const {
  for (const Operation& begin : at_begin)
    if (const Status status = begin(); status != kSuccess) return status;
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
  graph.at_begin = other.at_begin;
  return true;
}

}  // namespace ptxsim::cuda
