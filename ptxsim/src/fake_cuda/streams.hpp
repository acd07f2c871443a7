// Streams, events and graphs. Work is done when it is issued, in the order of issue, unless its
// stream is being captured: then it becomes a part of the graph, and is done when that is launched.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "fake_cuda/graphs.hpp"
#include "fake_cuda/status.hpp"
#include "fake_cuda/stream_order.hpp"

namespace ptxsim::cuda {

// A launch, given the launches of its stream before it.
using GridOperation = std::function<Status(GridChain&)>;

struct Capture {
  // What gets the nodes: the program's own, or one that the capture makes. It is not used once the
  // program has destroyed it.
  Graph* graph = nullptr;
  bool is_own = false;  // made by the capture
  uint64_t id = 0;
  bool invalidated = false;
};

struct Stream {
  uint32_t flags = 0;
  int priority = 0;
  uint64_t id = 0;
  std::shared_ptr<Capture> capture;  // nullptr: work is done at once
  bool is_origin = false;            // of the capture
  std::vector<uint64_t> tail;        // nodes that the next one of the capture comes after
  std::vector<GraphNode*> shown;     // those, as cudaStreamGetCaptureInfo last gave them
  // Grids that may overlap the next launch; one of its own for each capture.
  std::shared_ptr<GridChain> chain = std::make_shared<GridChain>();
  StreamClock known;  // what its next work comes after
};

struct Event {
  uint32_t flags = 0;
  std::optional<std::chrono::steady_clock::time_point> recorded;
  std::shared_ptr<Capture> capture;  // recorded in a stream that is being captured, and
  std::vector<uint64_t> tail;        // after which nodes
  StreamClock known;                 // what came before it
};

inline constexpr uint32_t kEventDisableTiming = 2;

class Streams {
 public:
  // Handles 0, 1 and 2 are the default streams. nullptr: no such stream.
  Stream* find(void* handle);
  Stream* create(uint32_t flags, int priority);
  Status destroy(void* handle);

  Event* find_event(void* handle);
  Event* create_event(uint32_t flags);
  Status destroy_event(void* handle);

  Graph* find_graph(void* handle);
  Graph* add_graph(Graph graph);
  Status destroy_graph(void* handle);
  GraphNode* add_node(Graph& graph, NodeWork work, std::vector<uint64_t> after);
  GraphNode* find_node(void* handle, Graph** graph = nullptr);  // of any graph
  bool has_instance_of(uint64_t node) const;  // a graph to be executed that has it

  // Does the operation, or captures it. Whatever is no launch waits for the grids before it, and
  // those after it wait for it.
  Status issue(void* stream, const Operation& operation, NodeType type = NodeType::kMemcpy,
               const WorkParameters& parameters = {});
  Status issue_grid(void* stream, const GridOperation& operation,
                    std::shared_ptr<const LaunchRequest> request);
  Status launch_graph(void* graph, void* stream);
  Status record(void* event, void* stream);
  Status wait(void* stream, void* event);
  // Time of the host between the two records. kInvalidHandle as CUDA: an event was not recorded, or
  // keeps no time.
  Status elapsed(void* start, void* end, float& milliseconds);
  // `into`: the graph that gets the nodes, the first of which come after those of `after`.
  Status begin_capture(void* stream, Graph* into = nullptr, std::vector<uint64_t> after = {});
  Status end_capture(void* stream, Graph*& graph);
  // The nodes that the stream's next one comes after, besides those of now or in place of them.
  Status change_tail(Stream& stream, const std::vector<uint64_t>& nodes, bool besides);
  // What may not be done to a stream that is being captured; the capture is then no longer valid.
  Status synchronize(void* stream);
  Status synchronize_all();
  Status synchronize_event(void* event);
  Status synchronize_host();  // a call that waits for all of the GPU's work
  // Work that waits for the host to store, and what was issued behind it, is tried again: when a
  // program asks whether it is done (kNotReady: it is not), or waits for it.
  Status try_waiting();
  Status finish_waiting();
  bool may_wait() const { return may_wait_; }  // the work under way may give kWaits

  // What the work under way has touched: races with other streams (R23). Nothing while there is one
  // stream alone.
  std::vector<Report> touched(const std::shared_ptr<const GridTrail>& trail);

 private:
  struct Waiting {
    Stream* stream;
    NodeWork work;
  };
  Status issue_in(Stream& stream, NodeWork work);
  Status do_work(Stream& stream, const NodeWork& work, bool may_wait);
  Status do_waiting(bool may_wait);
  // With work that waits, behind it; else at once.
  Status in_turn(Stream& stream, const Operation& operation);
  void record_now(Event& event, const Stream& stream);
  Graph* graph_of(Capture& capture);  // nullptr: it is not valid, or no longer
  void join_capture(Stream& stream, const std::shared_ptr<Capture>& capture);
  void finish_all();  // every grid is over

  std::set<std::unique_ptr<Stream>> streams_;
  std::set<std::unique_ptr<Event>> events_;
  std::set<std::unique_ptr<Graph>> graphs_;
  Stream default_stream_;
  Stream* current_ = nullptr;  // whose work is under way
  bool may_wait_ = false;
  std::deque<Waiting> waiting_;  // for the host, and what was issued behind that
  StreamOrder order_;
  uint64_t next_id_ = 1;
};

}  // namespace ptxsim::cuda
