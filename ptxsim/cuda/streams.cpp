#include "ptxsim/cuda/streams.hpp"

#include <algorithm>
#include <utility>

namespace ptxsim::cuda {
namespace {

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

Status Streams::destroy(void* handle) { return destroy_in(streams_, handle); }

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

Status Streams::destroy_graph(void* handle) { return destroy_in(graphs_, handle); }

Status Streams::issue(void* handle, Operation operation) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->capture == nullptr) return operation();
  if (stream->capture->invalidated) return kStreamCaptureInvalidated;
  stream->capture->graph.operations.push_back(std::move(operation));
  return kSuccess;
}

Status Streams::record(void* event_handle, void* stream_handle) {
  Event* event = find_event(event_handle);
  Stream* stream = find(stream_handle);
  if (event == nullptr || stream == nullptr) return kInvalidHandle;
  event->capture = stream->capture;
  if (event->capture == nullptr) event->recorded = std::chrono::steady_clock::now();
  return kSuccess;
}

// A stream that waits for an event of a capture joins it.
Status Streams::wait(void* stream_handle, void* event_handle) {
  Event* event = find_event(event_handle);
  Stream* stream = find(stream_handle);
  if (event == nullptr || stream == nullptr) return kInvalidHandle;
  if (event->capture == nullptr || stream->capture == event->capture) return kSuccess;
  if (stream->capture != nullptr) return kInvalidHandle;
  stream->capture = event->capture;
  return kSuccess;
}

Status Streams::elapsed(void* start_handle, void* end_handle, float& milliseconds) {
  const Event* start = find_event(start_handle);
  const Event* end = find_event(end_handle);
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded)
    return kInvalidHandle;
  if (((start->flags | end->flags) & kEventDisableTiming) != 0) return kInvalidHandle;
  milliseconds =
      std::chrono::duration<float, std::milli>(*end->recorded - *start->recorded).count();
  return kSuccess;
}

Status Streams::begin_capture(void* handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream == &default_stream_) return kStreamCaptureUnsupported;
  if (stream->capture != nullptr) return kIllegalState;
  stream->capture = std::make_shared<Capture>();
  stream->capture->id = ++next_id_;
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
    }
  if (capture->invalidated) return kStreamCaptureInvalidated;
  graph = add_graph(std::move(capture->graph));
  return kSuccess;
}

Status Streams::synchronize(void* handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->capture == nullptr) return kSuccess;
  stream->capture->invalidated = true;
  return kStreamCaptureUnsupported;
}

Status Streams::synchronize_all() {
  Status status = kSuccess;
  for (const auto& one : streams_)
    if (one->capture != nullptr) {
      one->capture->invalidated = true;
      status = kStreamCaptureUnsupported;
    }
  return status;
}

}  // namespace ptxsim::cuda
