// The steps that strategies are made of. A pass is a number of units, which a team's threads take
// one by one, and what a unit does; it ends when all units are done. Scratch: one for each seat of
// the team.
#pragma once

#include <cstdint>

#include "cpu/work.hpp"

namespace dualgemm::cpu {

enum class Operand : int { kGate = 0, kUp = 1 };

// A pre-activation product in memory: FP32, one row per row of D, rows padded to whole panels.
struct Product {
  float* data = nullptr;
  int64_t ld = 0;
};
int64_t product_rows(const Problem& problem) noexcept;
int64_t product_ld(const Problem& problem) noexcept;
int64_t product_bytes(const Problem& problem) noexcept;

// Packed panels of both operands, by Operand: the first batch's, and how far it is to the next.
template <class Byte>
struct PackedOperands {
  Byte* first[2] = {nullptr, nullptr};
  int64_t batch_bytes = 0;
};

// Where the weights of a run come from: packed panels, or rows where there are none.
using WeightSource = PackedOperands<const uint8_t>;

// Row `row` of a row chunk as a row of the whole problem: the index of a_row_scale and Product.
int64_t flat_row(const Work& work, const RowChunk& rows, int64_t row) noexcept;

// Finished accumulators of one panel, rows apart by stride_p and stride_q -> D. Needs
// Scratch::tile.
void finish_panel(const Work& work, const RowChunk& rows, int64_t panel, const float* p,
                  int64_t stride_p, const float* q, int64_t stride_q,
                  const Scratch& scratch) noexcept;

// Packs the rows of a into work.activation.
void pack_activations(core::Team& team, const Work& work) noexcept;

// One batch of one operand.
int64_t packed_operand_bytes(const Problem& problem) noexcept;
// Packs all panels of all batches of both operands.
void pack_operands(core::Team& team, const core::ResolvedProblem& problem, const Buffers& buffers,
                   const KernelTable& table, const PackedOperands<uint8_t>& packed) noexcept;

// D = act(A Gate^T) * (A Up^T), panel i of Gate paired with panel i of Up.
void fused_pass(core::Team& team, const Work& work, const WeightSource& weights,
                const Scratch* scratch) noexcept;

// The same, but one operand after the other over all of k; needs Scratch::c2.
void sequential_pass(core::Team& team, const Work& work, const WeightSource& weights,
                     const Scratch* scratch) noexcept;

// product = A * operand^T, panels 2i and 2i+1 paired.
void product_pass(core::Team& team, const Work& work, const WeightSource& weights, Operand operand,
                  const Product& product, const Scratch* scratch) noexcept;

// Both products at the same time: units of Gate and of Up take turns.
void both_products_pass(core::Team& team, const Work& work, const WeightSource& weights,
                        const Product (&products)[2], const Scratch* scratch) noexcept;

// D = act(gate_product) * (A Up^T): the second product's epilogue reads the first.
void epilogue_pass(core::Team& team, const Work& work, const WeightSource& weights,
                   const Product& gate_product, const Scratch* scratch) noexcept;

// D = act(gate_product) * up_product.
void join_pass(core::Team& team, const Work& work, const Product& gate_product,
               const Product& up_product, const Scratch* scratch) noexcept;

}  // namespace dualgemm::cpu
