// The one interface behind which all ways of computing the dual GEMM are peers: each is a test and
// a baseline of the others.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/checked_problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "plan/kernel_id.hpp"

namespace dualgemm {

// What a caller demands of a plan (PlanOptions::config); -1 and no name: the strategy's choice.
struct PlanConstraints {
  static constexpr int64_t kAny = -1;
  int64_t tile_m = kAny, tile_n = kAny, tile_k = kAny, stages = kAny, k_warpgroups = kAny;
  // At most so many. kUnnamed: a plan's config names none, so it has a CTA for each piece of work,
  // if the kernel can have that too.
  static constexpr int64_t kUnnamed = -2;
  int64_t ctas = kAny;
  bool demands_ctas() const noexcept { return ctas >= 0; }
  plan::NamedKernels kernel = {};
  bool operator==(const PlanConstraints&) const = default;
};

// Whether the kernel is one of those that the caller leaves to choose from. Its grid counts where
// it is known: a kernel that has none is no answer to a demand for `ctas`.
bool satisfies(KernelId kernel, const KernelShape& shape,
               const PlanConstraints& constraints) noexcept;
// The same before the work has been dealt out to a grid.
bool satisfies_tile_constraints(KernelId kernel, const KernelShape& shape,
                                const PlanConstraints& constraints) noexcept;

// The packed bytes; their memory, if this handle owns it; per-strategy host state.
struct PreparedWeights::Impl {
  PreparedView view;
  std::shared_ptr<void> memory;  // null: borrowed
  int gpu = -1;                  // number of the GPU whose memory the handle owns

  // What one strategy keeps with a handle on the host; made when it is first asked for.
  template <class State>
  State& state() const {
    const std::lock_guard lock(mutex_);
    if (state_ == nullptr) state_ = std::make_shared<State>();
    return *static_cast<State*>(state_.get());
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<void> state_;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual StrategyId id() const noexcept = 0;
  virtual DeviceKind device() const noexcept = 0;
  std::string_view name() const noexcept { return name_of(id()); }

  // ok, or why this strategy cannot run the problem on this device.
  virtual Status supports(const core::CheckedProblem& problem, const DeviceCaps& caps) const = 0;

  // For people, in one line.
  virtual const char* how_it_works() const noexcept = 0;
  // What is exact, and what the bits depend on, for a plan of this strategy.
  virtual const char* numerics(const Plan& plan) const noexcept = 0;
  // What prepare() is to a plan of this strategy; problem, device and isa are set.
  virtual Preparation preparation(const Plan& plan) const noexcept = 0;

  // Fills in everything of the plan that is this strategy's choice: regime, kernel, shape,
  // workspace_bytes, prepared_bytes. problem, a checked one, device, isa, threads, preparation and
  // prepared are set already, the latter two so that they agree.
  virtual Status plan(Plan& plan, const DeviceCaps& caps) const = 0;

  // The same with constraints, for strategies that have something to choose. The caller checks that
  // the plan satisfies them.
  virtual Status plan_constrained(Plan& plan, const DeviceCaps& caps,
                                  const PlanConstraints&) const {
    return this->plan(plan, caps);
  }

  virtual int64_t workspace_bytes(const Plan& plan) const = 0;

  // What prepare() makes; format kNone: nothing. A function of the plan's problem and isa.
  virtual PreparedDescriptor prepared_descriptor(const Plan& plan) const = 0;

  // Fills `memory` with what prepared_descriptor() says, every byte of it, and returns when that is
  // done. The memory is large enough and aligned, the weights of the buffers are validated.
  // `problem`: the plan's.
  virtual Status prepare(const Plan& plan, const core::CheckedProblem& problem,
                         const Buffers& buffers, uint8_t* memory) const = 0;

  // Buffers are validated, prepared weights fit prepared_descriptor() (plan::view_of() has them),
  // the workspace is large enough and aligned to 64 bytes.
  virtual Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                     void* workspace, RunInfo* info) const = 0;
};

}  // namespace dualgemm
