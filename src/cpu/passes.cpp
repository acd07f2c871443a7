#include "cpu/passes.hpp"

#include <algorithm>
#include <cstring>

#include "core/half.hpp"
#include "cpu/store_tile.hpp"

namespace dualgemm::cpu {
namespace {

using core::ceil_div;

Weights weights_for(const Work& work, const WeightSource& source, Operand operand,
                    int64_t batch) noexcept {
  const bool gate = operand == Operand::kGate;
  const core::ResolvedMatrix& matrix = gate ? work.problem->gate : work.problem->up;
  const uint8_t* packed = source.first[static_cast<int>(operand)];
  if (packed == nullptr) {
    return weights_of(matrix, gate ? work.buffers->gate : work.buffers->up,
                      gate ? work.buffers->gate_scales : work.buffers->up_scales, batch);
  }
  Weights weights;
  weights.n = matrix.rows;
  weights.blocks = matrix.sf_cols;
  weights.packed = packed + batch * source.batch_bytes;
  return weights;
}

// Units of a pass: every row chunk with every run of l2_tile.pairs panel pairs.
struct Unit {
  RowChunk rows;
  int64_t first_pair = 0;
  int count = 0;
};
int64_t unit_count(const Work& work, int64_t pairs) noexcept {
  return work.num_row_chunks * ceil_div(pairs, work.l2_tile.pairs);
}
Unit unit_at(const Work& work, int64_t pairs, int64_t index) noexcept {
  const int64_t runs = ceil_div(pairs, work.l2_tile.pairs);
  Unit unit;
  unit.rows = row_chunk(work, index / runs);
  unit.first_pair = index % runs * work.l2_tile.pairs;
  unit.count = static_cast<int>(std::min(work.l2_tile.pairs, pairs - unit.first_pair));
  return unit;
}

float alpha_of(const float* per_batch, float scalar, int64_t batch) noexcept {
  return per_batch != nullptr ? per_batch[batch] : scalar;
}

// Columns of a panel, as numbers; -0, which adds nothing, without a bias and beyond column n.
struct PanelBias {
  float columns[kPanelN];
};
constexpr PanelBias panel_of(float value) noexcept {
  PanelBias panel{};
  for (float& column : panel.columns) column = value;
  return panel;
}
PanelBias load_bias(const core::ResolvedProblem& resolved, const void* bias, int64_t batch,
                    int64_t panel) noexcept {
  const Problem& problem = resolved.problem;
  PanelBias out = panel_of(-0.0f);
  const int64_t col = panel * kPanelN, first = batch * resolved.bias_stride + col;
  const int64_t count = std::min<int64_t>(kPanelN, problem.n - col);
  if (problem.bias == BiasType::kF32)
    std::copy_n(static_cast<const float*>(bias) + first, count, out.columns);
  if (problem.bias == BiasType::kBF16)
    std::transform(static_cast<const uint16_t*>(bias) + first,
                   static_cast<const uint16_t*>(bias) + first + count, out.columns,
                   core::decode_bf16);
  return out;
}

int64_t c_stride(const Work& work) noexcept { return work.l2_tile.rows * kCTileN; }

// Panels 2i and 2i+1; an odd last panel is paired with itself.
int64_t single_pairs(const Work& work) noexcept {
  return ceil_div(ceil_div(work.problem->problem.n, kPanelN), 2);
}
PanelPair single_pair(const Weights& weights, int64_t index) noexcept {
  const int64_t second = std::min(2 * index + 1, weights.panels() - 1);
  return {weights.panel(2 * index), weights.panel(second)};
}
bool has_second(const Weights& weights, int64_t index) noexcept {
  return 2 * index + 1 < weights.panels();
}

void multiply_single(const Work& work, const Weights& weights, const Unit& unit,
                     const Scratch& scratch, float* c) noexcept {
  PanelPair pairs[kMaxPairs];
  for (int i = 0; i < unit.count; ++i) pairs[i] = single_pair(weights, unit.first_pair + i);
  multiply_pairs(work, unit.rows, pairs, unit.count, scratch, c);
}

int64_t panels_of(const Work& work) noexcept { return ceil_div(work.problem->problem.n, kPanelN); }

// Up to kMaxHeight rows of a chunk, from row `row` of it on; none beyond its end.
RowChunk part_of_chunk(const RowChunk& rows, int64_t row) noexcept {
  return {rows.group, rows.row + row, std::clamp<int64_t>(rows.rows - row, 0, kMaxHeight)};
}

// Asks for what up to kMaxHeight rows of a unit of panels store, from row `row` of it on; of two
// products side by side for the first's columns.
void ask_for_d(const Work& work, const Unit& unit, int64_t row) noexcept {
  const RowChunk part = part_of_chunk(unit.rows, row);
  if (part.rows == 0) return;
  const int64_t first = unit.first_pair * kPanelN, n = work.problem->problem.n;
  ask_for_tile(*work.problem, *work.buffers,
               {&part.group->rows, part.row, first, static_cast<int>(part.rows),
                static_cast<int>(std::min<int64_t>(unit.count * kPanelN, n - first))});
}

void fused_unit(const Work& work, const WeightSource& source, const Unit& unit,
                const Scratch& scratch) noexcept {
  PanelPair pairs[kMaxPairs];
  const int64_t batch = unit.rows.group->rows.batch;
  const Weights gate = weights_for(work, source, Operand::kGate, batch);
  const Weights up = weights_for(work, source, Operand::kUp, batch);
  // The panels as the columns of c meet them: Gate and Up in turn. gemv is bound by reading: it
  // takes all of the unit's Gate panels, which lie one after the other, and then those of Up.
  const bool one_operand_at_a_time = uses_gemv(*work.engine, unit.rows.group->rows.rows);
  const int step = one_operand_at_a_time ? 1 : 2;
  const int first_up = one_operand_at_a_time ? unit.count : 1;
  for (int i = 0; i < unit.count; ++i) {
    for (const bool is_gate : {true, false}) {
      const int place = i * step + (is_gate ? 0 : first_up);
      PanelPair& pair = pairs[place / 2];
      (place % 2 == 0 ? pair.p : pair.q) = (is_gate ? gate : up).panel(unit.first_pair + i);
    }
  }
  multiply_pairs(work, unit.rows, pairs, unit.count, scratch, scratch.c);
  const auto columns = [&](int place) {
    return scratch.c + place / 2 * c_stride(work) + place % 2 * kPanelN;
  };
  // Rows of all panels together, and asked for before: rows of D often lie a power of two apart, so
  // that few of their lines stay in L2, and a panel of fp16 is half a line.
  for (int64_t row = 0; row < unit.rows.rows; row += kMaxHeight) {
    ask_for_d(work, unit, row + kMaxHeight);
    const RowChunk part = part_of_chunk(unit.rows, row);
    for (int i = 0; i < unit.count; ++i)
      finish_panel(work, part, unit.first_pair + i, columns(i * step) + row * kCTileN, kCTileN,
                   columns(i * step + first_up) + row * kCTileN, kCTileN, scratch);
  }
}

void sequential_unit(const Work& work, const WeightSource& source, const Unit& unit,
                     const Scratch& scratch) noexcept {
  const int64_t batch = unit.rows.group->rows.batch;
  const Weights gate = weights_for(work, source, Operand::kGate, batch);
  const Weights up = weights_for(work, source, Operand::kUp, batch);
  multiply_single(work, gate, unit, scratch, scratch.c);
  multiply_single(work, up, unit, scratch, scratch.c2);
  for (int i = 0; i < unit.count; ++i) {
    const int64_t pair = unit.first_pair + i;
    for (int half = 0; half < (has_second(gate, pair) ? 2 : 1); ++half) {
      const int64_t at = i * c_stride(work) + half * kPanelN;
      finish_panel(work, unit.rows, 2 * pair + half, scratch.c + at, kCTileN, scratch.c2 + at,
                   kCTileN, scratch);
    }
  }
}

void product_unit(const Work& work, const WeightSource& source, Operand operand,
                  const Product& product, const Unit& unit, const Scratch& scratch) noexcept {
  const Weights weights = weights_for(work, source, operand, unit.rows.group->rows.batch);
  multiply_single(work, weights, unit, scratch, scratch.c);
  for (int i = 0; i < unit.count; ++i) {
    const int64_t pair = unit.first_pair + i;
    const size_t bytes = (has_second(weights, pair) ? kCTileN : kPanelN) * sizeof(float);
    for (int64_t row = 0; row < unit.rows.rows; ++row)
      std::memcpy(product.data + flat_row(work, unit.rows, row) * product.ld + pair * kCTileN,
                  scratch.c + i * c_stride(work) + row * kCTileN, bytes);
  }
}

void epilogue_unit(const Work& work, const WeightSource& source, const Product& gate_product,
                   const Unit& unit, const Scratch& scratch) noexcept {
  const Weights up = weights_for(work, source, Operand::kUp, unit.rows.group->rows.batch);
  multiply_single(work, up, unit, scratch, scratch.c);
  for (int i = 0; i < unit.count; ++i) {
    const int64_t pair = unit.first_pair + i;
    for (int half = 0; half < (has_second(up, pair) ? 2 : 1); ++half) {
      const int64_t panel = 2 * pair + half;
      finish_panel(
          work, unit.rows, panel,
          gate_product.data + flat_row(work, unit.rows, 0) * gate_product.ld + panel * kPanelN,
          gate_product.ld, scratch.c + i * c_stride(work) + half * kPanelN, kCTileN, scratch);
    }
  }
}

// Where up to kMaxHeight rows of a panel go: D's columns from `first` on have `count` columns of
// one operand. cols 0: none of them is the panel's.
DTile part_of(const RowChunk& rows, int64_t row, int64_t panel, int64_t first,
              int64_t count) noexcept {
  const int64_t col = panel * kPanelN;
  return {&rows.group->rows, rows.row + row, first + col,
          static_cast<int>(std::min<int64_t>(kMaxHeight, rows.rows - row)),
          static_cast<int>(std::clamp<int64_t>(count - col, 0, kPanelN))};
}

// One product's tile of two that stand side by side.
void finish_part(const Work& work, const DTile& part, const float* sums, int64_t stride,
                 const PanelFactors& factors, const float* row_scale, float* tile) noexcept {
  if (part.cols == 0) return;
  if (work.problem->activates_each()) {
    // act(x) * 1 has the bits of act(x). The tables' factors go with the products alone.
    static constexpr PanelBias kNothing = panel_of(-0.0f), kOnes = panel_of(1.0f);
    const PanelFactors as_they_are{1.0f, kNothing.columns};
    float products[kMaxHeight * kPanelN];
    work.table->apply_factors(sums, stride, part.rows, factors, row_scale, products);
    work.table->activate(work.problem->act, products, kPanelN, kOnes.columns, 0, part.rows,
                         as_they_are, as_they_are, nullptr, tile);
  } else {
    work.table->apply_factors(sums, stride, part.rows, factors, row_scale, tile);
  }
  if (work.problem->problem.residual) add_residual(*work.problem, *work.buffers, part, tile);
  store_tile(*work.table, *work.problem, *work.buffers, part, tile);
}

// Hands the units of a pass over `pairs` panel pairs to the team: body(unit, scratch).
template <class Body>
void for_units(core::Team& team, const Work& work, int64_t pairs, const Scratch* scratch,
               const Body& body) noexcept {
  team.run(unit_count(work, pairs),
           [&](int64_t index, int seat) { body(unit_at(work, pairs, index), scratch[seat]); });
}

}  // namespace

int64_t flat_row(const Work& work, const RowChunk& rows, int64_t row) noexcept {
  const core::RowGroup& group = rows.group->rows;
  return group.a_batch * work.problem->problem.m + group.row_begin + rows.row + row;
}

void finish_panel(const Work& work, const RowChunk& rows, int64_t panel, const float* p,
                  int64_t stride_p, const float* q, int64_t stride_q,
                  const Scratch& scratch) noexcept {
  const Buffers& b = *work.buffers;
  const core::RowGroup& group = rows.group->rows;
  const core::ResolvedProblem& problem = *work.problem;
  const PanelBias bias_gate = load_bias(problem, b.bias_gate, group.batch, panel);
  const PanelBias bias_up = load_bias(problem, b.bias_up, group.batch, panel);
  const PanelFactors gate{alpha_of(b.alpha_gate_per_batch, b.alpha_gate, group.batch),
                          bias_gate.columns};
  const PanelFactors up{alpha_of(b.alpha_up_per_batch, b.alpha_up, group.batch), bias_up.columns};
  for (int64_t row = 0; row < rows.rows; row += kMaxHeight) {
    const int here = static_cast<int>(std::min<int64_t>(kMaxHeight, rows.rows - row));
    const float* row_scale =
        b.a_row_scale != nullptr ? b.a_row_scale + flat_row(work, rows, row) : nullptr;
    const float *gate_sums = p + row * stride_p, *up_sums = q + row * stride_q;
    if (problem.side_by_side()) {
      // Columns of Gate from up_column on are Up's.
      finish_part(work, part_of(rows, row, panel, 0, problem.problem.up_column), gate_sums,
                  stride_p, gate, row_scale, scratch.tile);
      finish_part(work, part_of(rows, row, panel, problem.problem.up_column, problem.problem.n),
                  up_sums, stride_q, up, row_scale, scratch.tile);
      continue;
    }
    work.table->activate(problem.act, gate_sums, stride_p, up_sums, stride_q, here, gate, up,
                         row_scale, scratch.tile);
    store_tile(*work.table, problem, b, part_of(rows, row, panel, 0, problem.problem.n),
               scratch.tile);
  }
}

int64_t product_rows(const Problem& problem) noexcept {
  return problem.grouping == Grouping::kContiguous ? problem.m : problem.m * problem.l;
}
int64_t product_ld(const Problem& problem) noexcept {
  return ceil_div(problem.n, kPanelN) * kPanelN;
}
int64_t product_bytes(const Problem& problem) noexcept {
  return product_rows(problem) * product_ld(problem) * static_cast<int64_t>(sizeof(float));
}

int64_t packed_operand_bytes(const Problem& problem) noexcept {
  return packed_matrix_bytes(problem.n, problem.k / kSfVec);
}

void pack_activations(core::Team& team, const Work& work) noexcept {
  team.run(work.num_pack_units, [&](int64_t unit, int) { pack_activation(work, unit); });
}

void pack_operands(core::Team& team, const core::ResolvedProblem& problem, const Buffers& buffers,
                   const KernelTable& table, const PackedOperands<uint8_t>& packed) noexcept {
  const int64_t panels = ceil_div(problem.problem.n, kPanelN), all = problem.problem.l * panels;
  team.run(2 * all, [&](int64_t unit, int) {
    const bool gate = unit < all;
    const int64_t batch = (gate ? unit : unit - all) / panels, panel = unit % panels;
    const Weights weights =
        weights_of(gate ? problem.gate : problem.up, gate ? buffers.gate : buffers.up,
                   gate ? buffers.gate_scales : buffers.up_scales, batch);
    table.pack_panel(weights.panel(panel), 0, weights.blocks,
                     packed.first[gate ? 0 : 1] + batch * packed.batch_bytes +
                         panel * packed_panel_bytes(weights.blocks));
  });
}

void fused_pass(core::Team& team, const Work& work, const WeightSource& source,
                const Scratch* scratch) noexcept {
  for_units(team, work, panels_of(work), scratch,
            [&](const Unit& unit, const Scratch& mine) { fused_unit(work, source, unit, mine); });
}

void sequential_pass(core::Team& team, const Work& work, const WeightSource& source,
                     const Scratch* scratch) noexcept {
  for_units(team, work, single_pairs(work), scratch, [&](const Unit& unit, const Scratch& mine) {
    sequential_unit(work, source, unit, mine);
  });
}

void product_pass(core::Team& team, const Work& work, const WeightSource& source, Operand operand,
                  const Product& product, const Scratch* scratch) noexcept {
  for_units(team, work, single_pairs(work), scratch, [&](const Unit& unit, const Scratch& mine) {
    product_unit(work, source, operand, product, unit, mine);
  });
}

void both_products_pass(core::Team& team, const Work& work, const WeightSource& source,
                        const Product (&products)[2], const Scratch* scratch) noexcept {
  const int64_t pairs = single_pairs(work);
  team.run(2 * unit_count(work, pairs), [&](int64_t index, int seat) {
    const int which = static_cast<int>(index % 2);
    product_unit(work, source, static_cast<Operand>(which), products[which],
                 unit_at(work, pairs, index / 2), scratch[seat]);
  });
}

void epilogue_pass(core::Team& team, const Work& work, const WeightSource& source,
                   const Product& gate_product, const Scratch* scratch) noexcept {
  for_units(team, work, single_pairs(work), scratch, [&](const Unit& unit, const Scratch& mine) {
    epilogue_unit(work, source, gate_product, unit, mine);
  });
}

void join_pass(core::Team& team, const Work& work, const Product& gate_product,
               const Product& up_product, const Scratch* scratch) noexcept {
  for_units(team, work, panels_of(work), scratch, [&](const Unit& unit, const Scratch& mine) {
    for (int i = 0; i < unit.count; ++i) {
      const int64_t at =
          flat_row(work, unit.rows, 0) * gate_product.ld + (unit.first_pair + i) * kPanelN;
      finish_panel(work, unit.rows, unit.first_pair + i, gate_product.data + at, gate_product.ld,
                   up_product.data + at, up_product.ld, mine);
    }
  });
}

}  // namespace dualgemm::cpu
