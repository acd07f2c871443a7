#include "cuda/runtime/recorded_calls.hpp"

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/graph.hpp"

namespace dualgemm::cuda {
namespace {

Status enqueue_all(int calls, cudaStream_t stream,
                   const std::function<Status(void*, int)>& enqueue) {
  for (int call = 0; call < calls; ++call) DUALGEMM_TRY(enqueue(stream, call));
  return {};
}

// The capture is ended even if a call failed, so that the stream leaves it.
Status capture(int calls, cudaStream_t stream, const std::function<Status(void*, int)>& enqueue,
               Graph& graph) {
  DUALGEMM_CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const Status enqueued = enqueue_all(calls, stream, enqueue);
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
  graph.reset(captured);
  DUALGEMM_TRY(enqueued);
  DUALGEMM_CUDA_TRY(ended);
  return {};
}

}  // namespace

void RecordedCalls::Destroy::operator()(cudaGraphExec_t graph) const noexcept {
  static_cast<void>(cudaGraphExecDestroy(graph));  // a destructor cannot report an error
}

Expected<RecordedCalls> RecordedCalls::record(int calls, cudaStream_t stream,
                                              const std::function<Status(void*, int)>& enqueue) {
  Graph graph;
  DUALGEMM_TRY(capture(calls, stream, enqueue, graph));
  cudaGraphExec_t executable = nullptr;
  DUALGEMM_CUDA_TRY(cudaGraphInstantiate(&executable, graph.get(), 0));
  RecordedCalls recorded;
  recorded.calls_ = calls;
  recorded.graph_.reset(executable);
  return recorded;
}

Status RecordedCalls::replay(cudaStream_t stream) const {
  DUALGEMM_CUDA_TRY(cudaGraphLaunch(graph_.get(), stream));
  return {};
}

}  // namespace dualgemm::cuda
