#include "bench/cpu/gemm_case.hpp"

#include <utility>

namespace dualgemm::bench {

Expected<std::vector<PreparedWeights>> prepare_sets(Operands& operands, const Plan& plan,
                                                    int count) {
  std::vector<PreparedWeights> sets;
  for (int set = 0; set < count; ++set) {
    Expected<PreparedWeights> prepared = prepare(plan, operands.inputs(plan.problem.a.type, set));
    if (!prepared) return prepared.status();
    sets.push_back(*std::move(prepared));
  }
  return sets;
}

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
  item->prepared_ = spec.prepared_sets;
  if (item->plan_.prepared && item->prepared_ == nullptr) {
    Expected<std::vector<PreparedWeights>> sets = prepare_sets(operands, item->plan_, 1);
    if (!sets) return sets.status();
    item->prepared_ = std::make_shared<const std::vector<PreparedWeights>>(*std::move(sets));
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
  if (plan_.prepared) {
    buffers.gate = buffers.up = nullptr;
    buffers.gate_scales = buffers.up_scales = nullptr;
    buffers.prepared = &(*prepared_)[static_cast<size_t>(next_set_)];
  }
  const int sets = plan_.prepared ? static_cast<int>(prepared_->size()) : operands_.weight_sets();
  if (spec_.cold) next_set_ = (next_set_ + 1) % sets;
  buffers.d = d_.data();
  if (d_scales_.size() > 0) buffers.d_scales = d_scales_.data();
  return dualgemm::run(plan_, buffers, workspace_.data(), plan_.workspace_bytes, &info_);
}

double GemmCase::giga_ops() const {
  return 4e-9 * static_cast<double>(spec_.m) * static_cast<double>(operands_.n()) *
         static_cast<double>(operands_.k());
}

}  // namespace dualgemm::bench
