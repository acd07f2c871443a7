#include "cuda/runtime/graph_timer.hpp"

#include <cuda_runtime_api.h>

#include <memory>

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int kWarmUps = 2;

template <class Handle, cudaError_t (*kDestroy)(Handle)>
struct Destroy {
  using pointer = Handle;
  void operator()(Handle handle) const noexcept { static_cast<void>(kDestroy(handle)); }
};
using Stream = std::unique_ptr<CUstream_st, Destroy<cudaStream_t, cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, Destroy<cudaEvent_t, cudaEventDestroy>>;
using Graph = std::unique_ptr<CUgraph_st, Destroy<cudaGraph_t, cudaGraphDestroy>>;
using Executable = std::unique_ptr<CUgraphExec_st, Destroy<cudaGraphExec_t, cudaGraphExecDestroy>>;

Status enqueue_all(int calls, cudaStream_t stream,
                   const std::function<Status(void*, int)>& enqueue) {
  for (int call = 0; call < calls; ++call) DUALGEMM_TRY(enqueue(stream, call));
  return {};
}

// The graph is ended even if a call failed, so that the stream leaves the capture.
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

Expected<std::vector<double>> time_graph(int calls, int replays,
                                         const std::function<Status(void*, int)>& enqueue) {
  cudaStream_t raw_stream = nullptr;
  DUALGEMM_CUDA_TRY(cudaStreamCreateWithFlags(&raw_stream, cudaStreamNonBlocking));
  const Stream stream(raw_stream);
  cudaEvent_t raw_begin = nullptr, raw_end = nullptr;
  DUALGEMM_CUDA_TRY(cudaEventCreate(&raw_begin));
  const Event begin(raw_begin);
  DUALGEMM_CUDA_TRY(cudaEventCreate(&raw_end));
  const Event end(raw_end);

  Graph graph;
  DUALGEMM_TRY(capture(calls, raw_stream, enqueue, graph));
  cudaGraphExec_t raw_executable = nullptr;
  DUALGEMM_CUDA_TRY(cudaGraphInstantiate(&raw_executable, graph.get(), 0));
  const Executable executable(raw_executable);

  std::vector<double> seconds;
  for (int replay = -kWarmUps; replay < replays; ++replay) {
    DUALGEMM_CUDA_TRY(cudaEventRecord(raw_begin, raw_stream));
    DUALGEMM_CUDA_TRY(cudaGraphLaunch(raw_executable, raw_stream));
    DUALGEMM_CUDA_TRY(cudaEventRecord(raw_end, raw_stream));
    DUALGEMM_CUDA_TRY(cudaEventSynchronize(raw_end));
    float milliseconds = 0.0f;
    DUALGEMM_CUDA_TRY(cudaEventElapsedTime(&milliseconds, raw_begin, raw_end));
    if (replay >= 0) seconds.push_back(static_cast<double>(milliseconds) * 1e-3 / calls);
  }
  return seconds;
}

}  // namespace dualgemm::cuda
