#include "cuda/kernels/sm100a_pair/family.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a_pair/launch.hpp"

namespace dualgemm::cuda::sm100a_pair {
namespace {

KernelShape shape_of(const Instance& instance) {
  return {.tile_m = kTileM,
          .tile_n = instance.config.tile_n,
          .tile_k = kTileK,
          .stages = instance.stages};
}

// Bits that must not depend on m come from one kernel, that of one CTA: that an MMA over a pair
// gives the same ones is so in the interpreter, and no document promises it. With prepared weights
// those of this kernel are for every m.
Status check(const Problem& problem, bool prepared) {
  if (problem.batch_invariant && !prepared)
    return Status::unsupported("batch_invariant", "true", "only the kernel of one CTA is");
  return supports(problem);
}

Status supports_request(const KernelRequest& request) {
  DUALGEMM_TRY(check_pairs("prepared", request.prepared ? "true" : "false", request.caps));
  return check(request.problem, request.prepared);
}

std::vector<KernelShape> shapes_of(std::span<const Instance> instances,
                                   const KernelRequest& request) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances) {
    const Config& config = instance.config;
    if (find_instance(config.tile_n, request.problem.d.type, request.prepared, config.persistent) ==
        &instance)
      shapes.push_back(shape_of(instance));
  }
  return shapes;
}

std::vector<KernelShape> candidates(const KernelRequest& request) {
  return shapes_of(request.prepared ? prepared_instances() : instances(), request);
}
std::vector<KernelShape> persistent_candidates(const KernelRequest& request) {
  return shapes_of(persistent_instances(), request);
}

TimedShape timed(const KernelRequest& request, const blackwell::TimedTile& best) {
  const Problem& p = request.problem;
  const Instance& instance =
      *find_instance(best.tile.tile_n, p.d.type, request.prepared, best.tile.persistent);
  return {shape_of(instance),
          blackwell::copies_us(p, request.prepared, request.prepared) + best.us};
}

TimedShape fastest(const KernelRequest& request) {
  const Problem& p = request.problem;
  const DeviceCaps& caps = request.caps;
  return timed(request, blackwell::fastest_pair(p.m, p.n, p.k, p.l, caps.num_sms, caps.max_pairs,
                                                request.prepared));
}
TimedShape fastest_persistent(const KernelRequest& request) {
  const Problem& p = request.problem;
  const DeviceCaps& caps = request.caps;
  return timed(request, blackwell::persistent_pair(p.m, p.n, p.k, p.l, caps.num_sms, caps.max_pairs,
                                                   request.prepared));
}

// Two CTAs for each pair that the GPU has at once, or as the constraints say.
Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_pair_ctas(constraints, caps);
  if (!most) return most.status();
  const Problem& p = plan.problem;
  plan.shape.ctas = blackwell::persistent_ctas(p.m, p.n, p.l, *most);
  return {};
}

blackwell::Copies copies_of(const Plan& plan) {
  return blackwell::plan_copies(core::resolve(plan.problem), plan.unaligned, plan.prepared,
                                plan.prepared);
}

int64_t workspace_bytes(const Plan& plan) { return copies_of(plan).workspace_bytes; }

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  DUALGEMM_TRY(check(plan.problem, plan.prepared));
  const bool persistent = plan.kernel_id == KernelId::kSm100aPairPersistent;
  const Instance* const instance =
      find_instance(plan.shape.tile_n, plan.problem.d.type, plan.prepared, persistent);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape.tile_n", std::to_string(plan.shape.tile_n),
                               "must be of a compiled kernel");
  }
  const blackwell::Copies copies = copies_of(plan);
  auto launches = build_launches(in.problem, in.buffers, copies, in.workspace, *instance,
                                 in.encode_tiled, in.prepared, plan.shape.ctas);
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches), 2 * copies.workspace_bytes};
}

}  // namespace

Expected<int64_t> most_pair_ctas(const PlanConstraints& constraints, const DeviceCaps& caps) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most;
  if (constraints.ctas == 1)
    return Status::invalid("config", "ctas=1", "must be at least 2, a pair");
  const int64_t pairs = blackwell::pairs_at_once(caps.num_sms, caps.max_pairs);
  return std::min(*most, pairs * kPairCtas);
}

constinit const KernelFamily kFamily{.id = KernelId::kSm100aPair,
                                     .isa = Isa::kSm100a,
                                     .rank = 2,
                                     .pairs = true,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = nullptr,
                                     .workspace_bytes = workspace_bytes,
                                     .launches = launches};

constinit const KernelFamily kPersistentFamily{.id = KernelId::kSm100aPairPersistent,
                                               .isa = Isa::kSm100a,
                                               .rank = 3,
                                               .pairs = true,
                                               .supports = supports_request,
                                               .candidates = persistent_candidates,
                                               .fastest = fastest_persistent,
                                               .deal_out = deal_out,
                                               .workspace_bytes = workspace_bytes,
                                               .launches = launches};

}  // namespace dualgemm::cuda::sm100a_pair
