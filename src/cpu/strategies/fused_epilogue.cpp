// GEMM gate -> R1 in memory, then GEMM up whose epilogue reads R1 and writes D.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

class FusedEpilogue final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFusedEpilogue; }
  const char* how_it_works() const noexcept override {
    return "gate product to memory; the up product's epilogue reads it and writes D";
  }

 protected:
  Recipe recipe() const noexcept override { return {.products = 1}; }
  void team(Frame& frame, int thread, int) const noexcept override {
    const Scratch& scratch = frame.scratch[thread];
    pack_activations(frame.work, frame.counters[0]);
    barrier();
    product_pass(frame.work, frame.weights, Operand::kGate, frame.product[0], scratch,
                 frame.counters[1]);
    barrier();
    epilogue_pass(frame.work, frame.weights, frame.product[0], scratch, frame.counters[2]);
  }
};

}  // namespace

const Strategy& fused_epilogue_strategy() noexcept {
  static const FusedEpilogue kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
