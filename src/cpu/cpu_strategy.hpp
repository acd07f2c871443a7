// What the CPU strategies share: support rules, the L2 tile, workspace layout, prepared weights,
// the team of threads. A strategy adds its recipe (which intermediates it keeps) and its passes.
#pragma once

#include <memory>

#include "cpu/passes.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::cpu {

// The memory a strategy wants beyond activation, groups and scratch.
struct Recipe {
  int products = 0;            // FP32 pre-activation matrices
  bool packs_weights = false;  // both operands packed into the workspace on every call
  bool sequential = false;     // second c buffer per thread
  bool can_prepare = true;     // packed panels from prepare()
  bool must_prepare = false;
};

// One call's memory, laid out in the workspace.
struct Frame {
  Work work;
  Product product[2];
  PackedOperands<uint8_t> packed;  // of this call alone
  WeightSource weights;
  Scratch* scratch = nullptr;  // one for each seat of the team
};

class CpuStrategy : public Strategy {
 public:
  DeviceKind device() const noexcept override { return DeviceKind::kCpu; }
  Status supports(const core::CheckedProblem& problem, const DeviceCaps& caps) const override;
  const char* numerics(const Plan& plan) const noexcept override;
  Preparation preparation(const Plan& plan) const noexcept override;
  Status plan(Plan& plan, const DeviceCaps& caps) const override;
  int64_t workspace_bytes(const Plan& plan) const override;
  PreparedDescriptor prepared_descriptor(const Plan& plan) const override;
  Status prepare(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                 uint8_t* memory) const override;
  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
             void* workspace, RunInfo* info) const override;

 protected:
  virtual Recipe recipe() const noexcept = 0;

  virtual void compute(core::Team& team, Frame& frame) const noexcept = 0;

 private:
  Status check_plan(const Plan& plan) const;
  int64_t lay_out(const Plan& plan, const core::ResolvedProblem& problem, Arena& arena,
                  Frame& frame) const noexcept;
};

const Engine& engine_of(const Plan& plan) noexcept;

const Strategy& two_pass_strategy() noexcept;
const Strategy& cached_strategy() noexcept;
const Strategy& graph_strategy() noexcept;
const Strategy& streams_strategy() noexcept;
const Strategy& fused_epilogue_strategy() noexcept;
const Strategy& fused_sequential_strategy() noexcept;
const Strategy& fused_strategy() noexcept;
const Strategy& fp8_strategy() noexcept;

}  // namespace dualgemm::cpu
