#include "cuda/kernels/sm100a/family.hpp"

#include <algorithm>
#include <string>

#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a/launch.hpp"

namespace dualgemm::cuda::sm100a {
namespace {

KernelShape shape_of(const Instance& instance) {
  return {.tile_m = kTileM,
          .tile_n = instance.config.tile_n,
          .tile_k = kTileK,
          .stages = instance.stages};
}

Status supports_request(const KernelRequest& request) {
  if (request.prepared)
    return Status::unsupported("prepared", "true", "this kernel takes unpacked weights");
  return supports(request.problem);
}

std::vector<KernelShape> candidates(const KernelRequest& request) {
  const DataType output = request.problem.d.type;
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances()) {
    if (find_instance(instance.config.tile_n, output) == &instance)
      shapes.push_back(shape_of(instance));
  }
  return shapes;
}

TimedShape fastest(const KernelRequest& request) {
  const Problem& p = request.problem;
  return {shape_of(choose_instance(p, request.caps.num_sms)),
          blackwell::copies_us(p, false, false) +
              blackwell::us_of_one_cta(p.m, p.n, p.k, p.l, request.caps.num_sms)};
}

blackwell::Copies copies_of(const Plan& plan) {
  return blackwell::plan_copies(core::resolve(plan.problem), plan.unaligned, plan.prepared);
}

int64_t workspace_bytes(const Plan& plan) { return copies_of(plan).workspace_bytes; }

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const Instance* const instance = find_instance(plan.shape.tile_n, plan.problem.d.type);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape.tile_n", std::to_string(plan.shape.tile_n),
                               "must be of a compiled kernel");
  }
  DUALGEMM_TRY(supports(plan.problem));
  const blackwell::Copies copies = copies_of(plan);
  auto launches =
      build_launches(in.problem, in.buffers, copies, in.workspace, *instance, in.encode_tiled);
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches), 2 * copies.workspace_bytes};
}

}  // namespace

constinit const KernelFamily kFamily{.id = KernelId::kSm100a,
                                     .isa = Isa::kSm100a,
                                     .rank = 4,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = nullptr,
                                     .workspace_bytes = workspace_bytes,
                                     .launches = launches};

}  // namespace dualgemm::cuda::sm100a
