#include "fake_cuda/streams.hpp"

#include <algorithm>
#include <utility>

namespace ptxsim::cuda {
namespace {

constexpr uint32_t kStreamNonBlocking = 1;   // cudaStreamNonBlocking
constexpr uintptr_t kLastDefaultStream = 2;  // cudaStreamLegacy is 1, cudaStreamPerThread 2

template <class T>
T* find_in(const std::set<std::unique_ptr<T>>& all, void* handle) {
  for (const auto& one : all)
    if (one.get() == handle) return one.get();
  return nullptr;
}

template <class T>
Status destroy_in(std::set<std::unique_ptr<T>>& all, void* handle) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == handle; });
  if (found == all.end()) return kInvalidHandle;
  all.erase(found);
  return kSuccess;
}

}  // namespace

Stream* Streams::find(void* handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= kLastDefaultStream) return &default_stream_;
  return find_in(streams_, handle);
}

Stream* Streams::create(uint32_t flags, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->flags = flags;
  stream->priority = priority;
  stream->id = ++next_id_;
  return streams_.insert(std::move(stream)).first->get();
}

Status Streams::destroy(void* handle) {
  const Status status = finish_waiting();
  return status != kSuccess ? status : destroy_in(streams_, handle);
}

Event* Streams::find_event(void* handle) { return find_in(events_, handle); }

Event* Streams::create_event(uint32_t flags) {
  auto event = std::make_unique<Event>();
  event->flags = flags;
  return events_.insert(std::move(event)).first->get();
}

Status Streams::destroy_event(void* handle) { return destroy_in(events_, handle); }

Graph* Streams::find_graph(void* handle) { return find_in(graphs_, handle); }

Graph* Streams::add_graph(Graph graph) {
  return graphs_.insert(std::make_unique<Graph>(std::move(graph))).first->get();
}

// The bodies of conditional nodes go with their graph.
Status Streams::destroy_graph(void* handle) {
  if (const Graph* graph = find_graph(handle))
    for (const GraphNode& node : graph->nodes)
      if (node.work.conditional != nullptr)
        for (void* body : node.work.conditional->bodies) destroy_graph(body);
  return destroy_in(graphs_, handle);
}

GraphNode* Streams::add_node(Graph& graph, NodeWork work, std::vector<uint64_t> after) {
  graph.nodes.push_back({++next_id_, std::move(work), std::move(after)});
  return &graph.nodes.back();
}

GraphNode* Streams::find_node(void* handle, Graph** graph) {
  for (const auto& one : graphs_)
    for (GraphNode& node : one->nodes) {
      if (&node != handle) continue;
      if (graph != nullptr) *graph = one.get();
      return &node;
    }
  return nullptr;
}

bool Streams::has_instance_of(uint64_t node) const {
  return std::ranges::any_of(graphs_, [&](const auto& graph) {
    return graph->is_instance && graph->node(node) != nullptr;
  });
}

Graph* Streams::graph_of(Capture& capture) {
  Graph* const graph = find_graph(capture.graph);
  if (graph == nullptr) capture.invalidated = true;
  return capture.invalidated ? nullptr : graph;
}

// The legacy default stream and the others wait for each other, but for those that were made not
// to.
Status Streams::issue_in(Stream& stream, NodeWork work) {
  if (stream.capture != nullptr) {
    Graph* const graph = graph_of(*stream.capture);
    if (graph == nullptr) return kStreamCaptureInvalidated;
    stream.tail = {add_node(*graph, std::move(work), stream.tail)->number};
    return kSuccess;
  }
  // Copies and fills in the default stream are those of calls without a stream, for which the host
  // waits.
  const bool host_waits = &stream == &default_stream_ && work.type != NodeType::kKernel &&
                          work.type != NodeType::kGraph;
  if (host_waits)
    if (const Status status = finish_waiting(); status != kSuccess) return status;
  const Status status = waiting_.empty() ? do_work(stream, work, !host_waits) : Status{kWaits};
  if (status == kWaits) {
    waiting_.push_back({&stream, std::move(work)});
    return kSuccess;
  }
  if (host_waits) order_.host_waited_for(stream.known);
  return status;
}

Status Streams::do_work(Stream& stream, const NodeWork& work, bool may_wait) {
  join(stream.known, order_.known_to_host());
  if (&stream != &default_stream_) {
    if ((stream.flags & kStreamNonBlocking) == 0) {
      default_stream_.chain->clear();
      join(stream.known, default_stream_.known);
    }
  } else {
    for (const auto& one : streams_)
      if ((one->flags & kStreamNonBlocking) == 0) {
        one->chain->clear();
        join(stream.known, one->known);
      }
  }
  ++stream.known[stream.id];
  Stream* const outer = std::exchange(current_, &stream);
  const bool outer_may_wait = std::exchange(may_wait_, may_wait && work.type == NodeType::kKernel);
  const Status status = work.operation();
  may_wait_ = outer_may_wait;
  current_ = outer;
  return status;
}

Status Streams::do_waiting(bool may_wait) {
  Status first_failure = kSuccess;
  while (!waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Status status = do_work(*next.stream, next.work, may_wait);
    if (status == kWaits) {
      waiting_.push_front(std::move(next));
      return kWaits;
    }
    if (first_failure == kSuccess) first_failure = status;
  }
  return first_failure;
}

Status Streams::try_waiting() {
  const Status status = do_waiting(true);
  return status == kWaits ? kNotReady : status;
}

Status Streams::finish_waiting() { return do_waiting(false); }

Status Streams::in_turn(Stream& stream, const Operation& operation) {
  if (waiting_.empty()) return operation();
  waiting_.push_back({&stream, {NodeType::kEmpty, operation, nullptr, nullptr}});
  return kSuccess;
}

std::vector<Report> Streams::touched(const std::shared_ptr<const GridTrail>& trail) {
  if (streams_.empty() || current_ == nullptr || trail == nullptr) return {};
  return order_.add(current_->id, current_->known, trail);
}

Status Streams::synchronize_host() {
  const Status status = finish_waiting();
  finish_all();
  order_.host_waited_for(default_stream_.known);
  for (const auto& one : streams_) order_.host_waited_for(one->known);
  return status;
}

Status Streams::issue(void* handle, const Operation& operation, NodeType type,
                      const WorkParameters& parameters) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  return issue_in(*stream, {type,
                            [chain = stream->chain, operation] {
                              chain->clear();
                              return operation();
                            },
                            nullptr, nullptr, parameters});
}

Status Streams::issue_grid(void* handle, const GridOperation& operation,
                           std::shared_ptr<const LaunchRequest> request) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  return issue_in(
      *stream, {NodeType::kKernel, [chain = stream->chain, operation] { return operation(*chain); },
                std::move(request), stream->chain});
}

// All of the stream before the graph is over when it begins, and all of the graph when it ends. A
// launch comes after those of the same instance in other streams, too.
Status Streams::launch_graph(void* graph_handle, void* stream_handle) {
  Graph* graph = find_graph(graph_handle);
  if (graph == nullptr) return kInvalidValue;
  Stream* stream = find(stream_handle);
  if (stream == nullptr) return kInvalidHandle;
  const bool is_captured = stream->capture != nullptr;
  if (!is_captured) join(stream->known, graph->known);
  const Status status = issue(
      stream_handle, [graph = *graph] { return graph.run(); }, NodeType::kGraph);
  if (!is_captured) graph->known = stream->known;
  return status;
}

Status Streams::record(void* event_handle, void* stream_handle) {
  Event* event = find_event(event_handle);
  Stream* stream = find(stream_handle);
  if (event == nullptr || stream == nullptr) return kInvalidHandle;
  event->capture = stream->capture;
  event->tail = stream->tail;
  if (event->capture != nullptr) return kSuccess;
  return in_turn(*stream, [this, event_handle, stream] {
    if (Event* found = find_event(event_handle)) record_now(*found, *stream);
    return kSuccess;
  });
}

void Streams::record_now(Event& event, const Stream& stream) {
  event.known = stream.known;
  if (&stream == &default_stream_)
    for (const auto& one : streams_)
      if ((one->flags & kStreamNonBlocking) == 0) join(event.known, one->known);
  event.recorded = std::chrono::steady_clock::now();
}

// A stream that waits for an event of a capture joins it.
Status Streams::wait(void* stream_handle, void* event_handle) {
  Event* event = find_event(event_handle);
  Stream* stream = find(stream_handle);
  if (event == nullptr || stream == nullptr) return kInvalidHandle;
  if (event->capture != nullptr && stream->capture == nullptr)
    join_capture(*stream, event->capture);
  else if (event->capture != nullptr && stream->capture != event->capture)
    return kInvalidHandle;
  else if (stream->capture == nullptr)
    stream->chain->clear();  // what comes next waits for more than the grid before it
  if (event->capture == nullptr)
    return in_turn(*stream, [this, event_handle, stream] {
      if (const Event* found = find_event(event_handle)) join(stream->known, found->known);
      return kSuccess;
    });
  for (const uint64_t number : event->tail)
    if (std::ranges::count(stream->tail, number) == 0) stream->tail.push_back(number);
  return kSuccess;
}

Status Streams::elapsed(void* start_handle, void* end_handle, float& milliseconds) {
  if (const Status status = try_waiting(); status != kSuccess) return status;
  const Event* start = find_event(start_handle);
  const Event* end = find_event(end_handle);
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded)
    return kInvalidHandle;
  if (((start->flags | end->flags) & kEventDisableTiming) != 0) return kInvalidHandle;
  milliseconds =
      std::chrono::duration<float, std::milli>(*end->recorded - *start->recorded).count();
  return kSuccess;
}

void Streams::join_capture(Stream& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  stream.chain = std::make_shared<GridChain>();
  stream.tail.clear();
  if (Graph* graph = graph_of(*capture)) graph->chains.push_back(stream.chain);
}

Status Streams::begin_capture(void* handle, Graph* into, std::vector<uint64_t> after) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream == &default_stream_) return kStreamCaptureUnsupported;
  if (stream->capture != nullptr) return kIllegalState;
  const auto capture = std::make_shared<Capture>();
  capture->id = ++next_id_;
  capture->is_own = into == nullptr;
  capture->graph = capture->is_own ? add_graph({}) : into;
  join_capture(*stream, capture);
  stream->tail = std::move(after);
  stream->is_origin = true;
  return kSuccess;
}

Status Streams::end_capture(void* handle, Graph*& graph) {
  graph = nullptr;
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->capture == nullptr || !stream->is_origin) return kIllegalState;
  const std::shared_ptr<Capture> capture = stream->capture;
  for (const auto& one : streams_)
    if (one->capture == capture) {
      one->capture = nullptr;
      one->is_origin = false;
      one->tail.clear();
      one->chain = std::make_shared<GridChain>();
    }
  graph = graph_of(*capture);
  if (graph != nullptr) return kSuccess;
  if (capture->is_own) destroy_graph(capture->graph);
  return kStreamCaptureInvalidated;
}

// What comes next waits for whole nodes: the grid before it in the stream need not be among them.
Status Streams::change_tail(Stream& stream, const std::vector<uint64_t>& nodes, bool besides) {
  if (stream.capture == nullptr) return kIllegalState;
  Graph* const graph = graph_of(*stream.capture);
  if (graph == nullptr) return kStreamCaptureInvalidated;
  if (!besides) stream.tail.clear();
  for (const uint64_t number : nodes)
    if (std::ranges::count(stream.tail, number) == 0) stream.tail.push_back(number);
  stream.chain = std::make_shared<GridChain>();
  graph->chains.push_back(stream.chain);
  return kSuccess;
}

Status Streams::synchronize(void* handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->capture == nullptr) {
    if (const Status status = finish_waiting(); status != kSuccess) return status;
    stream->chain->clear();
    order_.host_waited_for(stream->known);
    if (stream == &default_stream_)  // which waits for the others
      for (const auto& one : streams_)
        if ((one->flags & kStreamNonBlocking) == 0) order_.host_waited_for(one->known);
    return kSuccess;
  }
  stream->capture->invalidated = true;
  return kStreamCaptureUnsupported;
}

void Streams::finish_all() {
  default_stream_.chain->clear();
  for (const auto& one : streams_) one->chain->clear();
}

// It need not have been recorded after the last launch; what it was recorded after is not known
// here.
Status Streams::synchronize_event(void* handle) {
  const Event* const event = find_event(handle);
  if (event == nullptr) return kInvalidHandle;
  if (const Status status = finish_waiting(); status != kSuccess) return status;
  finish_all();
  order_.host_waited_for(event->known);
  return kSuccess;
}

Status Streams::synchronize_all() {
  Status status = synchronize_host();
  for (const auto& one : streams_)
    if (one->capture != nullptr) {
      one->capture->invalidated = true;
      status = kStreamCaptureUnsupported;
    }
  return status;
}

}  // namespace ptxsim::cuda
