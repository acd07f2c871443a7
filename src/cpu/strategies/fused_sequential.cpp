// One launch; per tile all of gate, then all of up, one epilogue. Reads A twice.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

class FusedSequential final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFusedSequential; }
  const char* how_it_works() const noexcept override {
    return "per tile first all of gate, then all of up, one epilogue: A is read twice, "
           "nothing between is stored";
  }

 protected:
  Recipe recipe() const noexcept override { return {.sequential = true}; }
  void team(Frame& frame, int thread, int) const noexcept override {
    pack_activations(frame.work, frame.counters[0]);
    barrier();
    sequential_pass(frame.work, frame.weights, frame.scratch[thread], frame.counters[1]);
  }
};

}  // namespace

const Strategy& fused_sequential_strategy() noexcept {
  static const FusedSequential kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
