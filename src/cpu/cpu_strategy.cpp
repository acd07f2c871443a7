#include "cpu/cpu_strategy.hpp"

#include <algorithm>
#include <string>

#include "core/scale_padding.hpp"
#include "plan/prepared_bytes.hpp"

namespace dualgemm::cpu {
namespace {

using core::ceil_div;

// Rows of the activation whose k-tile takes at most this share of L2 while panel pairs pass by; the
// c tiles of the pairs get the other share. Measured on Zen 4 (1 MiB of L2), M = 512: 0.25 .. 0.5
// and 2 .. 8 pairs lie within 2 %.
constexpr double kActivationShare = 0.45, kCShare = 0.3;

// gemv takes a group of rows whole, and any group may have so few rows.
int64_t least_l2_rows(const Engine& engine, int64_t m) {
  const int64_t rows = engine.gemv != nullptr ? std::min<int64_t>(m, engine.gemv_rows) : 1;
  return ceil_div(std::max<int64_t>(rows, 1), engine.mr) * engine.mr;
}

L2Tile choose_l2_tile(const Plan& plan, const Engine& engine, const DeviceCaps& caps) {
  const Problem& p = plan.problem;
  const auto l2 = static_cast<double>(caps.l2_bytes);
  const int64_t k_tile_row_bytes = engine.tile_k_blocks * engine.activation_bytes;
  int64_t most = static_cast<int64_t>(l2 * kActivationShare) / k_tile_row_bytes;
  most = std::max<int64_t>(most / engine.mr * engine.mr, engine.mr);
  const int64_t m = std::max<int64_t>(p.m, 1), row_chunks = ceil_div(m, most);
  L2Tile l2_tile;
  l2_tile.rows =
      std::max(ceil_div(ceil_div(m, row_chunks), engine.mr) * engine.mr, least_l2_rows(engine, m));

  // Pairs share the k-tile of rows only where the rows of all of k do not stay in L2 anyway.
  const int64_t all_k = l2_tile.rows * (p.k / kSfVec) * engine.activation_bytes;
  const int64_t units_if_single = ceil_div(p.n, kPanelN) * row_chunks * p.l;
  if (uses_gemv(engine, p.m)) {
    // Long runs: each pair's weights are asked for while the one before it is computed.
    l2_tile.pairs = std::clamp<int64_t>(units_if_single / (4 * plan.threads), 1, kMaxPairs);
    return l2_tile;
  }
  if (static_cast<double>(all_k) > l2 * kActivationShare) {
    l2_tile.pairs = std::min(static_cast<int64_t>(l2 * kCShare), engine.most_c_bytes) /
                    (l2_tile.rows * kCTileN * static_cast<int64_t>(sizeof(float)));
  }
  // At least 8 units a thread, so that the last ones to finish cost little.
  l2_tile.pairs = std::min<int64_t>(l2_tile.pairs, units_if_single / (8 * plan.threads));
  l2_tile.pairs = std::clamp<int64_t>(l2_tile.pairs, 1, 8);
  return l2_tile;
}

L2Tile l2_tile_of(const Plan& plan) noexcept { return {plan.shape.l2_rows, plan.shape.l2_pairs}; }

// Threads beyond the number of units would only wait.
int useful_threads(const Plan& plan, const Engine& engine, int64_t groups) noexcept {
  const int64_t units = std::max<int64_t>(
      groups * ceil_div(plan.problem.m, plan.shape.l2_rows) * ceil_div(plan.problem.n, kPanelN),
      max_row_tiles(plan.problem, engine));
  return static_cast<int>(std::clamp<int64_t>(units, 1, plan.threads));
}

// What a run writes to memory for itself and reads back once.
int64_t intermediate_bytes(const Recipe& recipe, const Work& work) noexcept {
  const Problem& p = work.problem->problem;
  int64_t bytes = work.activation_bytes + recipe.products * product_bytes(p);
  if (recipe.packs_weights) bytes += 2 * p.l * packed_operand_bytes(p);
  return 2 * bytes;
}

}  // namespace

const Engine& engine_of(const Plan& plan) noexcept {
  const KernelTable& table = *kernel_table(plan.isa);
  const DataType type = plan.problem.a.type;
  if (type == DataType::kE2M1) return *table.e2m1;
  return type == DataType::kBF16 && table.bf16 != nullptr ? *table.bf16 : *table.f32;
}

Status CpuStrategy::supports(const core::CheckedProblem&, const DeviceCaps& caps) const {
  if (caps.kind == DeviceKind::kCpu) return {};
  return Status::unsupported("device", name_of(caps.kind), "this strategy runs on the CPU");
}

Preparation CpuStrategy::preparation(const Plan&) const noexcept {
  const Recipe wants = recipe();
  if (wants.must_prepare) return Preparation::kRequired;
  return wants.can_prepare ? Preparation::kOptional : Preparation::kNone;
}

const char* CpuStrategy::numerics(const Plan& plan) const noexcept {
  if (plan.problem.a.type == DataType::kBF16 && !core::has_shared_order(plan.problem, plan.isa)) {
    return "products exact in bf16, added in FP32 in pairs, in the order of the hardware; per "
           "16-block one multiply-add with its scale, in ascending k: the bits differ from the "
           "other instruction sets";
  }
  if (plan.problem.a.type != DataType::kE2M1) {
    return "weights exact; per 16-block 16 FP32 multiply-adds in ascending k and one with its "
           "scale: the same bits on every instruction set and for any thread count";
  }
  if (plan.isa == Isa::kAmxBf16) {
    return "products exact in bf16, added in FP32 in the order of the hardware: the bits differ "
           "from the other instruction sets";
  }
  return "16-blocks exact in integers, one FP32 rounding a block in ascending k: the same bits on "
         "every instruction set and for any thread count";
}

Status CpuStrategy::plan(Plan& plan, const DeviceCaps& caps) const {
  if (kernel_table(plan.isa) == nullptr)
    return Status::unsupported("isa", name_of(plan.isa), "not part of this build");
  const Engine& engine = engine_of(plan);
  const L2Tile l2_tile = choose_l2_tile(plan, engine, caps);
  plan.regime = uses_gemv(engine, plan.problem.m) ? Regime::kGemv
                : plan.problem.m <= 32            ? Regime::kMultiRow
                                                  : Regime::kTile;
  plan.shape.tile_m =
      plan.regime == Regime::kGemv ? std::max<int64_t>(plan.problem.m, 1) : engine.mr;
  plan.kernel = name_of(plan.regime);
  plan.shape.tile_n = kPanelN;
  plan.shape.tile_k = engine.tile_k_blocks * kSfVec;
  plan.shape.l2_rows = l2_tile.rows;
  plan.shape.l2_pairs = l2_tile.pairs;
  plan.prepared_bytes = prepared_descriptor(plan).bytes;
  plan.workspace_bytes = workspace_bytes(plan);
  return {};
}

int64_t CpuStrategy::lay_out(const Plan& plan, const core::ResolvedProblem& problem, Arena& arena,
                             Frame& frame) const noexcept {
  const Recipe wants = recipe();
  const Engine& engine = engine_of(plan);
  frame.scratch = arena.take<Scratch>(plan.threads);
  frame.work.groups = arena.take<GroupWork>(plan.problem.l);
  frame.work.activation = arena.take<uint8_t>(activation_bytes(plan.problem, engine));
  for (int i = 0; i < wants.products; ++i) {
    frame.product[i].data = arena.take<float>(product_bytes(plan.problem) / 4);
    frame.product[i].ld = product_ld(plan.problem);
  }
  frame.packed.batch_bytes = packed_operand_bytes(plan.problem);
  for (int i = 0; wants.packs_weights && i < 2; ++i)
    frame.packed.first[i] = arena.take<uint8_t>(plan.problem.l * frame.packed.batch_bytes);
  for (int i = 0; i < plan.threads; ++i) {
    const Scratch scratch = take_scratch(arena, engine, l2_tile_of(plan), wants.sequential);
    if (frame.scratch != nullptr) frame.scratch[i] = scratch;
  }
  frame.work.problem = &problem;
  return arena.used();
}

int64_t CpuStrategy::workspace_bytes(const Plan& plan) const {
  Arena counting(nullptr);
  Frame frame;
  return lay_out(plan, core::resolve(plan.problem), counting, frame);
}

PreparedDescriptor CpuStrategy::prepared_descriptor(const Plan& plan) const {
  if (!recipe().can_prepare) return {};
  return plan::describe_prepared(PreparedFormat::kCpuPanels, plan.problem,
                                 2 * packed_operand_bytes(plan.problem));
}

Status CpuStrategy::prepare(const Plan& plan, const core::CheckedProblem& problem,
                            const Buffers& buffers, uint8_t* memory) const {
  const PreparedDescriptor descriptor = prepared_descriptor(plan);
  const int64_t operand_bytes = packed_operand_bytes(plan.problem);
  uint8_t* const gate = memory + kPreparedHeaderBytes;
  core::Team team(plan.threads);
  pack_operands(team, problem.resolved(), buffers, *kernel_table(plan.isa),
                {{gate, gate + operand_bytes}, descriptor.expert_bytes});
  plan::frame_parts(descriptor, 2 * operand_bytes, memory);
  return {};
}

// A plan is a value that a caller may have edited; what run() relies on is checked again.
Status CpuStrategy::check_plan(const Plan& plan) const {
  const Engine& engine = engine_of(plan);
  const int64_t least = least_l2_rows(engine, plan.problem.m);
  if (plan.shape.l2_rows < least || plan.shape.l2_rows % engine.mr != 0)
    return Status::invalid("plan.shape.l2_rows", std::to_string(plan.shape.l2_rows),
                           "must be a multiple of " + std::to_string(engine.mr) + ", at least " +
                               std::to_string(least));
  if (plan.shape.l2_pairs < 1 || plan.shape.l2_pairs > kMaxPairs)
    return Status::invalid("plan.shape.l2_pairs", std::to_string(plan.shape.l2_pairs),
                           "must be 1 .. " + std::to_string(kMaxPairs));
  const int64_t needed = workspace_bytes(plan);
  if (plan.workspace_bytes >= needed) return {};
  return Status::invalid("plan.workspace_bytes", std::to_string(plan.workspace_bytes),
                         "this plan needs " + std::to_string(needed));
}

Status CpuStrategy::run(const Plan& plan, const core::CheckedProblem& checked,
                        const Buffers& buffers, void* workspace, RunInfo* info) const {
  DUALGEMM_TRY(check_plan(plan));
  const Recipe wants = recipe();
  const core::ResolvedProblem& problem = checked.resolved();
  Frame frame;
  Arena arena(workspace);
  lay_out(plan, problem, arena, frame);
  Work& work = frame.work;
  work.table = kernel_table(plan.isa);
  work.engine = &engine_of(plan);
  work.buffers = &buffers;
  work.l2_tile = l2_tile_of(plan);
  if (const PreparedView* const prepared = plan::view_of(buffers)) {
    const auto* const gate = static_cast<const uint8_t*>(prepared->memory) + kPreparedHeaderBytes;
    frame.weights = {{gate, gate + packed_operand_bytes(plan.problem)},
                     prepared->descriptor.expert_bytes};
  } else if (wants.must_prepare) {
    return Status::invalid("prepared", "null",
                           std::string(name()) + " runs on weights from prepare()");
  }
  core::RowGroups groups(plan.problem, buffers);
  int threads = 0;
  int64_t bytes = 0;
  while (list_groups(work, groups)) {
    core::Team team(useful_threads(plan, *work.engine, work.num_groups));
    compute(team, frame);
    threads = std::max(threads, team.threads());
    bytes += intermediate_bytes(wants, work);
  }
  core::clear_scale_padding(problem, buffers);
  if (info != nullptr) {
    info->isa = work.table->isa;
    info->regime = plan.regime;
    info->threads = threads;
    info->intermediate_bytes = bytes;
  }
  return {};
}

}  // namespace dualgemm::cpu
