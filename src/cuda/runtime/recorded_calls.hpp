// Work that was captured once into a CUDA graph, to be replayed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

class RecordedCalls {
 public:
  // The graph is what `enqueue(stream, i)` for i = 0 .. calls-1 puts into `stream`; nothing runs.
  // `stream` is not the default one; enqueue gets it as void*.
  static Expected<RecordedCalls> record(int calls, cudaStream_t stream,
                                        const std::function<Status(void*, int)>& enqueue);

  int calls() const noexcept { return calls_; }
  Status replay(cudaStream_t stream) const;

 private:
  struct Destroy {
    using pointer = cudaGraphExec_t;
    void operator()(cudaGraphExec_t graph) const noexcept;
  };
  int calls_ = 0;
  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
};

}  // namespace dualgemm::cuda
