// fused: one pass. graph: the same over prepared weights, with nothing left to set up per call.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

class Fused : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFused; }
  const char* how_it_works() const noexcept override {
    return "one pass: A is read once, both accumulators stay in registers, the activation "
           "is applied to the finished tile, only D is written";
  }

 protected:
  Recipe recipe() const noexcept override { return {}; }
  void compute(core::Team& team, Frame& frame) const noexcept override {
    pack_activations(team, frame.work);
    fused_pass(team, frame.work, frame.weights, frame.scratch);
  }
};

class Graph final : public Fused {
 public:
  StrategyId id() const noexcept override { return StrategyId::kGraph; }
  const char* how_it_works() const noexcept override {
    return "one pass over prepared weights, with nothing left to set up on a call";
  }

 protected:
  Recipe recipe() const noexcept override { return {.must_prepare = true}; }
};

}  // namespace

const Strategy& fused_strategy() noexcept {
  static const Fused kStrategy;
  return kStrategy;
}
const Strategy& graph_strategy() noexcept {
  static const Graph kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
