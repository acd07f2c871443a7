#include "bench/cuda/cold_sets.hpp"

#include <cuda_runtime_api.h>

#include "cuda/runtime/check.hpp"

namespace dualgemm::bench {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Expected<ColdSets> ColdSets::allocate(int64_t set_bytes) {
  ColdSets sets;
  sets.set_bytes_ = set_bytes;
  sets.stride_ = aligned(set_bytes);
  sets.count_ = static_cast<int>((kColdBytes + set_bytes - 1) / set_bytes);
  auto memory = cuda::DeviceMemory::allocate(sets.count_ * sets.stride_, "cold sets");
  if (!memory) return memory.status();
  sets.memory_ = *std::move(memory);
  return sets;
}

Status ColdSets::replicate() {
  for (int i = 1; i < count_; ++i) {
    DUALGEMM_CUDA_TRY(cudaMemcpy(of_call(i), of_call(0), static_cast<size_t>(set_bytes_),
                                 cudaMemcpyDeviceToDevice));
  }
  DUALGEMM_CUDA_TRY(cudaDeviceSynchronize());  // such copies return before they are done
  return {};
}

Expected<ColdWeights> ColdWeights::upload(const HostOperands& host) {
  ColdWeights weights;
  const auto size = [](const std::vector<uint8_t>& bytes) {
    return static_cast<int64_t>(bytes.size());
  };
  weights.gate_scales_ = aligned(size(host.gate));
  weights.up_ = weights.gate_scales_ + aligned(size(host.gate_scales));
  weights.up_scales_ = weights.up_ + aligned(size(host.up));
  auto sets = ColdSets::allocate(weights.up_scales_ + size(host.up_scales));
  if (!sets) return sets.status();
  weights.sets_ = *std::move(sets);
  uint8_t* const first = weights.sets_.of_call(0);
  const auto put = [&](int64_t offset, const std::vector<uint8_t>& bytes) -> Status {
    DUALGEMM_CUDA_TRY(
        cudaMemcpy(first + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    return {};
  };
  DUALGEMM_TRY(put(0, host.gate));
  DUALGEMM_TRY(put(weights.gate_scales_, host.gate_scales));
  DUALGEMM_TRY(put(weights.up_, host.up));
  DUALGEMM_TRY(put(weights.up_scales_, host.up_scales));
  DUALGEMM_TRY(weights.sets_.replicate());
  return weights;
}

void ColdWeights::place(int call, Buffers& buffers) noexcept {
  const uint8_t* const set = sets_.of_call(call);
  buffers.gate = set;
  buffers.gate_scales = set + gate_scales_;
  buffers.up = set + up_;
  buffers.up_scales = set + up_scales_;
}

}  // namespace dualgemm::bench
