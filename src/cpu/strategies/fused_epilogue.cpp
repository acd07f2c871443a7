// GEMM Gate -> R1 in memory, then GEMM Up whose epilogue reads R1 and writes D.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

class FusedEpilogue final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFusedEpilogue; }
  const char* how_it_works() const noexcept override {
    return "Gate product to memory; the Up product's epilogue reads it and writes D";
  }

 protected:
  Recipe recipe() const noexcept override { return {.products = 1}; }
  void compute(core::Team& team, Frame& frame) const noexcept override {
    pack_activations(team, frame.work);
    product_pass(team, frame.work, frame.weights, Operand::kGate, frame.product[0], frame.scratch);
    epilogue_pass(team, frame.work, frame.weights, frame.product[0], frame.scratch);
  }
};

}  // namespace

const Strategy& fused_epilogue_strategy() noexcept {
  static const FusedEpilogue kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
