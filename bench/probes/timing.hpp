// How long launches take, one after the other.
#pragma once

#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/launch_value.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::bench {

// Median seconds a launch of `rounds` rounds of `calls` launches: replayed as a CUDA graph, or
// enqueued behind a spin that is long enough for the host to be ahead.
Expected<double> seconds_in_graph(const cuda::KernelLaunch& launch, int calls, int rounds);
Expected<double> seconds_in_stream(const cuda::KernelLaunch& launch, int calls, int rounds);

// Median clocks that a launch leaves in clocks[0], of `rounds` launches one after the other.
Expected<double> median_clocks(const cuda::KernelLaunch& launch, const cuda::DeviceMemory& clocks,
                               int rounds);

// The smallest step between the times that pairs of CUDA events gave for `rounds` spins of
// different lengths, in seconds.
Expected<double> event_step(int rounds);

}  // namespace dualgemm::bench
