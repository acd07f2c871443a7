// A CUDA graph that is destroyed with its owner.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace dualgemm::cuda {

struct DestroyGraph {
  using pointer = cudaGraph_t;
  void operator()(cudaGraph_t graph) const noexcept { static_cast<void>(cudaGraphDestroy(graph)); }
};
using Graph = std::unique_ptr<CUgraph_st, DestroyGraph>;

}  // namespace dualgemm::cuda
