#include "dualgemm/dualgemm.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "api/backend.hpp"
#include "api/guarded.hpp"
#include "core/usable_cores.hpp"
#include "core/validate.hpp"
#include "plan/choose.hpp"
#include "plan/config_text.hpp"

namespace dualgemm {
namespace {

using api::guarded;

constexpr uintptr_t kWorkspaceAlignment = 64;

// The strategy behind a plan that can run here; plans may come from other machines or be edited.
Expected<const Strategy*> strategy_of(const Plan& plan) {
  const Strategy* strategy = plan::find_strategy(api::registry(), plan.strategy, plan.device);
  if (strategy == nullptr) {
    return Status::unsupported(
        "plan.strategy", name_of(plan.strategy),
        std::string("this build has no such strategy for ") + name_of(plan.device));
  }
  DUALGEMM_TRY(api::backend_of(plan.device).check_isa(plan));
  if (plan.threads < 1 || plan.threads > plan::kMaxThreads) {
    return Status::invalid("plan.threads", std::to_string(plan.threads),
                           "must be 1 .. " + std::to_string(plan::kMaxThreads));
  }
  return strategy;
}

std::string describe(int64_t n, int64_t k, int64_t l, StrategyId strategy, Isa isa) {
  return "n " + std::to_string(n) + ", k " + std::to_string(k) + ", l " + std::to_string(l) + ", " +
         name_of(strategy) + ", " + name_of(isa);
}

Status check_prepared(const Plan& plan, const PreparedWeights* prepared) {
  if (!plan.prepared) {
    if (prepared == nullptr) return {};
    return Status::invalid("prepared", "not null",
                           "must be null: the plan was made without PlanOptions::prepared");
  }
  if (prepared == nullptr || prepared->empty()) {
    return Status::invalid("prepared", prepared == nullptr ? "null" : "empty",
                           "is required: the plan was made with PlanOptions::prepared");
  }
  const PreparedWeights::Impl& made = *prepared->impl();
  if (made.device != plan.device) {
    return Status::invalid(
        "prepared", std::string("made on ") + name_of(made.device),
        std::string("must be made on the plan's device, ") + name_of(plan.device));
  }
  const Problem& p = plan.problem;
  if (made.n == p.n && made.k == p.k && made.l == p.l && made.strategy == plan.strategy &&
      (made.any_isa || made.isa == plan.isa)) {
    return {};
  }
  return Status::invalid(
      "prepared", describe(made.n, made.k, made.l, made.strategy, made.isa),
      "must be made for the plan's " + describe(p.n, p.k, p.l, plan.strategy, plan.isa));
}

Status check_workspace(const void* workspace, int64_t bytes, int64_t needed) {
  if (bytes < needed) {
    return Status::error(StatusCode::kWorkspaceTooSmall, "workspace_bytes", std::to_string(bytes),
                         "must be at least " + std::to_string(needed));
  }
  if (needed > 0 && workspace == nullptr) {
    return Status::invalid("workspace", "null", "is required");
  }
  const uintptr_t excess = reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment;
  if (needed == 0 || excess == 0) return {};
  return Status::invalid("workspace", "address % 64 = " + std::to_string(excess),
                         "must be aligned to 64 bytes");
}

// Do the arrays that the call reads and writes belong to the device that will run it?
Status check_memory(const Plan& plan, const Buffers& buffers, const void* workspace) {
  if (plan.trusted_pointers) return {};
  return api::backend_of(plan.device).check_memory(buffers, workspace);
}

}  // namespace

#define DUALGEMM_TEXT_OF(x) #x
#define DUALGEMM_DOTTED(major, minor, patch) \
  DUALGEMM_TEXT_OF(major) "." DUALGEMM_TEXT_OF(minor) "." DUALGEMM_TEXT_OF(patch)
const char* version() noexcept {
  return DUALGEMM_DOTTED(DUALGEMM_VERSION_MAJOR, DUALGEMM_VERSION_MINOR, DUALGEMM_VERSION_PATCH);
}
#undef DUALGEMM_DOTTED
#undef DUALGEMM_TEXT_OF

const DeviceCaps& device_caps() { return *api::cpu_backend().capabilities(); }

Expected<DeviceCaps> device_caps(DeviceKind kind) { return api::backend_of(kind).capabilities(); }

std::vector<StrategyId> all_strategies() {
  std::vector<StrategyId> ids;
  for (const Strategy* strategy : api::registry()) {  // devices may share a strategy's name
    if (std::find(ids.begin(), ids.end(), strategy->id()) == ids.end()) {
      ids.push_back(strategy->id());
    }
  }
  return ids;
}

std::vector<StrategyId> all_strategies(DeviceKind device) {
  std::vector<StrategyId> ids;
  for (const Strategy* strategy : api::backend_of(device).strategies())
    ids.push_back(strategy->id());
  return ids;
}

Expected<Plan> make_plan(const Problem& problem, const PlanOptions& options) {
  DUALGEMM_TRY(guarded([&]() -> Status {  // a mistake counts before a missing GPU
    DUALGEMM_TRY(validate(problem));
    return plan::parse_config(options.config).status();
  }));
  const Expected<DeviceCaps> caps =
      guarded([&]() -> Expected<DeviceCaps> { return device_caps(options.device); });
  if (!caps) return caps.status();
  if (caps->kind != DeviceKind::kCpu || options.threads != 0)
    return make_plan(problem, options, *caps);
  // Asked anew each time: a thread may have an affinity of its own.
  return guarded([&]() -> Expected<Plan> {
    const Expected<int> threads = core::default_threads();
    if (!threads) return threads.status();
    DeviceCaps bounded = *caps;
    bounded.cores = *threads;
    return make_plan(problem, options, bounded);
  });
}

Expected<Plan> make_plan(const Problem& problem, const PlanOptions& options,
                         const DeviceCaps& caps) {
  return guarded([&]() -> Expected<Plan> {
    const char* force_isa = std::getenv("DUALGEMM_FORCE_ISA");
    return plan::choose(problem, options, caps, api::registry(),
                        force_isa == nullptr ? "" : force_isa);
  });
}

Expected<PreparedWeights> prepare(const Plan& plan, const Buffers& buffers) {
  return guarded([&]() -> Expected<PreparedWeights> {
    const Expected<const Strategy*> strategy = strategy_of(plan);
    if (!strategy) return strategy.status();
    if ((*strategy)->preparation(plan) == Preparation::kNone) {
      return Status::unsupported("plan.strategy", name_of(plan.strategy),
                                 "has no weights to prepare");
    }
    DUALGEMM_TRY(validate(plan.problem));
    Buffers weights = buffers;
    weights.prepared = nullptr;  // so that all four weight pointers are required
    DUALGEMM_TRY(core::check_weights(plan.problem, weights));
    Buffers read;  // all that prepare() reads
    read.gate = weights.gate, read.gate_scales = weights.gate_scales;
    read.up = weights.up, read.up_scales = weights.up_scales;
    read.stream = weights.stream;
    DUALGEMM_TRY(check_memory(plan, read, nullptr));
    Expected<PreparedWeights> prepared = (*strategy)->prepare(plan, weights);
    if (!prepared) return prepared;
    prepared->impl()->device = plan.device;
    prepared->impl()->gpu = api::backend_of(plan.device).current_device();
    return prepared;
  });
}

Status run(const Plan& plan, const Buffers& buffers, void* workspace, int64_t workspace_bytes,
           RunInfo* info) {
  return guarded([&]() -> Status {
    const Expected<const Strategy*> strategy = strategy_of(plan);
    if (!strategy) return strategy.status();
    DUALGEMM_TRY(check_prepared(plan, buffers.prepared));
    DUALGEMM_TRY(api::backend_of(plan.device).check_problem(plan, **strategy));
    DUALGEMM_TRY(validate(plan.problem, buffers));
    const int64_t needed = (*strategy)->workspace_bytes(plan);
    DUALGEMM_TRY(check_workspace(workspace, workspace_bytes, needed));
    DUALGEMM_TRY(core::check_workspace_overlap(plan.problem, buffers, workspace, needed));
    if (plan.problem.m == 0) {  // experts without any token: nothing to write
      if (info != nullptr) *info = {plan.isa, plan.regime, 0, 0};
      return {};
    }
    DUALGEMM_TRY(check_memory(plan, buffers, needed > 0 ? workspace : nullptr));
    return (*strategy)->run(plan, buffers, workspace, info);
  });
}

Status run(const Problem& problem, const Buffers& buffers, const PlanOptions& options,
           RunInfo* info) {
  PlanOptions with_weights = options;
  with_weights.prepared = options.prepared || buffers.prepared != nullptr;
  const Expected<Plan> plan = make_plan(problem, with_weights);
  if (!plan) return plan.status();
  // Checked before a workspace is paid for.
  DUALGEMM_TRY(guarded([&] { return validate(problem, buffers); }));
  DUALGEMM_TRY(guarded([&] { return check_memory(*plan, buffers, nullptr); }));
  Buffers complete = buffers;
  PreparedWeights prepared;
  if (plan->prepared && buffers.prepared == nullptr) {  // the options or the strategy want them
    Expected<PreparedWeights> made = prepare(*plan, buffers);
    if (!made) return made.status();
    prepared = *std::move(made);
    complete.prepared = &prepared;
  }
  const Expected<Workspace> workspace = Workspace::allocate(*plan);
  if (!workspace) return workspace.status();
  DUALGEMM_TRY(run(*plan, complete, *workspace, info));
  if (workspace->data() == nullptr) return {};
  return api::backend_of(plan->device).wait(buffers);  // before the workspace is freed
}

}  // namespace dualgemm
