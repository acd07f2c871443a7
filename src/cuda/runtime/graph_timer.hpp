// How long work on the GPU takes: captured once into a CUDA graph and replayed between two events,
// so that neither the host nor the launches are measured.
#pragma once

#include <functional>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// `enqueue(stream, i)` for i = 0 .. calls-1 makes up the graph; `stream` is a cudaStream_t. Returns
// the seconds per call of each of `replays` replays; two more before them warm up and are not
// measured.
Expected<std::vector<double>> time_graph(int calls, int replays,
                                         const std::function<Status(void*, int)>& enqueue);

}  // namespace dualgemm::cuda
