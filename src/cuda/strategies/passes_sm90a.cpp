// fused_epilogue and fused_sequential on Hopper, by the wgmma kernel. Its tile has room for two
// operands, and both strategies multiply with one weight at a time: the two halves of its rows side
// by side, as a plain product. fused_epilogue: such a product of Gate, then one of Up whose
// epilogue reads R1. fused_sequential: both in one launch, sums of Gate's tile in registers
// meanwhile.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/arena.hpp"
#include "core/linear.hpp"
#include "cuda/kernel_choice.hpp"
#include "cuda/kernels/hopper/checks.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm90a/family.hpp"
#include "cuda/strategies/passes_kernel.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;  // what the library's interface promises

enum class Weight { kGate, kUp };

LinearProblem plain_product(const Problem& p, Weight weight, const Matrix& d) {
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .l = p.l,
          .a = p.a,
          .w = weight == Weight::kGate ? p.gate : p.up,
          .d = d,
          .batch_invariant = p.batch_invariant,
          .bias = p.bias};
}

// The same for both weights, whose products meet in one epilogue.
int64_t first_row_of_second_half(const Problem& p) {
  const bool swizzled = p.gate.scale_layout == ScaleLayout::kSwizzled128x4 ||
                        p.up.scale_layout == ScaleLayout::kSwizzled128x4;
  return core::first_row_of_up(p.n, swizzled ? ScaleLayout::kSwizzled128x4 : ScaleLayout::kLinear);
}

// The halves of a weight's product, with the activation that a later epilogue needs.
core::ResolvedProblem halves_of(const Problem& p, Weight weight, const Matrix& d) {
  const core::ResolvedProblem whole = core::resolve(p);
  Problem halves = core::dual_problem(plain_product(p, weight, d), first_row_of_second_half(p));
  if (p.bias != BiasType::kNone) halves.bias_stride = whole.bias_stride;
  core::ResolvedProblem resolved = core::resolve(halves);
  resolved.act = whole.act;
  return resolved;
}

Buffers buffers_of(const Problem& p, Weight weight, const Buffers& given) {
  const bool gate = weight == Weight::kGate;
  return core::dual_buffers(
      plain_product(p, weight, p.d),
      {.a = given.a,
       .a_scales = given.a_scales,
       .a_row_scale = given.a_row_scale,
       .w = gate ? given.gate : given.up,
       .w_scales = gate ? given.gate_scales : given.up_scales,
       .alpha = gate ? given.alpha_gate : given.alpha_up,
       .alpha_per_batch = gate ? given.alpha_gate_per_batch : given.alpha_up_per_batch,
       .bias = gate ? given.bias_gate : given.bias_up,
       .d = given.d,
       .d_scales = given.d_scales,
       .d_global_scale = given.d_global_scale,
       .stream = given.stream},
      first_row_of_second_half(p));
}

constexpr Matrix kR1{.type = DataType::kF32};

// What both strategies compute from, and where it goes.
struct Halves {
  core::ResolvedProblem gate, up;
};
Halves halves_of(const Problem& p, GateProduct gate) {
  return {halves_of(p, Weight::kGate, gate == GateProduct::kInMemory ? kR1 : p.d),
          halves_of(p, Weight::kUp, p.d)};
}

constexpr int64_t kMostForMmaSync = 8;

Status supports_passes_sm90a(const Problem& problem, GateProduct gate) {
  if (gate == GateProduct::kKept && problem.m <= kMostForMmaSync) {
    // (4096, 7168) on an H200: 59 us at 16 rows, where the mma.sync kernel takes 35 at 8.
    return Status::unsupported("m", std::to_string(problem.m),
                               "must be above 8 for the wgmma kernel of this strategy");
  }
  const Halves halves = halves_of(problem, gate);
  for (const core::ResolvedProblem* product : {&halves.gate, &halves.up}) {
    const Status status = sm90a::supports(product->problem);
    if (status.ok()) continue;
    if (status.argument() != "m, n, k, l") return status;
    // The message has the caller's n; the halves have half of it.
    return Status::unsupported(
        "m, n, k, l", fmt::format("{}, {}, {}, {}", problem.m, problem.n, problem.k, problem.l),
        status.rule());
  }
  return {};
}

std::span<const sm90a::Instance> instances_for(GateProduct gate) {
  return gate == GateProduct::kInMemory ? sm90a::instances() : sm90a::sequential_instances();
}

// null: not compiled for the problem.
const sm90a::Instance* instance_of(const Plan& plan, GateProduct gate) {
  const Problem halves = halves_of(plan.problem, gate).gate.problem;
  const sm90a::Instance* const found =
      sm90a::find_instance(instances_for(gate), plan.shape.tile_m, plan.shape.tile_n,
                           plan.shape.k_warpgroups, multiplies_bf16(halves), false);
  return found != nullptr && sm90a::is_for(found->config, halves) ? found : nullptr;
}

KernelChoice choice_of(const sm90a::Instance& instance) {
  return {KernelId::kSm90a, sm90a::shape_of(instance)};
}

Status plan_passes_sm90a(Plan& plan, GateProduct gate, const DeviceCaps& caps,
                         const PlanConstraints& constraints) {
  const Problem halves = halves_of(plan.problem, gate).gate.problem;
  std::vector<KernelChoice> compiled;
  for (const sm90a::Instance& instance : instances_for(gate)) {
    if (!instance.config.prepared && sm90a::is_for(instance.config, halves))
      compiled.push_back(choice_of(instance));
  }
  const sm90a::Instance& usual = gate == GateProduct::kInMemory
                                     ? sm90a::choose_instance(halves, caps.num_sms, false)
                                     : sm90a::choose_sequential_instance(halves, caps.num_sms);
  const Expected<KernelChoice> kernel = choose_kernel(compiled, choice_of(usual), constraints);
  if (!kernel) return kernel.status();
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  fill_in(plan, *kernel);
  plan.shape.ctas = sm90a::make_schedule(halves, instance_of(plan, gate)->config, *most).ctas;
  return {};
}

// One launch of the kernel, and what it needs of the workspace from `begin` on.
struct Product {
  sm90a::Schedule schedule;
  sm90a::Workspace pieces;
  int64_t begin;
};

struct Passes {
  Halves halves;
  int64_t r1 = 0;
  Product first, second;  // second: of kInMemory
  int64_t bytes = 0;
};

Passes passes_of(const Plan& plan, GateProduct gate, const sm90a::Config& config) {
  Passes passes{.halves = halves_of(plan.problem, gate), .first = {}, .second = {}};
  const Problem& p = plan.problem;
  core::Arena arena(nullptr, kWorkspaceAlignment);
  const auto product = [&](const core::ResolvedProblem& halves,
                           const core::ResolvedProblem* of_up) -> Product {
    const sm90a::Schedule schedule = sm90a::make_schedule(halves.problem, config, plan.shape.ctas);
    const sm90a::Workspace pieces =
        sm90a::plan_workspace(halves, config, schedule, plan.unaligned, of_up);
    return {schedule, pieces, arena.take_offset(pieces.bytes)};
  };
  if (gate == GateProduct::kInMemory) {
    passes.r1 = arena.take_offset(core::bytes_of(DataType::kF32, p.l * p.m * p.n));
    passes.first = product(passes.halves.gate, nullptr);
    passes.second = product(passes.halves.up, nullptr);
  } else {
    passes.first = product(passes.halves.gate, &passes.halves.up);
  }
  passes.bytes = arena.used();
  return passes;
}

int64_t workspace_bytes_of_passes_sm90a(const Plan& plan, GateProduct gate) {
  const sm90a::Instance* const instance = instance_of(plan, gate);
  return instance == nullptr ? 0 : passes_of(plan, gate, instance->config).bytes;
}

Expected<std::vector<KernelLaunch>> launches_of_passes_sm90a(const Plan& plan, GateProduct gate,
                                                             const Buffers& buffers,
                                                             void* workspace,
                                                             Expected<EncodeTiled> (*encoder)()) {
  const sm90a::Instance* const instance = instance_of(plan, gate);
  if (instance == nullptr) return hopper::not_compiled(plan.shape);
  const Expected<EncodeTiled> encode_tiled = encoder();
  if (!encode_tiled) return encode_tiled.status();
  const Passes passes = passes_of(plan, gate, instance->config);
  auto* const base = static_cast<uint8_t*>(workspace);
  Buffers of_gate = buffers_of(plan.problem, Weight::kGate, buffers);
  const Buffers of_up = buffers_of(plan.problem, Weight::kUp, buffers);
  const auto launches_of = [&](const core::ResolvedProblem& halves, const Buffers& operands,
                               const Product& product, const sm90a::OtherProduct& other) {
    return sm90a::build_launches(halves, operands, product.pieces, base + product.begin, *instance,
                                 product.schedule, *encode_tiled, nullptr, other);
  };
  if (gate == GateProduct::kKept) {
    // One epilogue for both, with each product's own factors and biases.
    of_gate.alpha_up = buffers.alpha_up;
    of_gate.alpha_up_per_batch = buffers.alpha_up_per_batch;
    of_gate.bias_up = buffers.bias_up;
    return launches_of(passes.halves.gate, of_gate, passes.first,
                       {.of_up = &passes.halves.up, .up_buffers = &of_up});
  }
  of_gate.d = base + passes.r1;
  auto launches = launches_of(passes.halves.gate, of_gate, passes.first, {});
  if (!launches) return launches;
  const auto second = launches_of(passes.halves.up, of_up, passes.second,
                                  {.r1 = reinterpret_cast<const float*>(base + passes.r1)});
  if (!second) return second;
  launches->insert(launches->end(), second->begin(), second->end());
  return launches;
}

}  // namespace

const PassesKernel& passes_kernel_sm90a() {
  static const PassesKernel kernel{Isa::kSm90a, supports_passes_sm90a, plan_passes_sm90a,
                                   workspace_bytes_of_passes_sm90a, launches_of_passes_sm90a};
  return kernel;
}

}  // namespace dualgemm::cuda
