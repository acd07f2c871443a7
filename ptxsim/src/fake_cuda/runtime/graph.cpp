// Graphs: captured, instantiated, launched. Their nodes: graph_nodes.cpp.
#include "fake_cuda/runtime/graph_node.hpp"

namespace ptxsim::cuda::runtime {

PTXSIM_CUDA_API int cudaStreamBeginCapture(void* stream, int) {
  return call([&](Session& session) { return session.streams.begin_capture(stream); });
}
PTXSIM_CUDA_ALIAS(cudaStreamBeginCapture, _ptsz);

PTXSIM_CUDA_API int cudaStreamEndCapture(void* stream, void** graph) {
  return call([&](Session& session) {
    Graph* made = nullptr;
    const Status status = session.streams.end_capture(stream, made);
    // A program that captures into a graph that it has need not ask for it.
    if (graph != nullptr) *graph = made;
    return status;
  });
}
PTXSIM_CUDA_ALIAS(cudaStreamEndCapture, _ptsz);

PTXSIM_CUDA_API int cudaStreamIsCapturing(void* handle, int* state) {
  return call([&](Session& session) {
    const Stream* stream = session.streams.find(handle);
    if (stream == nullptr) return kInvalidHandle;
    *state = stream->capture == nullptr ? 0 : stream->capture->invalidated ? 2 : 1;
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cudaStreamIsCapturing, _ptsz);

PTXSIM_CUDA_API int cudaStreamGetCaptureInfo(void* handle, int* state, unsigned long long* id,
                                             void** graph, GraphNode*** nodes, const void** edges,
                                             size_t* num_nodes) {
  return call([&](Session& session) {
    Stream* stream = session.streams.find(handle);
    if (stream == nullptr) return kInvalidHandle;
    const Capture* capture = stream->capture.get();
    *state = capture == nullptr ? 0 : capture->invalidated ? 2 : 1;
    if (id != nullptr && capture != nullptr) *id = capture->id;
    Graph* made = capture == nullptr ? nullptr : session.streams.find_graph(capture->graph);
    stream->shown.clear();
    if (made != nullptr)
      for (const uint64_t number : stream->tail) stream->shown.push_back(made->node(number));
    if (graph != nullptr) *graph = made;
    if (nodes != nullptr) *nodes = stream->shown.data();
    if (edges != nullptr) *edges = nullptr;  // all of them are whole dependencies
    if (num_nodes != nullptr) *num_nodes = stream->shown.size();
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cudaStreamGetCaptureInfo, _ptsz);

PTXSIM_CUDA_API int cudaStreamUpdateCaptureDependencies(void* handle, void* const* nodes,
                                                        const void*, size_t count, unsigned flags) {
  enum Change : unsigned { kAdd, kSet };  // cudaStreamUpdateCaptureDependenciesFlags
  return call([&](Session& session) {
    Stream* stream = session.streams.find(handle);
    if (stream == nullptr) return kInvalidHandle;
    if (stream->capture == nullptr) return kIllegalState;
    const Graph* graph = session.streams.find_graph(stream->capture->graph);
    std::vector<uint64_t> numbers;
    if (graph == nullptr || flags > kSet ||
        numbers_of(session, *graph, nodes, count, numbers) != kSuccess)
      return kInvalidValue;
    return session.streams.change_tail(*stream, numbers, flags == kAdd);
  });
}
PTXSIM_CUDA_ALIAS(cudaStreamUpdateCaptureDependencies, _ptsz);

PTXSIM_CUDA_API int cudaThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int current = 0;  // cudaStreamCaptureModeGlobal
  std::swap(*mode, current);
  return kSuccess;
}

PTXSIM_CUDA_API int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags) {
  constexpr unsigned long long kAutoFreeOnLaunch = 1;
  return call([&](Session& session) {
    const Graph* found = session.streams.find_graph(graph);
    if (found == nullptr || has_other_instance(session, *found)) return kInvalidValue;
    Graph made = *found;
    made.is_instance = true;
    made.frees_at_launch = (flags & kAutoFreeOnLaunch) != 0;
    prepare_memory(session, made);
    const Status status = made.instantiate();
    if (status == kSuccess) *executable = session.streams.add_graph(std::move(made));
    return status;
  });
}
PTXSIM_CUDA_API int cudaGraphInstantiateWithFlags(void** executable, void* graph,
                                                  unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}
PTXSIM_CUDA_API int cudaGraphUpload(void* executable, void*) {
  return call([&](Session& session) {
    return session.streams.find_graph(executable) == nullptr ? kInvalidValue : kSuccess;
  });
}

PTXSIM_CUDA_API int cudaGraphLaunch(void* executable, void* stream) {
  return call([&](Session& session) { return session.streams.launch_graph(executable, stream); });
}
PTXSIM_CUDA_ALIAS(cudaGraphLaunch, _ptsz);

PTXSIM_CUDA_API int cudaGraphDestroy(void* graph) {
  return call([&](Session& session) {
    const Graph* found = session.streams.find_graph(graph);
    return found != nullptr && found->is_body ? kInvalidValue
                                              : session.streams.destroy_graph(graph);
  });
}
PTXSIM_CUDA_API int cudaGraphExecDestroy(void* executable) { return cudaGraphDestroy(executable); }

}  // namespace ptxsim::cuda::runtime
