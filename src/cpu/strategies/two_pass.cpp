// two_pass: GEMM Gate -> R1, GEMM Up -> R2, then the activation joins them; weights are packed on
// every call, as two calls of a GEMM library would. cached: the packing is left to prepare().
// streams: both products at the same time, the threads take units of one and the other in turn.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

void products_in_turn(core::Team& team, Frame& frame, const WeightSource& weights) noexcept {
  for (const Operand operand : {Operand::kGate, Operand::kUp})
    product_pass(team, frame.work, weights, operand, frame.product[static_cast<int>(operand)],
                 frame.scratch);
}

void join(core::Team& team, Frame& frame) noexcept {
  join_pass(team, frame.work, frame.product[0], frame.product[1], frame.scratch);
}

class TwoPass final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kTwoPass; }
  const char* how_it_works() const noexcept override {
    return "Gate product to memory, Up product to memory, then the activation joins them; "
           "weights are converted on every call";
  }

 protected:
  Recipe recipe() const noexcept override {
    return {.products = 2, .packs_weights = true, .can_prepare = false};
  }
  void compute(core::Team& team, Frame& frame) const noexcept override {
    pack_activations(team, frame.work);
    pack_operands(team, *frame.work.problem, *frame.work.buffers, *frame.work.table, frame.packed);
    const PackedOperands<uint8_t>& packed = frame.packed;
    products_in_turn(team, frame, {{packed.first[0], packed.first[1]}, packed.batch_bytes});
    join(team, frame);
  }
};

class Cached final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kCached; }
  const char* how_it_works() const noexcept override {
    return "as two_pass, but the weights were converted once by prepare()";
  }

 protected:
  Recipe recipe() const noexcept override { return {.products = 2, .must_prepare = true}; }
  void compute(core::Team& team, Frame& frame) const noexcept override {
    pack_activations(team, frame.work);
    products_in_turn(team, frame, frame.weights);
    join(team, frame);
  }
};

class Streams final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kStreams; }
  const char* how_it_works() const noexcept override {
    return "both products at the same time: threads take units of Gate and of Up in turn, then "
           "the activation";
  }

 protected:
  Recipe recipe() const noexcept override { return {.products = 2}; }
  void compute(core::Team& team, Frame& frame) const noexcept override {
    pack_activations(team, frame.work);
    both_products_pass(team, frame.work, frame.weights, frame.product, frame.scratch);
    join(team, frame);
  }
};

}  // namespace

const Strategy& two_pass_strategy() noexcept {
  static const TwoPass kStrategy;
  return kStrategy;
}
const Strategy& cached_strategy() noexcept {
  static const Cached kStrategy;
  return kStrategy;
}
const Strategy& streams_strategy() noexcept {
  static const Streams kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
