// two_pass: GEMM gate -> R1, GEMM up -> R2, then the activation joins them; weights are packed on
// every call, as two calls of a GEMM library would. cached: the packing is left to prepare().
// streams: both products at the same time, each on half of the threads.
#include "cpu/cpu_strategy.hpp"

namespace dualgemm::cpu {
namespace {

void pack_weights(Frame& frame, Operand operand, UnitCounter& counter) noexcept {
  const int i = static_cast<int>(operand);
  pack_operand(*frame.work.problem, *frame.work.buffers, *frame.work.table, operand,
               frame.packed[i], counter);
}

void join(Frame& frame, int thread, UnitCounter& counter) noexcept {
  join_pass(frame.work, frame.product[0], frame.product[1], frame.scratch[thread], counter);
}

class TwoPass : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kTwoPass; }
  const char* how_it_works() const noexcept override {
    return "gate product to memory, up product to memory, then the activation joins them; "
           "weights are converted on every call";
  }

 protected:
  Recipe recipe() const noexcept override {
    return {.products = 2, .packs_weights = true, .can_prepare = false};
  }
  void team(Frame& frame, int thread, int) const noexcept override {
    pack_activations(frame.work, frame.counters[0]);
    pack_weights(frame, Operand::kGate, frame.counters[1]);
    pack_weights(frame, Operand::kUp, frame.counters[2]);
    barrier();
    products_in_turn(frame, {{frame.packed[0], frame.packed[1]}}, thread);
    join(frame, thread, frame.counters[5]);
  }

  static void products_in_turn(Frame& frame, const WeightSource& weights, int thread) noexcept {
    for (const Operand operand : {Operand::kGate, Operand::kUp}) {
      const int i = static_cast<int>(operand);
      product_pass(frame.work, weights, operand, frame.product[i], frame.scratch[thread],
                   frame.counters[3 + i]);
      barrier();
    }
  }
};

class Cached final : public TwoPass {
 public:
  StrategyId id() const noexcept override { return StrategyId::kCached; }
  const char* how_it_works() const noexcept override {
    return "as two_pass, but the weights were converted once by prepare()";
  }

 protected:
  Recipe recipe() const noexcept override { return {.products = 2, .must_prepare = true}; }
  void team(Frame& frame, int thread, int) const noexcept override {
    pack_activations(frame.work, frame.counters[0]);
    barrier();
    products_in_turn(frame, frame.weights, thread);
    join(frame, thread, frame.counters[5]);
  }
};

class Streams final : public CpuStrategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kStreams; }
  const char* how_it_works() const noexcept override {
    return "both products at the same time, each on half of the threads, then the "
           "activation";
  }

 protected:
  Recipe recipe() const noexcept override { return {.products = 2}; }
  void team(Frame& frame, int thread, int threads) const noexcept override {
    pack_activations(frame.work, frame.counters[0]);
    barrier();
    // A lone thread, and whoever finishes first, goes on with the other product.
    const Operand first = 2 * thread < threads ? Operand::kGate : Operand::kUp;
    const Operand second = first == Operand::kGate ? Operand::kUp : Operand::kGate;
    for (const Operand operand : {first, second}) {
      const int i = static_cast<int>(operand);
      product_pass(frame.work, frame.weights, operand, frame.product[i], frame.scratch[thread],
                   frame.counters[3 + i]);
    }
    barrier();
    join(frame, thread, frame.counters[5]);
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
