#include "dualgemm/dualgemm.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "api/backend.hpp"
#include "api/checked_run.hpp"
#include "api/guarded.hpp"
#include "core/usable_cores.hpp"
#include "core/validate.hpp"
#include "plan/choose.hpp"
#include "plan/config_text.hpp"
#include "plan/prepared_bytes.hpp"

namespace dualgemm {
namespace {

using api::guarded;

constexpr uintptr_t kWorkspaceAlignment = 64;

Status no_strategy(const Plan& plan) {
  return Status::unsupported(
      "plan.strategy", name_of(plan.strategy),
      std::string("this build has no such strategy for ") + name_of(plan.device));
}

Status nothing_to_prepare(const Plan& plan) {
  return Status::unsupported("plan.strategy", name_of(plan.strategy), "has no weights to prepare");
}

// The strategy behind a plan that can run here; plans may come from other machines or be edited.
Expected<const Strategy*> strategy_of(const Plan& plan) {
  const Strategy* strategy = plan::find_strategy(api::registry(), plan.strategy, plan.device);
  if (strategy == nullptr) return no_strategy(plan);
  DUALGEMM_TRY(api::backend_of(plan.device).check_isa(plan));
  if (plan.threads < 1 || plan.threads > plan::kMaxThreads) {
    return Status::invalid("plan.threads", std::to_string(plan.threads),
                           "must be 1 .. " + std::to_string(plan::kMaxThreads));
  }
  return strategy;
}

// The buffers as the checks and the strategy see them: with a view of the prepared bytes, whether a
// handle or the caller owns them.
Buffers with_view(const Buffers& buffers) {
  Buffers resolved = buffers;
  resolved.prepared_view = plan::view_of(buffers);
  return resolved;
}

// Whether the buffers have prepared weights where the plan wants them, and only there.
Status check_prepared_given(const Plan& plan, const Buffers& buffers) {
  const PreparedWeights* const handle = buffers.prepared;
  if (!plan.prepared) {
    if (handle == nullptr && buffers.prepared_view == nullptr) return {};
    return Status::invalid("prepared", "not null",
                           "must be null: the plan was made without PlanOptions::prepared");
  }
  if (handle != nullptr && buffers.prepared_view != nullptr) {
    return Status::invalid("prepared", "a handle and a view", "must be one of them");
  }
  if (plan::view_of(buffers) != nullptr) return {};
  return Status::invalid("prepared", handle == nullptr ? "null" : "empty",
                         "is required: the plan was made with PlanOptions::prepared");
}

// Whether they are those of the plan, whose problem is checked.
Status check_prepared_fits(const Plan& plan, const Strategy& strategy, const Buffers& buffers) {
  if (!plan.prepared) return {};
  const PreparedView& view = *plan::view_of(buffers);
  const PreparedDescriptor wanted = strategy.prepared_descriptor(plan);
  if (wanted.format == PreparedFormat::kNone) return nothing_to_prepare(plan);
  DUALGEMM_TRY(plan::check_view_fits(wanted, view));
  // What the library has written into memory of its own is not looked at again.
  const PreparedWeights* const handle = buffers.prepared;
  const bool owned = handle != nullptr && handle->impl()->memory != nullptr;
  if (owned || plan.device != DeviceKind::kCpu) return {};
  return plan::check_headers(view);
}

core::GroupArrays group_arrays_of(const Plan& plan) {
  return plan.device == DeviceKind::kCuda ? core::GroupArrays::kDevice : core::GroupArrays::kHost;
}

Expected<Plan> choose_plan(const core::CheckedProblem& problem, const PlanOptions& options,
                           const DeviceCaps& caps) {
  const char* force_isa = std::getenv("DUALGEMM_FORCE_ISA");
  return plan::choose(problem, options, caps, api::registry(),
                      force_isa == nullptr ? "" : force_isa);
}

// For the device of the options as it is here.
Expected<Plan> plan_here(const core::CheckedProblem& problem, const PlanOptions& options) {
  DUALGEMM_TRY(plan::parse_config(options.config).status());
  const Expected<DeviceCaps> caps = device_caps(options.device);
  if (!caps) return caps.status();
  if (caps->kind != DeviceKind::kCpu || options.threads != 0)
    return choose_plan(problem, options, *caps);
  // Asked anew each time: a thread may have an affinity of its own.
  const Expected<int> threads = core::default_threads();
  if (!threads) return threads.status();
  DeviceCaps bounded = *caps;
  bounded.cores = *threads;
  return choose_plan(problem, options, bounded);
}

// Do the arrays that the call reads and writes belong to the device that will run it?
Status check_memory(const Plan& plan, const Buffers& buffers, const void* workspace) {
  if (plan.trusted_pointers) return {};
  return api::backend_of(plan.device).check_memory(buffers, workspace);
}

}  // namespace

namespace api {
namespace {

// The last check of a run: of the memory that it may write to besides D.
Expected<CheckedRun> with_workspace(const Plan& plan, const core::CheckedProblem& problem,
                                    const Strategy& strategy, const Buffers& buffers,
                                    void* workspace, int64_t workspace_bytes) {
  const int64_t needed = strategy.workspace_bytes(plan);
  DUALGEMM_TRY(check_workspace(workspace, workspace_bytes, needed));
  DUALGEMM_TRY(
      core::check_workspace_overlap(problem, buffers, group_arrays_of(plan), workspace, needed));
  return CheckedRun{&plan, problem, &strategy, buffers, workspace, needed};
}

}  // namespace

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

Expected<CheckedRun> check_run(const Plan& plan, const Buffers& given, void* workspace,
                               int64_t workspace_bytes) {
  const Expected<const Strategy*> strategy = strategy_of(plan);
  if (!strategy) return strategy.status();
  DUALGEMM_TRY(check_prepared_given(plan, given));
  const Expected<core::CheckedProblem> problem = core::CheckedProblem::of(plan.problem);
  if (!problem) return problem.status();
  DUALGEMM_TRY(check_prepared_fits(plan, **strategy, given));
  DUALGEMM_TRY(backend_of(plan.device).check_problem(*problem, **strategy));
  const Buffers buffers = with_view(given);
  DUALGEMM_TRY(core::check_buffers(*problem, buffers, group_arrays_of(plan)));
  return with_workspace(plan, *problem, **strategy, buffers, workspace, workspace_bytes);
}

Status run_checked(const CheckedRun& checked, RunInfo* info) {
  const Plan& plan = *checked.plan;
  if (plan.problem.m == 0) {  // experts without any token: nothing to write
    if (info != nullptr) *info = {plan.isa, plan.regime, 0, 0};
    return {};
  }
  return checked.strategy->run(plan, checked.problem, checked.buffers, checked.workspace, info);
}

}  // namespace api

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
  return guarded([&]() -> Expected<Plan> {  // a mistake counts before a missing GPU
    const Expected<core::CheckedProblem> checked = core::CheckedProblem::of(problem);
    if (!checked) return checked.status();
    return plan_here(*checked, options);
  });
}

Expected<Plan> make_plan(const Problem& problem, const PlanOptions& options,
                         const DeviceCaps& caps) {
  return guarded([&]() -> Expected<Plan> {
    const Expected<core::CheckedProblem> checked = core::CheckedProblem::of(problem);
    if (!checked) return checked.status();
    return choose_plan(*checked, options, caps);
  });
}

Expected<PreparedDescriptor> prepared_descriptor(const Plan& plan) {
  return guarded([&]() -> Expected<PreparedDescriptor> {
    const Strategy* strategy = plan::find_strategy(api::registry(), plan.strategy, plan.device);
    if (strategy == nullptr) return no_strategy(plan);
    DUALGEMM_TRY(validate(plan.problem));
    const PreparedDescriptor descriptor = strategy->prepared_descriptor(plan);
    if (descriptor.format == PreparedFormat::kNone) return nothing_to_prepare(plan);
    return descriptor;
  });
}

namespace {

// What prepare() does for a plan.
struct Preparing {
  const Strategy* strategy;
  core::CheckedProblem problem;
  PreparedDescriptor wanted;
};

Expected<Preparing> preparing(const Plan& plan, const Strategy& strategy,
                              const core::CheckedProblem& problem) {
  const PreparedDescriptor wanted = strategy.prepared_descriptor(plan);
  if (wanted.format == PreparedFormat::kNone) return nothing_to_prepare(plan);
  return Preparing{&strategy, problem, wanted};
}

Expected<Preparing> preparing(const Plan& plan) {
  const Expected<const Strategy*> strategy = strategy_of(plan);
  if (!strategy) return strategy.status();
  const Expected<core::CheckedProblem> problem = core::CheckedProblem::of(plan.problem);
  if (!problem) return problem.status();
  return preparing(plan, **strategy, *problem);
}

// All that prepare() reads: all four weights are required.
Buffers weights_of(const Buffers& buffers) {
  Buffers weights;
  weights.gate = buffers.gate, weights.gate_scales = buffers.gate_scales;
  weights.up = buffers.up, weights.up_scales = buffers.up_scales;
  weights.stream = buffers.stream;
  return weights;
}

// `weights` are checked, but for the device that they belong to.
Status fill_prepared(const Plan& plan, const Preparing& work, const Buffers& weights, void* memory,
                     int64_t bytes) {
  DUALGEMM_TRY(plan::check_memory_for(work.wanted, memory, bytes));
  DUALGEMM_TRY(core::check_prepared_overlap(work.problem, weights, memory, work.wanted.bytes));
  DUALGEMM_TRY(check_memory(plan, weights, nullptr));
  const PreparedView written{work.wanted, memory, bytes};
  Buffers write;
  write.prepared_view = &written;
  write.stream = weights.stream;
  DUALGEMM_TRY(check_memory(plan, write, nullptr));
  return work.strategy->prepare(plan, work.problem, weights, static_cast<uint8_t*>(memory));
}

// The same into memory of the handle's.
Expected<PreparedWeights> made_prepared(const Plan& plan, const Preparing& work,
                                        const Buffers& weights) {
  const api::Backend& backend = api::backend_of(plan.device);
  Expected<std::shared_ptr<void>> memory = backend.allocate_prepared(work.wanted.bytes);
  if (!memory) return memory.status();
  DUALGEMM_TRY(fill_prepared(plan, work, weights, memory->get(), work.wanted.bytes));
  auto impl = std::make_unique<PreparedWeights::Impl>();
  impl->view = {work.wanted, memory->get(), work.wanted.bytes};
  impl->memory = *std::move(memory);
  impl->gpu = backend.current_device();
  return PreparedWeights(std::move(impl));
}

}  // namespace

Status prepare(const Plan& plan, const Buffers& buffers, void* memory, int64_t bytes) {
  return guarded([&]() -> Status {
    const Expected<Preparing> work = preparing(plan);
    if (!work) return work.status();
    const Buffers weights = weights_of(buffers);
    DUALGEMM_TRY(core::check_weights(work->problem, weights));
    return fill_prepared(plan, *work, weights, memory, bytes);
  });
}

Expected<PreparedWeights> prepare(const Plan& plan, const Buffers& buffers) {
  return guarded([&]() -> Expected<PreparedWeights> {
    const Expected<Preparing> work = preparing(plan);
    if (!work) return work.status();
    const Buffers weights = weights_of(buffers);
    DUALGEMM_TRY(core::check_weights(work->problem, weights));  // before memory is paid for
    return made_prepared(plan, *work, weights);
  });
}

Expected<PreparedWeights> PreparedWeights::borrow(const PreparedView& view) {
  return guarded([&]() -> Expected<PreparedWeights> {
    DUALGEMM_TRY(plan::check_view(view));
    auto impl = std::make_unique<Impl>();
    impl->view = view;
    return PreparedWeights(std::move(impl));
  });
}

Expected<PreparedDescriptor> read_prepared_header(const void* header, int64_t bytes) {
  return guarded([&] { return plan::read_header(header, bytes); });
}

Expected<PreparedView> open_prepared(const void* memory, int64_t bytes) {
  return guarded([&]() -> Expected<PreparedView> {
    const Expected<PreparedDescriptor> descriptor = plan::read_header(memory, bytes);
    if (!descriptor) return descriptor.status();
    const PreparedView view{*descriptor, memory, bytes};
    DUALGEMM_TRY(plan::check_headers(view));
    return view;
  });
}

Expected<PreparedView> prepared_experts(const PreparedView& view, int64_t first, int64_t count) {
  return guarded([&] { return plan::some_experts(view, first, count); });
}

Status run(const Plan& plan, const Buffers& buffers, void* workspace, int64_t workspace_bytes,
           RunInfo* info) {
  return guarded([&]() -> Status {
    const auto checked = api::check_run(plan, buffers, workspace, workspace_bytes);
    if (!checked) return checked.status();
    if (plan.problem.m > 0) {
      DUALGEMM_TRY(
          check_memory(plan, checked->buffers, checked->workspace_bytes > 0 ? workspace : nullptr));
    }
    return api::run_checked(*checked, info);
  });
}

Status run(const Problem& problem, const Buffers& buffers, const PlanOptions& options,
           RunInfo* info) {
  return guarded([&]() -> Status {
    PlanOptions with_weights = options;
    const bool has_weights = buffers.prepared != nullptr || buffers.prepared_view != nullptr;
    with_weights.prepared = options.prepared || has_weights;
    const Expected<core::CheckedProblem> checked = core::CheckedProblem::of(problem);
    if (!checked) return checked.status();
    const Expected<Plan> plan = plan_here(*checked, with_weights);
    if (!plan) return plan.status();
    // Checked before a workspace is paid for.
    DUALGEMM_TRY(core::check_buffers(*checked, buffers, group_arrays_of(*plan)));
    DUALGEMM_TRY(check_memory(*plan, with_view(buffers), nullptr));
    const Expected<const Strategy*> strategy = strategy_of(*plan);
    if (!strategy) return strategy.status();
    Buffers complete = buffers;
    PreparedWeights prepared;
    if (plan->prepared && !has_weights) {  // the options or the strategy want them
      const Expected<Preparing> work = preparing(*plan, **strategy, *checked);
      if (!work) return work.status();
      Expected<PreparedWeights> made = made_prepared(*plan, *work, weights_of(buffers));
      if (!made) return made.status();
      prepared = *std::move(made);
      complete.prepared = &prepared;
    }
    const Expected<Workspace> workspace = Workspace::allocate(*plan);
    if (!workspace) return workspace.status();
    DUALGEMM_TRY(check_prepared_given(*plan, complete));
    DUALGEMM_TRY(check_prepared_fits(*plan, **strategy, complete));
    const auto ready = api::with_workspace(*plan, *checked, **strategy, with_view(complete),
                                           workspace->data(), workspace->size_bytes());
    if (!ready) return ready.status();
    DUALGEMM_TRY(api::run_checked(*ready, info));
    if (workspace->data() == nullptr) return {};
    return api::backend_of(plan->device).wait(buffers);  // before the workspace is freed
  });
}

}  // namespace dualgemm
