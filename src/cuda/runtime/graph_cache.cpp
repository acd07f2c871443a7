#include "cuda/runtime/graph_cache.hpp"

#include <algorithm>

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/graph.hpp"
#include "cuda/runtime/stream_pool.hpp"

namespace dualgemm::cuda {
namespace {

// On a stream of the library's own, as the caller's may be one that cannot be recorded. Relaxed: a
// library may load its kernels at their first use.
Status record(const std::function<Status(cudaStream_t)>& enqueue, cudaGraphExec_t* executable) {
  const Expected<BorrowedStream> borrowed = BorrowedStream::take();
  if (!borrowed) return borrowed.status();
  const cudaStream_t stream = borrowed->stream();
  DUALGEMM_CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  const Status enqueued = enqueue(stream);
  cudaGraph_t raw = nullptr;  // ended even after an error, so that the stream can be used again
  const cudaError_t ended = cudaStreamEndCapture(stream, &raw);
  const Graph graph(raw);
  DUALGEMM_TRY(enqueued);
  DUALGEMM_CUDA_TRY(ended);
  DUALGEMM_CUDA_TRY(cudaGraphInstantiate(executable, raw, 0));
  return {};
}

}  // namespace

// Work of the graph that still runs goes on to its end (CUDA Runtime API, "cudaGraphExecDestroy").
void GraphCache::Destroy::operator()(cudaGraphExec_t graph) const noexcept {
  static_cast<void>(cudaGraphExecDestroy(graph));
}

Status GraphCache::replay(const Key& key, cudaStream_t stream,
                          const std::function<Status(cudaStream_t)>& enqueue) {
  cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
  DUALGEMM_CUDA_TRY(cudaStreamIsCapturing(stream, &recording));
  if (recording != cudaStreamCaptureStatusNone) return enqueue(stream);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    cudaGraphExec_t executable = nullptr;
    DUALGEMM_TRY(record(enqueue, &executable));
    ++recordings_;
    entries_.emplace_front();
    entries_.front().key = key;
    entries_.front().graph.reset(executable);
    if (entries_.size() > kCapacity) entries_.pop_back();
  }
  DUALGEMM_CUDA_TRY(cudaGraphLaunch(entries_.front().graph.get(), stream));
  return {};
}

int64_t GraphCache::recordings() const {
  const std::lock_guard lock(mutex_);
  return recordings_;
}

}  // namespace dualgemm::cuda
