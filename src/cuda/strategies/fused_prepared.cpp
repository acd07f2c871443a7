#include "cuda/strategies/fused_prepared.hpp"

#include <string>
#include <string_view>

#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::cuda {
namespace {

struct PackedHandle final : PreparedWeights::Impl {
  DeviceMemory memory;
  std::string_view number;
  int64_t size_bytes() const noexcept override { return memory.size(); }
};

Status nothing_to_prepare() {
  return Status::unsupported("plan.strategy", "fused",
                             "has no weights to prepare on this instruction set");
}

}  // namespace

Expected<PreparedWeights> pack_weights(const FusedKernel& kernel, const Plan& plan,
                                       const Buffers& buffers) {
  if (kernel.packing == nullptr) return nothing_to_prepare();
  auto impl = std::make_unique<PackedHandle>();
  Expected<DeviceMemory> memory =
      DeviceMemory::allocate(kernel.packing->bytes(plan.problem), "prepared weights");
  if (!memory) return memory.status();
  impl->memory = *std::move(memory);
  impl->number = kernel.packing->number(plan.problem);
  impl->made_for(plan, StrategyId::kFused);
  const auto stream = static_cast<cudaStream_t>(buffers.stream);
  DUALGEMM_TRY(enqueue(
      kernel.packing->launch(core::resolve(plan.problem), buffers, impl->memory.data()), stream));
  DUALGEMM_TRY(synchronize(stream));
  return PreparedWeights(std::move(impl));
}

Expected<const uint8_t*> find_packed_weights(const FusedKernel& kernel, const Plan& plan,
                                             const Buffers& buffers) {
  if (!plan.prepared) return nullptr;
  if (kernel.packing == nullptr) return nothing_to_prepare();
  if (buffers.prepared == nullptr) {
    return Status::invalid("prepared", "null", "the plan was made for prepared weights");
  }
  const auto& packed = static_cast<const PackedHandle&>(*buffers.prepared->impl());
  const std::string_view number = kernel.packing->number(plan.problem);
  if (packed.number != number) {
    return Status::invalid("prepared", "for " + std::string(packed.number),
                           "a needs weights for " + std::string(number));
  }
  return packed.memory.data();
}

}  // namespace dualgemm::cuda
