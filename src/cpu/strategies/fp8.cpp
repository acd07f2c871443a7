// fp8: both operands are rounded again, to E4M3 with one FP32 scale a row, and multiplied as such.
// For comparison only: its results differ from those of all other strategies. Its weights take 1
// byte a value, requantised on every call or once by prepare().
#include <algorithm>
#include <string>

#include "core/aligned_bytes.hpp"
#include "core/e4m3.hpp"
#include "core/scale_padding.hpp"
#include "cpu/cpu_strategy.hpp"
#include "cpu/fp8_operand.hpp"
#include "cpu/isa/fp8.hpp"
#include "plan/prepared_bytes.hpp"

namespace dualgemm::cpu {
namespace {

constexpr int64_t kChunkRows = 128;  // of A; with kTileK decoded values each they fit into L2
constexpr int64_t kTileK = 256;      // decoded at a time; a k-tile of a panel takes 16 KiB
constexpr int64_t kRunPanels = 8;    // panels of Gate and Up that share a decoded k-tile of A

using core::ceil_div;

Fp8Multiply multiply_of(Isa isa) noexcept {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return avx2::kFp8Multiply;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Bf16:
    case Isa::kAmxBf16:
      return avx512::kFp8Multiply;
#endif
    default:
      return scalar::kFp8Multiply;
  }
}

// All panels of both operands of one batch, one batch after the other.
struct Weights8 {
  uint8_t* first = nullptr;
  int64_t batch_bytes = 0;
};
struct BatchWeights8 {
  Fp8Operand operand[2];  // by Operand
};
BatchWeights8 take_batch(Arena& arena, const Problem& p) noexcept {
  BatchWeights8 weights;
  for (Fp8Operand& operand : weights.operand)
    operand = take_fp8_panels(arena, ceil_div(p.n, kPanelN), p.k);
  return weights;
}
int64_t batch_bytes(const Problem& p) noexcept {
  Arena counting(nullptr);
  take_batch(counting, p);
  return counting.used();
}
BatchWeights8 batch_of(const Weights8& weights, const Problem& p, int64_t batch) noexcept {
  Arena arena(weights.first + batch * weights.batch_bytes);
  return take_batch(arena, p);
}

struct ThreadMemory {
  float* values;  // one row, wide
  float* a;       // L2Tile::rows x kTileK
  float* w;       // kTileK x kPanelN
  float* c[2];    // by Operand: L2Tile::pairs x L2Tile::rows x kPanelN
  float* tile;    // for finish_panel
};

struct Fp8Frame {
  Work work;
  Fp8Operand activation;
  Weights8 weights;
  ThreadMemory* threads;  // one for each seat of the team
};

void lay_out(const Plan& plan, Arena& arena, Fp8Frame& frame) noexcept {
  const Problem& p = plan.problem;
  frame.work.l2_tile = {plan.shape.l2_rows, plan.shape.l2_pairs};
  frame.threads = arena.take<ThreadMemory>(plan.threads);
  frame.work.groups = arena.take<GroupWork>(p.l);
  frame.activation = take_fp8_rows(arena, product_rows(p), p.k);
  frame.weights.batch_bytes = batch_bytes(p);
  if (!plan.prepared) frame.weights.first = arena.take<uint8_t>(p.l * frame.weights.batch_bytes);
  const int64_t c_floats = plan.shape.l2_pairs * plan.shape.l2_rows * kPanelN;
  for (int i = 0; i < plan.threads; ++i) {
    const ThreadMemory memory = {
        arena.take<float>(p.k),
        arena.take<float>(plan.shape.l2_rows * kTileK),
        arena.take<float>(kTileK * kPanelN),
        {arena.take<float>(c_floats), arena.take<float>(c_floats)},
        arena.take<float>(kMaxHeight * kPanelN),
    };
    if (frame.threads != nullptr) frame.threads[i] = memory;
  }
}

// row: for a seat, memory for k floats.
template <class Row>
void requantise_weights(core::Team& team, const core::ResolvedProblem& problem,
                        const Buffers& buffers, const Weights8& out, const Row& row) noexcept {
  const int64_t panels = ceil_div(problem.problem.n, kPanelN), k = problem.problem.k;
  team.run(2 * problem.problem.l * panels, [&](int64_t unit, int seat) {
    const bool gate = unit % 2 == 0;
    const int64_t batch = unit / 2 / panels, panel = unit / 2 % panels;
    const Fp8Operand operand = batch_of(out, problem.problem, batch).operand[unit % 2];
    const Weights weights =
        weights_of(gate ? problem.gate : problem.up, gate ? buffers.gate : buffers.up,
                   gate ? buffers.gate_scales : buffers.up_scales, batch);
    requantise_panel(weights.panel(panel), k, row(seat), operand.codes + panel * kPanelN * k,
                     operand.scales + panel * kPanelN);
  });
}

void requantise_activation(core::Team& team, const Fp8Frame& frame) noexcept {
  const Work& work = frame.work;
  const int64_t k = work.problem->problem.k;
  team.run(work.num_row_chunks, [&](int64_t unit, int seat) {
    const RowChunk rows = row_chunk(work, unit);
    for (int64_t row = 0; row < rows.rows; ++row) {
      const int64_t at = flat_row(work, rows, row);
      requantise_row(activation_of(*work.problem, *work.buffers, rows.group->rows, rows.row + row),
                     k, frame.threads[seat].values, frame.activation.codes + at * k,
                     frame.activation.scales + at);
    }
  });
}

void decode(const uint8_t* codes, int64_t count, float* values) noexcept {
  for (int64_t i = 0; i < count; ++i) values[i] = core::decode_e4m3(codes[i]);
}

// c[rows][kPanelN], products of codes -> products of values.
void apply_scales(const float* row_scales, const float* column_scales, int64_t rows,
                  float* c) noexcept {
  for (int64_t r = 0; r < rows; ++r, c += kPanelN) {
    for (int n = 0; n < kPanelN; ++n) c[n] = c[n] * column_scales[n] * row_scales[r];
  }
}

// One row chunk times `count` panels of Gate and of Up, from `first_panel` of its batch on.
void multiply_run(const Fp8Frame& frame, const RowChunk& rows, int64_t first_panel, int64_t count,
                  const ThreadMemory& memory) noexcept {
  const Fp8Multiply multiply = multiply_of(frame.work.table->isa);
  const BatchWeights8 weights =
      batch_of(frame.weights, frame.work.problem->problem, rows.group->rows.batch);
  const int64_t k = frame.work.problem->problem.k, first_row = flat_row(frame.work, rows, 0);
  const int64_t c_stride = frame.work.l2_tile.rows * kPanelN;
  for (int64_t k_begin = 0; k_begin < k; k_begin += kTileK) {
    const int64_t here = std::min(kTileK, k - k_begin);
    for (int64_t row = 0; row < rows.rows; ++row)
      decode(frame.activation.codes + (first_row + row) * k + k_begin, here,
             memory.a + row * kTileK);
    for (int64_t unit = 0; unit < 2 * count; ++unit) {
      const uint8_t* codes = weights.operand[unit % 2].codes;
      decode(codes + ((first_panel + unit / 2) * k + k_begin) * kPanelN, here * kPanelN, memory.w);
      multiply(memory.a, kTileK, memory.w, static_cast<int>(here), static_cast<int>(rows.rows),
               k_begin > 0, memory.c[unit % 2] + unit / 2 * c_stride);
    }
  }
  for (int64_t unit = 0; unit < 2 * count; ++unit)
    apply_scales(frame.activation.scales + first_row,
                 weights.operand[unit % 2].scales + (first_panel + unit / 2) * kPanelN, rows.rows,
                 memory.c[unit % 2] + unit / 2 * c_stride);
}

void multiply_pass(core::Team& team, const Fp8Frame& frame) noexcept {
  const Work& work = frame.work;
  const int64_t panels = ceil_div(work.problem->problem.n, kPanelN);
  const int64_t runs = ceil_div(panels, work.l2_tile.pairs);
  const int64_t c_stride = work.l2_tile.rows * kPanelN;
  team.run(work.num_row_chunks * runs, [&](int64_t unit, int seat) {
    const ThreadMemory& memory = frame.threads[seat];
    Scratch scratch;
    scratch.tile = memory.tile;
    const RowChunk rows = row_chunk(work, unit / runs);
    const int64_t panel = unit % runs * work.l2_tile.pairs;
    const int64_t count = std::min(work.l2_tile.pairs, panels - panel);
    multiply_run(frame, rows, panel, count, memory);
    for (int64_t i = 0; i < count; ++i)
      finish_panel(work, rows, panel + i, memory.c[0] + i * c_stride, kPanelN,
                   memory.c[1] + i * c_stride, kPanelN, scratch);
  });
}

// What a run over so many rows writes to memory for itself and reads back: the requantised
// operands.
int64_t intermediate_bytes(const Plan& plan, int64_t rows) noexcept {
  const int64_t row_bytes = plan.problem.k + static_cast<int64_t>(sizeof(float));
  return 2 * (rows * row_bytes + (plan.prepared ? 0 : plan.problem.l * batch_bytes(plan.problem)));
}
int64_t listed_rows(const Work& work) noexcept {
  int64_t rows = 0;
  for (int64_t i = 0; i < work.num_groups; ++i) rows += work.groups[i].rows.rows;
  return rows;
}

class Fp8 final : public Strategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFp8; }
  const char* how_it_works() const noexcept override {
    return "operands re-quantised to FP8 E4M3: for comparison only, its results differ";
  }
  const char* numerics(const Plan&) const noexcept override {
    return "not exact: operands lose bits to FP8";
  }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kOptional; }
  DeviceKind device() const noexcept override { return DeviceKind::kCpu; }

  Status supports(const core::CheckedProblem&, const DeviceCaps& caps) const override {
    if (caps.kind == DeviceKind::kCpu) return {};
    return Status::unsupported("device", name_of(caps.kind), "this strategy runs on the CPU");
  }

  Status plan(Plan& plan, const DeviceCaps&) const override {
    if (kernel_table(plan.isa) == nullptr)
      return Status::unsupported("isa", name_of(plan.isa), "not part of this build");
    const Problem& p = plan.problem;
    plan.regime = Regime::kTile;
    plan.kernel = name_of(plan.regime);
    plan.shape.l2_rows = std::clamp<int64_t>(p.m, 1, kChunkRows);
    const int64_t units = p.l * ceil_div(p.m, plan.shape.l2_rows) * ceil_div(p.n, kPanelN);
    plan.shape.l2_pairs = std::clamp<int64_t>(units / (8 * plan.threads), 1, kRunPanels);
    plan.shape.tile_m = plan.shape.l2_rows;
    plan.shape.tile_n = kPanelN;
    plan.shape.tile_k = kTileK;
    plan.prepared_bytes = prepared_descriptor(plan).bytes;
    plan.workspace_bytes = workspace_bytes(plan);
    return {};
  }

  int64_t workspace_bytes(const Plan& plan) const override {
    Arena counting(nullptr);
    Fp8Frame frame{};
    lay_out(plan, counting, frame);
    return counting.used();
  }

  PreparedDescriptor prepared_descriptor(const Plan& plan) const override {
    return plan::describe_prepared(PreparedFormat::kCpuFp8, plan.problem,
                                   batch_bytes(plan.problem));
  }
  Status prepare(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                 uint8_t* memory) const override;
  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
             void* workspace, RunInfo* info) const override;

 private:
  Status check_plan(const Plan& plan) const;
};

Status Fp8::prepare(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                    uint8_t* memory) const {
  const int64_t row_bytes = plan.problem.k * static_cast<int64_t>(sizeof(float));
  Expected<core::AlignedBytes> rows =
      core::AlignedBytes::allocate(plan.threads * row_bytes, "rows before requantisation");
  if (!rows) return rows.status();
  const PreparedDescriptor descriptor = prepared_descriptor(plan);
  const Weights8 weights{memory + kPreparedHeaderBytes, descriptor.expert_bytes};
  core::Team team(plan.threads);
  requantise_weights(team, problem.resolved(), buffers, weights, [&](int seat) {
    return reinterpret_cast<float*>(rows->data() + seat * row_bytes);
  });
  plan::frame_parts(descriptor, batch_bytes(plan.problem), memory);
  return {};
}

// A plan is a value that a caller may have edited; what run() relies on is checked again.
Status Fp8::check_plan(const Plan& plan) const {
  if (plan.shape.l2_rows < 1 || plan.shape.l2_rows > kChunkRows)
    return Status::invalid("plan.shape.l2_rows", std::to_string(plan.shape.l2_rows),
                           "must be 1 .. " + std::to_string(kChunkRows));
  if (plan.shape.l2_pairs < 1 || plan.shape.l2_pairs > kRunPanels)
    return Status::invalid("plan.shape.l2_pairs", std::to_string(plan.shape.l2_pairs),
                           "must be 1 .. " + std::to_string(kRunPanels));
  const int64_t needed = workspace_bytes(plan);
  if (plan.workspace_bytes >= needed) return {};
  return Status::invalid("plan.workspace_bytes", std::to_string(plan.workspace_bytes),
                         "this plan needs " + std::to_string(needed));
}

Status Fp8::run(const Plan& plan, const core::CheckedProblem& checked, const Buffers& buffers,
                void* workspace, RunInfo* info) const {
  DUALGEMM_TRY(check_plan(plan));
  const PreparedView* const prepared = plan::view_of(buffers);
  if (plan.prepared && prepared == nullptr)
    return Status::invalid("prepared", "null", "the plan was made for prepared weights");
  const core::ResolvedProblem& problem = checked.resolved();
  Fp8Frame frame{};
  Arena arena(workspace);
  lay_out(plan, arena, frame);
  Work& work = frame.work;
  work.table = kernel_table(plan.isa);
  work.engine = work.table->f32;  // the list of groups asks for a tile height; unused here
  work.problem = &problem;
  work.buffers = &buffers;
  if (plan.prepared) {
    // Only read from here on.
    auto* const memory = static_cast<uint8_t*>(const_cast<void*>(prepared->memory));
    frame.weights = {memory + kPreparedHeaderBytes, prepared->descriptor.expert_bytes};
  }
  core::Team team(plan.threads);
  if (!plan.prepared)
    requantise_weights(team, problem, buffers, frame.weights,
                       [&](int seat) { return frame.threads[seat].values; });
  core::RowGroups groups(plan.problem, buffers);
  int64_t rows = 0;
  while (list_groups(work, groups)) {
    requantise_activation(team, frame);
    multiply_pass(team, frame);
    rows += listed_rows(work);
  }
  core::clear_scale_padding(problem, buffers);
  if (info != nullptr)
    *info = {work.table->isa, plan.regime, team.threads(), intermediate_bytes(plan, rows)};
  return {};
}

}  // namespace

const Strategy& fp8_strategy() noexcept {
  static const Fp8 kStrategy;
  return kStrategy;
}

}  // namespace dualgemm::cpu
