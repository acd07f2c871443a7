#include "plan/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/enum_table.hpp"
#include "core/problem.hpp"
#include "plan/config_text.hpp"
#include "plan/thread_count.hpp"

namespace dualgemm::plan {
namespace {

// What kAuto takes, best first. fp8 is missing because it changes the result; cached and graph
// because they are fused's or two_pass's work behind another interface; streams because it never
// beats fused; cutlass because it has not been timed beside fused.
constexpr std::array kPreference{StrategyId::kFused, StrategyId::kFusedSequential,
                                 StrategyId::kFusedEpilogue, StrategyId::kTwoPass,
                                 StrategyId::kReference};

// Up to here every other instruction set has a kernel that reads row-major weights once.
constexpr int64_t kFewRows = 4;

std::string names_of(const std::vector<Isa>& isas) {
  std::string names;
  for (const Isa isa : isas) names += (names.empty() ? "" : ", ") + std::string(name_of(isa));
  return names;
}

Status check_options(const PlanOptions& options) {
  DUALGEMM_TRY(core::check_enumerator("strategy", options.strategy));
  DUALGEMM_TRY(core::check_enumerator("device", options.device));
  DUALGEMM_TRY(core::check_enumerator("isa", options.isa));
  if (options.threads >= 0 && options.threads <= kMaxThreads) return {};
  return Status::invalid("threads", std::to_string(options.threads),
                         fmt::format("must be 0 (as many as pay) .. {}", kMaxThreads));
}

Status check_isa(Isa isa, const char* argument, const Problem& problem, const DeviceCaps& caps) {
  if (std::find(caps.isas.begin(), caps.isas.end(), isa) == caps.isas.end()) {
    return Status::unsupported(argument, name_of(isa),
                               "this machine offers " + names_of(caps.isas));
  }
  if (problem.batch_invariant && !core::has_shared_order(problem, isa)) {
    return Status::unsupported(argument, name_of(isa),
                               "batch_invariant excludes it: it adds in another order");
  }
  return {};
}

Status no_kernel_for(const DeviceCaps& caps) {
  return Status::unsupported(
      "device",
      fmt::format("{} of compute capability {}.{}", caps.name, caps.compute_capability / 10,
                  caps.compute_capability % 10),
      "the CUDA strategies need 8.0 or later");
}

// Every kernel's model of its time divides by the number of SMs.
Status check_caps(const DeviceCaps& caps) {
  constexpr int kMostSms = 1 << 16;
  if (caps.kind != DeviceKind::kCuda || (caps.num_sms >= 1 && caps.num_sms <= kMostSms)) return {};
  return Status::invalid("caps.num_sms", std::to_string(caps.num_sms),
                         fmt::format("a GPU has 1 .. {} streaming multiprocessors", kMostSms));
}

// The instruction sets to try, best first: one if it is forced, else all.
Expected<std::vector<Isa>> candidate_isas(const Problem& problem, const PlanOptions& options,
                                          const DeviceCaps& caps, const std::string& force_isa,
                                          std::vector<RejectedCandidate>& rejected) {
  Isa forced = options.isa;
  const char* argument = "isa";
  if (forced == Isa::kAuto && !force_isa.empty()) {
    argument = "DUALGEMM_FORCE_ISA";
    const Expected<Isa> parsed = parse_isa(force_isa);
    if (!parsed) {
      return Status::invalid(argument, parsed.status().observed(), parsed.status().rule());
    }
    forced = *parsed;
  }
  if (forced != Isa::kAuto) {
    DUALGEMM_TRY(check_isa(forced, argument, problem, caps));
    return std::vector<Isa>{forced};
  }
  std::vector<Isa> isas;
  for (const Isa isa : caps.isas) {
    Status status = check_isa(isa, "isa", problem, caps);
    if (status.ok() && isa == Isa::kAmxBf16 && problem.m <= kFewRows) {
      status = Status::unsupported("isa", name_of(isa),
                                   "so few rows leave its tiles empty: AVX-512 reads the weights "
                                   "in place");
    }
    if (status.ok() && isa == Isa::kAvx512Bf16 && problem.a.type != DataType::kBF16) {
      status = Status::unsupported("isa", name_of(isa), "only bf16 activations gain by it");
    }
    if (status.ok()) {
      isas.push_back(isa);
    } else {
      rejected.push_back({std::string("isa:") + name_of(isa), status});
    }
  }
  return isas;
}

// Whether the plan is what the caller wished, for the constraints that its strategy knows nothing
// of.
Status check_satisfied(const Plan& plan, const PlanConstraints& constraints) {
  if (satisfies(plan.kernel_id, plan.shape, constraints)) return {};
  return Status::unsupported("config", text_of(constraints),
                             fmt::format("{} on {} runs {} and leaves that no choice",
                                         name_of(plan.strategy), name_of(plan.isa), plan.config()));
}

// A constraint that cannot be satisfied is an answer, not a reason to try something else.
bool is_about_config(const Status& status) { return status.argument() == "config"; }

// `base` completed by one strategy on one instruction set, or why not.
Expected<Plan> try_strategy(const Strategy& strategy, const core::CheckedProblem& problem,
                            Plan base, Isa isa, const DeviceCaps& caps,
                            const PlanConstraints& constraints) {
  if (base.problem.batch_invariant && strategy.id() == StrategyId::kFp8) {
    return Status::unsupported("strategy", "fp8", "batch_invariant excludes it: it is not exact");
  }
  DUALGEMM_TRY(strategy.supports(problem, caps));
  base.strategy = strategy.id();
  base.device = strategy.device();
  base.isa = isa;
  if (base.threads == 0) {
    base.threads = base.device == DeviceKind::kCpu
                       ? worthwhile_threads(base.problem, base.strategy, isa, caps.cores)
                       : caps.cores;
  }
  base.preparation = strategy.preparation(base);
  base.prepared = base.prepared || base.preparation == Preparation::kRequired;
  DUALGEMM_TRY(strategy.plan_constrained(base, caps, constraints));
  DUALGEMM_TRY(check_satisfied(base, constraints));
  if (base.prepared && base.preparation == Preparation::kNone) {
    return Status::unsupported(
        "prepared", "true",
        fmt::format("{} on {} has no weights to prepare", strategy.name(), name_of(isa)));
  }
  base.how_it_works = strategy.how_it_works();
  base.numerics = strategy.numerics(base);
  return base;
}

// On the first instruction set that works; the others' reasons go to `rejected`.
Expected<Plan> try_isas(const Strategy& strategy, const core::CheckedProblem& problem,
                        const Plan& base, const std::vector<Isa>& isas, const DeviceCaps& caps,
                        const PlanConstraints& constraints,
                        std::vector<RejectedCandidate>& rejected) {
  Status last = Status::unsupported("isa", "auto", "no instruction set is left");
  std::vector<RejectedCandidate> failed;
  for (const Isa isa : isas) {
    Expected<Plan> plan = try_strategy(strategy, problem, base, isa, caps, constraints);
    if (plan) {
      rejected.insert(rejected.end(), failed.begin(), failed.end());
      return plan;
    }
    last = plan.status();
    if (is_about_config(last)) return last;
    failed.push_back({std::string("isa:") + name_of(isa), last});
  }
  return last;
}

Status why_not_chosen(const Plan& other, const Plan& chosen) {
  return Status::unsupported(
      name_of(other.strategy), "possible, not chosen",
      fmt::format("needs {} bytes of workspace, {} needs {}", other.workspace_bytes,
                  name_of(chosen.strategy), chosen.workspace_bytes));
}

// What became of the strategies that are not the plan's: for Plan::explain().
void note_others(Plan& plan, const core::CheckedProblem& problem, const Plan& base,
                 const std::vector<Isa>& isas, const DeviceCaps& caps,
                 std::span<const Strategy* const> strategies) {
  for (const Strategy* strategy : strategies) {
    if (strategy->device() != plan.device || strategy->id() == plan.strategy) continue;
    std::vector<RejectedCandidate> ignored;
    const Expected<Plan> other = try_isas(*strategy, problem, base, isas, caps, {}, ignored);
    plan.rejected.push_back(
        {std::string(strategy->name()), other ? why_not_chosen(*other, plan) : other.status()});
  }
}

// `options` with what the text says; it may not contradict them, nor the problem.
Status apply_request(const ConfigRequest& request, const Problem& problem, PlanOptions& options) {
  const auto contradicts = [&](const char* what, const char* name) {
    return Status::invalid("config", "'" + options.config + "'",
                           fmt::format("the {} {}", what, name));
  };
  if (request.strategy && *request.strategy != StrategyId::kAuto) {
    if (options.strategy != StrategyId::kAuto && options.strategy != *request.strategy)
      return contradicts("strategy that is asked for is", name_of(options.strategy));
    options.strategy = *request.strategy;
  }
  if (request.isa && *request.isa != Isa::kAuto) {
    if (options.isa != Isa::kAuto && options.isa != *request.isa)
      return contradicts("isa that is asked for is", name_of(options.isa));
    options.isa = *request.isa;
  }
  if (request.d_type && *request.d_type != problem.d.type)
    return contradicts("problem's type of D is", name_of(problem.d.type));
  if (request.prepared && !*request.prepared && options.prepared)
    return contradicts("weights that are asked for are", "prepared");
  options.prepared = options.prepared || request.prepared.value_or(false);
  return {};
}

}  // namespace

const Strategy* find_strategy(std::span<const Strategy* const> strategies, StrategyId id,
                              DeviceKind device) noexcept {
  for (const Strategy* strategy : strategies) {
    if (strategy->id() == id && strategy->device() == device) return strategy;
  }
  return nullptr;
}

Expected<Plan> choose(const Problem& problem, const PlanOptions& options, const DeviceCaps& caps,
                      std::span<const Strategy* const> strategies, const std::string& force_isa) {
  const Expected<core::CheckedProblem> checked = core::CheckedProblem::of(problem);
  if (!checked) return checked.status();
  return choose(*checked, options, caps, strategies, force_isa);
}

Expected<Plan> choose(const core::CheckedProblem& checked, const PlanOptions& wanted_options,
                      const DeviceCaps& caps, std::span<const Strategy* const> strategies,
                      const std::string& force_isa) {
  const Problem& problem = checked.problem();
  PlanOptions options = wanted_options;
  DUALGEMM_TRY(check_options(options));
  const DeviceKind device = options.device == DeviceKind::kAuto ? caps.kind : options.device;
  if (device != caps.kind) {
    return Status::unsupported("device", name_of(device),
                               std::string("the plan is made for ") + name_of(caps.kind));
  }
  const Expected<ConfigRequest> request = parse_config(options.config);
  if (!request) return request.status();
  if (!options.config.empty() && device != DeviceKind::kCuda) {
    return Status::invalid(
        "config", "'" + options.config + "'",
        std::string("needs the device cuda, the plan is made for ") + name_of(device));
  }
  DUALGEMM_TRY(apply_request(*request, problem, options));
  if (caps.isas.empty()) return no_kernel_for(caps);
  DUALGEMM_TRY(check_caps(caps));
  Plan base;
  base.problem = problem;
  base.threads = options.threads;  // 0: by try_strategy()
  base.prepared = options.prepared;
  base.unaligned = options.unaligned;
  base.trusted_pointers = options.trusted_pointers;
  Expected<std::vector<Isa>> isas =
      candidate_isas(problem, options, caps, device == DeviceKind::kCpu ? force_isa : std::string(),
                     base.rejected);
  if (!isas) return isas.status();

  const std::span<const StrategyId> wanted = options.strategy == StrategyId::kAuto
                                                 ? std::span<const StrategyId>(kPreference)
                                                 : std::span(&options.strategy, 1);
  Status first_reason =
      Status::unsupported("strategy", name_of(options.strategy), "this build does not contain it");
  bool tried = false;
  for (const StrategyId id : wanted) {
    const Strategy* strategy = find_strategy(strategies, id, device);
    if (strategy == nullptr) continue;
    std::vector<RejectedCandidate> rejected;
    Expected<Plan> plan =
        try_isas(*strategy, checked, base, *isas, caps, request->constraints, rejected);
    if (!plan && is_about_config(plan.status())) return plan;
    if (plan) {
      plan->rejected.insert(plan->rejected.end(), rejected.begin(), rejected.end());
      note_others(*plan, checked, base, *isas, caps, strategies);
      return plan;
    }
    if (!tried) first_reason = plan.status();
    tried = true;
  }
  return first_reason;
}

}  // namespace dualgemm::plan
