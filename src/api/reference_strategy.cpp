#include "api/reference_strategy.hpp"

#include "core/scale_padding.hpp"
#include "cpu/kernel_table.hpp"
#include "reference/dual_gemm.hpp"

namespace dualgemm::api {
namespace {

class ReferenceStrategy final : public Strategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kReference; }
  DeviceKind device() const noexcept override { return DeviceKind::kCpu; }
  const char* how_it_works() const noexcept override {
    return "the definition, element by element in double precision: slow, obviously right";
  }
  const char* numerics(const Plan&) const noexcept override {
    return "double precision, rounded once to D's type";
  }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kNone; }
  Status supports(const core::CheckedProblem&, const DeviceCaps&) const override { return {}; }
  Status plan(Plan& plan, const DeviceCaps&) const override {
    // The others refuse it so: the oracle is no way to compute for another machine unasked.
    if (cpu::kernel_table(plan.isa) == nullptr)
      return Status::unsupported("isa", name_of(plan.isa), "not part of this build");
    plan.kernel = "oracle";
    plan.isa = Isa::kScalar;  // whatever was asked for: there is only one oracle
    return {};
  }
  int64_t workspace_bytes(const Plan&) const override { return 0; }
  PreparedDescriptor prepared_descriptor(const Plan&) const override { return {}; }
  Status prepare(const Plan&, const core::CheckedProblem&, const Buffers&,
                 uint8_t*) const override {
    return Status::unsupported("strategy", "reference", "has no weights to prepare");
  }
  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers, void*,
             RunInfo* info) const override {
    DUALGEMM_TRY(reference::dual_gemm(problem.problem(), buffers, plan.threads));
    core::clear_scale_padding(problem.resolved(), buffers);
    if (info != nullptr) *info = {Isa::kScalar, Regime::kTile, plan.threads, 0};
    return {};
  }
};

}  // namespace

const Strategy& reference_strategy() noexcept {
  static const ReferenceStrategy strategy;
  return strategy;
}

}  // namespace dualgemm::api
