// The steps that strategies are made of. Every thread of a team calls the same pass with the same
// counter and takes units until none is left; between passes the caller puts a barrier.
#pragma once

#include <cstdint>

#include "cpu/work.hpp"

namespace dualgemm::cpu {

enum class Operand : int { kGate = 0, kUp = 1 };

// A pre-activation product in memory: FP32, one row per row of d, rows padded to whole panels.
struct Product {
  float* data = nullptr;
  int64_t ld = 0;
};
int64_t product_rows(const Problem& problem) noexcept;
int64_t product_ld(const Problem& problem) noexcept;
int64_t product_bytes(const Problem& problem) noexcept;

// Where the weights of a run come from: packed panels (l matrices one after the other), or rows.
struct WeightSource {
  const uint8_t* packed[2] = {nullptr, nullptr};  // by Operand
};

// Row `row` of a row block as a row of the whole problem: the index of a_row_scale and Product.
int64_t flat_row(const Work& work, const RowBlock& rows, int64_t row) noexcept;

// Finished accumulators of one panel, rows apart by stride_p and stride_q -> d. Needs
// Scratch::tile.
void finish_panel(const Work& work, const RowBlock& rows, int64_t panel, const float* p,
                  int64_t stride_p, const float* q, int64_t stride_q,
                  const Scratch& scratch) noexcept;

// Packs all panels of all batches of one operand.
int64_t packed_operand_bytes(const Problem& problem) noexcept;
void pack_operand(const core::ResolvedProblem& problem, const Buffers& buffers,
                  const KernelTable& table, Operand operand, uint8_t* packed,
                  UnitCounter& counter) noexcept;

// d = act(a gate^T) * (a up^T), panel i of gate paired with panel i of up.
void fused_pass(const Work& work, const WeightSource& weights, const Scratch& scratch,
                UnitCounter& counter) noexcept;

// The same, but one operand after the other over all of k; needs Scratch::c2.
void sequential_pass(const Work& work, const WeightSource& weights, const Scratch& scratch,
                     UnitCounter& counter) noexcept;

// product = a * operand^T, panels 2i and 2i+1 paired.
void product_pass(const Work& work, const WeightSource& weights, Operand operand,
                  const Product& product, const Scratch& scratch, UnitCounter& counter) noexcept;

// d = act(gate_product) * (a up^T): the second product's epilogue reads the first.
void epilogue_pass(const Work& work, const WeightSource& weights, const Product& gate_product,
                   const Scratch& scratch, UnitCounter& counter) noexcept;

// d = act(gate_product) * up_product.
void join_pass(const Work& work, const Product& gate_product, const Product& up_product,
               const Scratch& scratch, UnitCounter& counter) noexcept;

}  // namespace dualgemm::cpu
