#include "cuda/runtime/graph_timer.hpp"

#include <cuda_runtime_api.h>

#include <memory>

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/recorded_calls.hpp"

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

  const Expected<RecordedCalls> recorded = RecordedCalls::record(calls, raw_stream, enqueue);
  if (!recorded) return recorded.status();

  std::vector<double> seconds;
  for (int replay = -kWarmUps; replay < replays; ++replay) {
    DUALGEMM_CUDA_TRY(cudaEventRecord(raw_begin, raw_stream));
    DUALGEMM_TRY(recorded->replay(raw_stream));
    DUALGEMM_CUDA_TRY(cudaEventRecord(raw_end, raw_stream));
    DUALGEMM_CUDA_TRY(cudaEventSynchronize(raw_end));
    float milliseconds = 0.0f;
    DUALGEMM_CUDA_TRY(cudaEventElapsedTime(&milliseconds, raw_begin, raw_end));
    if (replay >= 0) seconds.push_back(static_cast<double>(milliseconds) * 1e-3 / calls);
  }
  return seconds;
}

}  // namespace dualgemm::cuda
