// fused on Blackwell: the operands' copies where the TMA unit needs them, then one kernel: for few
// rows, of one CTA per tile, of a pair, or for 16-bit A.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_pair/groups/launch.hpp"
#include "cuda/kernels/sm100a_pair/launch.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "cuda/kernels/sm100a_w4a16/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/kernel_choice.hpp"
#include "cuda/strategies/strategies.hpp"
#include "plan/config_text.hpp"

namespace dualgemm::cuda {
namespace {

KernelChoice choice_of(const sm100a::Instance& instance) {
  return {.kernel = sm100a::kKernelName,
          .shape = {.tile_m = sm100a::kTileM,
                    .tile_n = instance.config.tile_n,
                    .tile_k = blackwell::kTileK,
                    .stages = instance.stages}};
}

// Whether an instance for groups goes through all rows instead.
bool is_persistent(const Problem& problem, bool for_groups) {
  return for_groups && problem.grouping == Grouping::kNone;
}

KernelChoice choice_of(const Problem& problem, const sm100a_skinny::Instance& instance) {
  return {.kernel = is_persistent(problem, instance.config.grouped) ? sm100a_skinny::kPersistentName
                                                                    : sm100a_skinny::kKernelName,
          .shape = {.tile_m = instance.config.tile_m,
                    .tile_n = instance.config.tile_n,
                    .tile_k = sm100a_skinny::kTileK,
                    .stages = instance.stages}};
}

KernelChoice choice_of(const sm100a_pair::Instance& instance) {
  return {.kernel =
              instance.config.persistent ? sm100a_pair::kPersistentName : sm100a_pair::kKernelName,
          .shape = {.tile_m = sm100a_pair::kTileM,
                    .tile_n = instance.config.tile_n,
                    .tile_k = sm100a_pair::kTileK,
                    .stages = instance.stages}};
}

// With its CTAs: those that share k, for each tile of D; persistent ones are not known yet.
KernelChoice choice_of(const Problem& problem, const sm100a_w4a16::Instance& instance,
                       int num_sms) {
  const int tile_m = instance.config.tile_m;
  return {.kernel = is_persistent(problem, instance.config.grouped) ? sm100a_w4a16::kPersistentName
                                                                    : sm100a_w4a16::kKernelName,
          .shape = {.tile_m = tile_m,
                    .tile_n = sm100a_w4a16::kTileN,
                    .tile_k = sm100a_w4a16::kTileK,
                    .stages = instance.stages,
                    .ctas = instance.config.grouped
                                ? 0
                                : sm100a_w4a16::num_tiles(problem, tile_m) *
                                      sm100a_w4a16::choose_split(problem, instance, num_sms)}};
}

// Bits that must not depend on m come from one kernel, that of one CTA: that an MMA gives the same
// ones with its operands in the other roles, or over a pair, is so in the interpreter, and nobody
// promises it. With prepared weights those of the pair's kernel are for every m.
Status suits_other_kernels(const Problem& problem) {
  if (!problem.batch_invariant) return {};
  return Status::unsupported("batch_invariant", "true", "only the kernel of one CTA is");
}
Status suits_skinny(const Problem& problem) {
  DUALGEMM_TRY(suits_other_kernels(problem));
  return sm100a_skinny::supports(problem);
}
Status suits_pair(const Problem& problem, bool prepared) {
  if (!prepared) DUALGEMM_TRY(suits_other_kernels(problem));
  return sm100a_pair::supports(problem);
}

bool takes_pairs(const Problem& problem, bool prepared, const DeviceCaps& caps) {
  return caps.max_pairs != 0 && suits_pair(problem, prepared).ok();
}

bool is_grouped(const Problem& problem) { return problem.grouping != Grouping::kNone; }
bool takes_pairs_of_groups(const Problem& problem, const DeviceCaps& caps) {
  return caps.max_pairs != 0 && sm100a_pair_groups::supports(problem).ok();
}

bool is_skinny_kernel(const std::string& kernel) {
  return kernel == sm100a_skinny::kKernelName || kernel == sm100a_skinny::kPersistentName;
}
bool is_w4a16_kernel(const std::string& kernel) {
  return kernel == sm100a_w4a16::kKernelName || kernel == sm100a_w4a16::kPersistentName;
}

// 16-bit A has a kernel of its own.
bool is_w4a16(const Problem& problem) { return problem.a.type != DataType::kE2M1; }

// Of groups with A in NVFP4 the kernel for few rows takes all that that of pairs does.
Status supports_sm100a(const Problem& problem) {
  if (is_w4a16(problem)) return sm100a_w4a16::supports(problem);
  return problem.grouping == Grouping::kNone ? sm100a::supports(problem)
                                             : sm100a_skinny::supports(problem);
}

// The kernels of pairs for the problem's type of D.
void add_pairs(const Problem& problem, bool prepared, std::vector<KernelChoice>& compiled) {
  const auto add = [&](std::span<const sm100a_pair::Instance> instances) {
    for (const sm100a_pair::Instance& instance : instances) {
      const sm100a_pair::Config& config = instance.config;
      if (sm100a_pair::find_instance(config.tile_n, problem.d.type, prepared, config.persistent) ==
          &instance)
        compiled.push_back(choice_of(instance));
    }
  };
  add(prepared ? sm100a_pair::prepared_instances() : sm100a_pair::instances());
  add(sm100a_pair::persistent_instances());
}

std::vector<KernelChoice> compiled_for_groups(const Problem& problem, const DeviceCaps& caps) {
  std::vector<KernelChoice> compiled;
  for (const sm100a_skinny::Instance& instance : sm100a_skinny::instances_for(problem)) {
    const sm100a_skinny::Config& config = instance.config;
    if (sm100a_skinny::find_instance(problem, config.tile_m, config.tile_n) == &instance)
      compiled.push_back(choice_of(problem, instance));
  }
  if (takes_pairs_of_groups(problem, caps))
    compiled.push_back(choice_of(sm100a_pair_groups::instance_for(problem.d.type)));
  return compiled;
}

// The tiles of one CTA, of a pair, and those for few rows. A caller's constraints choose among
// them, so that any kernel can stand in for another.
std::vector<KernelChoice> compiled_for(const Problem& problem, bool prepared,
                                       const DeviceCaps& caps) {
  if (is_grouped(problem)) return compiled_for_groups(problem, caps);
  const DataType output = problem.d.type;
  std::vector<KernelChoice> compiled;
  if (!prepared) {
    for (const sm100a::Instance& instance : sm100a::instances()) {
      if (sm100a::find_instance(instance.config.tile_n, output) == &instance)
        compiled.push_back(choice_of(instance));
    }
  }
  if (takes_pairs(problem, prepared, caps)) add_pairs(problem, prepared, compiled);
  if (!suits_skinny(problem).ok()) return compiled;
  for (const bool persistent : {false, true}) {
    for (const auto& instance : sm100a_skinny::instances_for(problem, prepared, persistent)) {
      if (instance.config.tile_m >= problem.m) compiled.push_back(choice_of(problem, instance));
    }
  }
  return compiled;
}

// Of one CTA or of a pair.
blackwell::TileChoice usual_tile(const Problem& p, bool prepared, const DeviceCaps& caps) {
  const auto choose = prepared ? blackwell::choose_prepared_tile : blackwell::choose_tile;
  return choose(p.m, p.n, p.k, p.l, caps.num_sms, caps.max_pairs);
}

// Whether the kernel for few rows takes no longer than `tile`. It does up to some 16 or 32 rows where
// its tiles run at once, and where they do not and its CTAs are persistent. With more rows its
// epilogue, of two or four warps, takes longer than a pair's of sixteen.
bool takes_skinny(const Problem& p, bool prepared, const blackwell::TileChoice& tile,
                  const DeviceCaps& caps) {
  if (!suits_skinny(p).ok()) return false;
  if (prepared && !takes_pairs(p, true, caps)) return true;  // nothing else takes them
  const sm100a_skinny::Instance& few = sm100a_skinny::choose_instance(p, caps.num_sms, prepared);
  return sm100a_skinny::modelled_us(p, few, caps.num_sms, prepared) <=
         blackwell::copies_us(p, prepared, prepared) +
             blackwell::us_of_few_rows(tile, p.n, p.k, p.l, caps.num_sms, caps.max_pairs, prepared);
}

// Pairs where they are sooner and the constraints let them be, else the other kernel's own choice.
KernelChoice usual_for_groups(const Problem& p, const DeviceCaps& caps,
                              const PlanConstraints& constraints) {
  const int64_t pairs = blackwell::pairs_at_once(caps.num_sms, caps.max_pairs);
  if (takes_pairs_of_groups(p, caps) && sm100a_pair_groups::modelled_clocks(p, pairs) <
                                            sm100a_skinny::modelled_group_clocks(p, caps.num_sms)) {
    const KernelChoice choice = choice_of(sm100a_pair_groups::instance_for(p.d.type));
    if (satisfies_but_ctas(choice.kernel, choice.shape, constraints)) return choice;
  }
  return choice_of(p, sm100a_skinny::choose_instance(p, caps.num_sms));
}

KernelChoice usual_for(const Problem& p, bool prepared, const DeviceCaps& caps) {
  const int num_sms = caps.num_sms;
  const blackwell::TileChoice tile = usual_tile(p, prepared, caps);
  if (takes_skinny(p, prepared, tile, caps))
    return choice_of(p, sm100a_skinny::choose_instance(p, num_sms, prepared));
  if (tile.ctas == blackwell::kPairCtas && suits_pair(p, prepared).ok())
    return choice_of(*sm100a_pair::find_instance(tile.tile_n, p.d.type, prepared, tile.persistent));
  return choice_of(sm100a::choose_instance(p, num_sms));
}

// null: no compiled tile of the kernel for few rows that the plan's problem may have.
const sm100a_skinny::Instance* skinny_of(const Plan& plan) {
  return sm100a_skinny::find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n,
                                      plan.prepared, plan.kernel == sm100a_skinny::kPersistentName);
}

// Whether the plan's kernel is an instance for groups, with or without them.
bool takes_tiles_in_turn(const Plan& plan) {
  return is_grouped(plan.problem) || plan.kernel == sm100a_skinny::kPersistentName ||
         plan.kernel == sm100a_w4a16::kPersistentName;
}

Status plan_w4a16(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Problem& p = plan.problem;
  std::vector<KernelChoice> compiled;
  const auto add = [&](std::span<const sm100a_w4a16::Instance> instances) {
    for (const sm100a_w4a16::Instance& instance : instances) {
      if (sm100a_w4a16::is_for(instance.config, p))
        compiled.push_back(choice_of(p, instance, caps.num_sms));
    }
  };
  add(sm100a_w4a16::instances_for(p));
  if (p.grouping == Grouping::kNone) add(sm100a_w4a16::instances_for(p, true));
  const Expected<KernelChoice> kernel = choose_kernel(
      compiled,
      choice_of(p, sm100a_w4a16::choose_instance(p, caps.num_sms, plan.prepared), caps.num_sms),
      constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  if (takes_tiles_in_turn(plan)) {
    const Expected<int64_t> most = most_ctas(constraints, caps);
    if (!most) return most.status();
    plan.shape.ctas = sm100a_w4a16::persistent_ctas(p, static_cast<int>(plan.shape.tile_m), *most);
    return {};
  }
  if (constraints.ctas == PlanConstraints::kAny) return {};
  const int tile_m = static_cast<int>(plan.shape.tile_m);
  const int64_t tiles = sm100a_w4a16::num_tiles(p, tile_m);
  const int split = sm100a_w4a16::largest_split(p, tile_m, constraints.ctas);
  if (split < 1) {
    return Status::invalid("config", fmt::format("ctas={}", constraints.ctas),
                           fmt::format("must be at least {}, the tiles of D", tiles));
  }
  plan.shape.ctas = tiles * split;
  return {};
}

// With its CTAs: two for each pair that the GPU has at once, or as the constraints say.
Status plan_persistent(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  if (constraints.ctas == 1)
    return Status::invalid("config", "ctas=1", "must be at least 2, a pair");
  const Problem& p = plan.problem;
  const int64_t pairs = blackwell::pairs_at_once(caps.num_sms, caps.max_pairs);
  const int64_t ctas = std::min(*most, pairs * blackwell::kPairCtas);
  plan.shape.ctas = is_grouped(p) ? sm100a_pair_groups::ctas_for(p, ctas)
                                  : blackwell::persistent_ctas(p.m, p.n, p.l, ctas);
  return {};
}

Status plan_sm100a(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  if (is_w4a16(plan.problem)) return plan_w4a16(plan, caps, constraints);
  if (is_pair_kernel(constraints.kernel))
    DUALGEMM_TRY(check_pairs("config", plan::text_of(constraints), caps));
  const bool grouped = is_grouped(plan.problem);
  if (plan.prepared && !grouped && !suits_skinny(plan.problem).ok()) {
    DUALGEMM_TRY(check_pairs("prepared", "true", caps));
    DUALGEMM_TRY(suits_pair(plan.problem, true));
  }
  const Expected<KernelChoice> kernel =
      choose_kernel(compiled_for(plan.problem, plan.prepared, caps),
                    grouped ? usual_for_groups(plan.problem, caps, constraints)
                            : usual_for(plan.problem, plan.prepared, caps),
                    constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  if (plan.kernel == sm100a_pair::kPersistentName) return plan_persistent(plan, caps, constraints);
  if (!takes_tiles_in_turn(plan)) return {};
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas =
      static_cast<int>(sm100a_skinny::ctas_for(plan.problem, skinny_of(plan)->config, *most));
  return {};
}

blackwell::Copies copies_of(const Plan& plan) {
  const core::ResolvedProblem problem = core::resolve(plan.problem);
  if (takes_tiles_in_turn(plan)) {
    const auto plan_copies =
        is_w4a16(plan.problem) ? sm100a_w4a16::plan_copies : sm100a_skinny::plan_copies;
    return plan_copies(problem, plan.unaligned, plan.prepared, true);
  }
  return blackwell::plan_copies(problem, plan.unaligned, plan.prepared,
                                plan.prepared && is_pair_kernel(plan.kernel));
}

constexpr const char* kNumerics =
    "NVFP4 A: 16-blocks exact, four of them and the sum added with one truncation to FP32, steps "
    "in "
    "ascending k: the same bits for every tile and every m of a kernel; 16-bit A: weights exact in "
    "A's type, products added in FP32 in the order of the tensor cores";

int64_t workspace_bytes_sm100a(const Plan& plan) {
  const blackwell::Copies copies = copies_of(plan);
  if (!is_grouped(plan.problem)) return copies.workspace_bytes;
  if (is_pair_kernel(plan.kernel)) return sm100a_pair_groups::workspace_bytes(plan.problem, copies);
  if (is_w4a16(plan.problem)) {
    if (const auto* const instance = sm100a_w4a16::find_instance(plan.problem, plan.shape.tile_m))
      return sm100a_w4a16::workspace_bytes(plan.problem, copies, *instance);
  } else if (const auto* const instance = skinny_of(plan)) {
    return sm100a_skinny::workspace_bytes(plan.problem, copies, *instance);
  }
  return copies.workspace_bytes;
}

// What the launches of one kernel are built from.
struct LaunchInputs {
  const Plan& plan;
  const core::ResolvedProblem& problem;
  const Buffers& buffers;
  const uint8_t* prepared;
  void* workspace;
  EncodeTiled encode_tiled;
  blackwell::Copies copies;
};

Expected<std::vector<KernelLaunch>> launches_w4a16(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const int tile_m = static_cast<int>(plan.shape.tile_m);
  const bool in_turn = takes_tiles_in_turn(plan);
  const auto* const instance = sm100a_w4a16::find_instance(plan.problem, tile_m, in_turn);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape.tile_m", std::to_string(tile_m),
                               "must be a compiled tile of the kernel for 16-bit A");
  }
  DUALGEMM_TRY(sm100a_w4a16::supports(plan.problem));
  if (in_turn) {
    const int64_t ctas =
        sm100a_w4a16::persistent_ctas(plan.problem, tile_m, std::max<int64_t>(plan.shape.ctas, 1));
    return sm100a_w4a16::build_persistent_launches(in.problem, in.buffers, in.copies, in.workspace,
                                                   *instance, ctas, in.encode_tiled, in.prepared);
  }
  const int64_t split = plan.shape.ctas / sm100a_w4a16::num_tiles(plan.problem, tile_m);
  return sm100a_w4a16::build_launches(in.problem, in.buffers, in.copies, in.workspace, *instance,
                                      static_cast<int>(split), in.encode_tiled, in.prepared);
}

Expected<std::vector<KernelLaunch>> launches_skinny(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const bool grouped = plan.problem.grouping != Grouping::kNone;
  DUALGEMM_TRY(grouped ? supports_sm100a(plan.problem) : suits_skinny(plan.problem));
  const sm100a_skinny::Instance* const skinny = skinny_of(plan);
  if (skinny == nullptr) {
    return Status::unsupported("plan.shape",
                               fmt::format("{} x {}", plan.shape.tile_m, plan.shape.tile_n),
                               "must be a compiled tile of the kernel for few rows that has m");
  }
  const int64_t ctas =
      sm100a_skinny::ctas_for(plan.problem, skinny->config, std::max<int64_t>(plan.shape.ctas, 1));
  return sm100a_skinny::build_launches(in.problem, in.buffers, in.copies, in.workspace, *skinny,
                                       ctas, in.encode_tiled, in.prepared);
}

Expected<std::vector<KernelLaunch>> launches_sm100a(const Plan& plan, const Buffers& buffers,
                                                    const uint8_t* prepared, void* workspace,
                                                    EncodeTiled encode_tiled,
                                                    int64_t* intermediate_bytes) {
  const core::ResolvedProblem problem = core::resolve(plan.problem);
  const blackwell::Copies copies = copies_of(plan);
  *intermediate_bytes = 2 * copies.workspace_bytes;
  const LaunchInputs in{plan, problem, buffers, prepared, workspace, encode_tiled, copies};
  if (is_w4a16_kernel(plan.kernel)) return launches_w4a16(in);
  if (is_skinny_kernel(plan.kernel)) return launches_skinny(in);
  const DataType output = plan.problem.d.type;
  if (is_pair_kernel(plan.kernel) && is_grouped(plan.problem)) {
    return sm100a_pair_groups::build_launches(
        problem, buffers, copies, workspace, sm100a_pair_groups::instance_for(output),
        sm100a_pair_groups::ctas_for(plan.problem, plan.shape.ctas), encode_tiled, prepared);
  }
  if (is_pair_kernel(plan.kernel)) {
    DUALGEMM_TRY(suits_pair(plan.problem, plan.prepared));
    const bool persistent = plan.kernel == sm100a_pair::kPersistentName;
    if (const auto* const instance =
            sm100a_pair::find_instance(plan.shape.tile_n, output, plan.prepared, persistent))
      return sm100a_pair::build_launches(problem, buffers, copies, workspace, *instance,
                                         encode_tiled, prepared, plan.shape.ctas);
  } else if (const auto* const instance = sm100a::find_instance(plan.shape.tile_n, output)) {
    DUALGEMM_TRY(sm100a::supports(plan.problem));
    return sm100a::build_launches(problem, buffers, copies, workspace, *instance, encode_tiled);
  }
  return Status::unsupported("plan.shape.tile_n", std::to_string(plan.shape.tile_n),
                             "must be of a compiled kernel");
}

PreparedFormat prepared_format_sm100a(const Problem&) { return PreparedFormat::kSm100a; }

constexpr WeightPacking kPackingSm100a{prepared_format_sm100a, blackwell::packed_batch_bytes,
                                       blackwell::pack_weights_launch};

}  // namespace

const FusedKernel& fused_kernel_sm100a() {
  static const FusedKernel kernel{
      Isa::kSm100a,           kNumerics,       supports_sm100a, plan_sm100a,
      workspace_bytes_sm100a, launches_sm100a, &kPackingSm100a};
  return kernel;
}

}  // namespace dualgemm::cuda
