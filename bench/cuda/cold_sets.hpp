// Copies of the same bytes in device memory, so many that each is out of L2 when its turn comes.
#pragma once

#include <cstdint>

#include "bench/cuda/operands.hpp"
#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::bench {

inline constexpr int64_t kColdBytes = 430'000'000;  // of all sets: seven times an H200's L2

class ColdSets {
 public:
  // As many sets as make up kColdBytes, each at a multiple of 256 bytes; not initialised.
  static Expected<ColdSets> allocate(int64_t set_bytes);

  int count() const noexcept { return count_; }
  // Calls in one graph: a multiple of count(), at least 12, so that the graph's start counts for
  // little.
  int calls() const noexcept { return (kMinCalls + count_ - 1) / count_ * count_; }
  int64_t set_bytes() const noexcept { return set_bytes_; }
  // Call i of a graph takes set i % count().
  uint8_t* of_call(int call) noexcept { return memory_.data() + call % count_ * stride_; }

  // Set 0 into all others.
  Status replicate();

 private:
  static constexpr int kMinCalls = 12;
  cuda::DeviceMemory memory_;
  int count_ = 0;
  int64_t set_bytes_ = 0, stride_ = 0;
};

// Packed Gate and Up with their scales, one behind the other in each set.
class ColdWeights {
 public:
  static Expected<ColdWeights> upload(const HostOperands& host);

  ColdSets& sets() noexcept { return sets_; }
  // Sets gate, gate_scales, up and up_scales.
  void place(int call, Buffers& buffers) noexcept;

 private:
  ColdSets sets_;
  int64_t gate_scales_ = 0, up_ = 0, up_scales_ = 0;  // offsets in a set
};

}  // namespace dualgemm::bench
