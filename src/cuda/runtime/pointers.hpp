// Where pointers and streams belong: asked of the driver, judged by a plain function, so that every
// judgement is tested without a GPU. All of it is legal while a stream records a graph.
#pragma once

#include <cstdint>
#include <span>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

enum class MemoryPlace : int32_t {
  kUnknown,  // the driver knows nothing of it: pageable memory of the host, or no memory at all
  kHost,     // page-locked memory of the host
  kGpu,
  kManaged,  // moves between the host and the GPUs
};

struct PointerInfo {
  MemoryPlace place = MemoryPlace::kUnknown;
  int gpu = 0;             // kGpu: that it lies on
  bool reachable = false;  // kernels of the current GPU may use this very address
};

// The GPU that a call will run on.
struct CurrentGpu {
  int number = 0;
  bool reads_pageable = false;  // the host's pageable memory (HMM, Grace Hopper)
};

struct NamedPointer {
  const char* name;     // of the argument
  const void* address;  // null: not given, and none of this file's business
};

// ok, or why kernels of `gpu` cannot work on what lies there. Memory of another GPU is refused even
// where peer access would let a kernel through: a tensor copy from there would crawl unnoticed.
Status judge_pointer(const NamedPointer& pointer, const PointerInfo& info, const CurrentGpu& gpu);
Status judge_stream(int stream_gpu, int current_gpu);
// -1: the weights belong to no GPU.
Status judge_prepared(int weights_gpu, int current_gpu);

// The number of the current GPU; -1 where there is none.
int current_gpu() noexcept;

// The same rules with the driver's answers, for the current GPU. An error of earlier work that
// comes up here is returned as such. `stream`: a cudaStream_t or null; CUDA does not say which GPU
// a stream belongs to that records a graph. The legacy default stream is refused while another,
// blocking one records: a launch there would break the recording.
Status check_pointers(std::span<const NamedPointer> pointers);
Status check_stream(void* stream);

}  // namespace dualgemm::cuda
