// Recorded work, kept under a key and replayed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

class GraphCache {
 public:
  using Key = std::vector<uint64_t>;

  // Enqueues on `stream` what `enqueue` puts into a stream: recorded at the first call with `key`,
  // replayed afterwards. The kCapacity keys used last are kept. If `stream` is itself recording,
  // the work becomes part of that recording. Thread-safe.
  Status replay(const Key& key, cudaStream_t stream,
                const std::function<Status(cudaStream_t)>& enqueue);

  int64_t recordings() const;  // made so far

  static constexpr size_t kCapacity = 16;

 private:
  struct Destroy {
    using pointer = cudaGraphExec_t;
    void operator()(cudaGraphExec_t graph) const noexcept;
  };
  struct Entry {
    Key key;
    std::unique_ptr<CUgraphExec_st, Destroy> graph;
  };

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // used last: first
  int64_t recordings_ = 0;
};

}  // namespace dualgemm::cuda
