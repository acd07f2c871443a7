// One launch; per tile all of Gate, then all of Up, one epilogue. Reads A twice.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

class FusedSequential final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFusedSequential; }
  const char* how_it_works() const noexcept override {
    return "per tile first all of Gate, then all of Up, one epilogue: A is read twice, "
           "nothing between is stored";
  }

 protected:
  Recipe recipe() const noexcept override { return {.sequential = true}; }
  void compute(core::Team& team, Frame& frame) const noexcept override {
    pack_activations(team, frame.work);
    sequential_pass(team, frame.work, frame.weights, frame.scratch);
  }
};

}  // namespace

const Strategy& fused_sequential_strategy() noexcept {
  static const FusedSequential kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
