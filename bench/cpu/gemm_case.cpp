#include "bench/cpu/gemm_case.hpp"

#include <utility>

namespace dualgemm::bench {

Expected<std::shared_ptr<GemmCase>> GemmCase::make(Operands& operands, const GemmSpec& spec,
                                                   int threads) {
  std::shared_ptr<GemmCase> item(new GemmCase(operands, spec));
  Problem problem{.m = spec.m, .n = operands.n(), .k = operands.k()};
  problem.a.type = spec.a_type;
  problem.d.type = spec.d_type;
  const PlanOptions options{.strategy = spec.strategy,
                            .device = DeviceKind::kCpu,
                            .isa = spec.isa,
                            .threads = threads,
                            .prepared = spec.prepared};
  Expected<Plan> plan = make_plan(problem, options);
  if (!plan) return plan.status();
  item->plan_ = *std::move(plan);
  if (item->plan_.prepared) {
    Expected<PreparedWeights> prepared = prepare(item->plan_, operands.inputs(spec.a_type, 0));
    if (!prepared) return prepared.status();
    item->prepared_ = *std::move(prepared);
  }
  item->workspace_ = AlignedArray<std::byte>(item->plan_.workspace_bytes);
  const int64_t outputs = spec.m * operands.n();
  const bool quantised = spec.d_type == DataType::kE2M1;
  const int64_t widest = static_cast<int64_t>(sizeof(float));
  item->d_ = AlignedArray<std::byte>(quantised ? outputs / 2 : outputs * widest);
  if (quantised) item->d_scales_ = AlignedArray<uint8_t>(outputs / kSfVec);

  DUALGEMM_TRY(item->run());
  if (spec.isa != Isa::kAuto && item->info_.isa != spec.isa) {
    return Status::error(StatusCode::kInternal, "isa", name_of(item->info_.isa),
                         std::string("must be the demanded ") + name_of(spec.isa));
  }
  return item;
}

Status GemmCase::run() {
  Buffers buffers = operands_.inputs(spec_.a_type, next_set_);
  if (spec_.cold && !plan_.prepared) next_set_ = (next_set_ + 1) % operands_.weight_sets();
  if (plan_.prepared) {
    buffers.gate = buffers.up = nullptr;
    buffers.gate_scales = buffers.up_scales = nullptr;
    buffers.prepared = &prepared_;
  }
  buffers.d = d_.data();
  if (d_scales_.size() > 0) buffers.d_scales = d_scales_.data();
  return dualgemm::run(plan_, buffers, workspace_.data(), plan_.workspace_bytes, &info_);
}

double GemmCase::giga_ops() const {
  return 4e-9 * static_cast<double>(spec_.m) * static_cast<double>(operands_.n()) *
         static_cast<double>(operands_.k());
}

}  // namespace dualgemm::bench
