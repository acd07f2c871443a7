// The one interface behind which all ways of computing the dual GEMM are peers: each is a test and
// a baseline of the others.
#pragma once

#include <cstdint>
#include <string_view>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm {

// What a caller demands of a plan's numbers (PlanOptions::config); -1: the strategy's choice.
struct PlanConstraints {
  static constexpr int64_t kAny = -1;
  int64_t tile_m = kAny, tile_n = kAny, tile_k = kAny, stages = kAny, k_warpgroups = kAny;
  int64_t ctas = kAny;  // at most so many
  bool operator==(const PlanConstraints&) const = default;

  static bool allows(int64_t wanted, int64_t value) noexcept {
    return wanted == kAny || wanted == value;
  }
};

// Base of everything that prepare() can return.
struct PreparedWeights::Impl {
  virtual ~Impl() = default;
  virtual int64_t size_bytes() const noexcept = 0;
  // Made for these; run() refuses a plan that differs.
  int64_t n = 0, k = 0, l = 0;
  StrategyId strategy = StrategyId::kFused;
  Isa isa = Isa::kScalar;
  bool any_isa = false;  // the layout is the same for all of the device's instruction sets
  int gpu = -1;          // kCuda: number of the GPU that holds them

  void made_for(const Plan& plan, StrategyId id) noexcept {
    n = plan.problem.n, k = plan.problem.k, l = plan.problem.l;
    strategy = id;
    isa = plan.isa;
  }
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual StrategyId id() const noexcept = 0;
  virtual DeviceKind device() const noexcept = 0;
  std::string_view name() const noexcept { return name_of(id()); }

  // ok, or why this strategy cannot run the (already validated) problem on this device.
  virtual Status supports(const Problem& problem, const DeviceCaps& caps) const = 0;

  // Fills in everything of the plan that is this strategy's choice: regime, tile sizes,
  // workspace_bytes, prepared_bytes. problem, device, isa and threads are set already.
  virtual Status plan(Plan& plan, const DeviceCaps& caps) const = 0;

  // The same with constraints, for strategies that have something to choose. The caller checks that
  // the plan satisfies them.
  virtual Status plan_constrained(Plan& plan, const DeviceCaps& caps,
                                  const PlanConstraints&) const {
    return this->plan(plan, caps);
  }

  virtual int64_t workspace_bytes(const Plan& plan) const = 0;

  virtual Expected<PreparedWeights> prepare(const Plan& plan, const Buffers& buffers) const = 0;

  // Buffers are validated, the workspace is large enough and aligned to 64 bytes.
  virtual Status run(const Plan& plan, const Buffers& buffers, void* workspace,
                     RunInfo* info) const = 0;
};

}  // namespace dualgemm
