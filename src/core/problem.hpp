// Problem with every default resolved, and the size arithmetic that every backend shares.
#pragma once

#include <cstdint>

#include "core/resolved_activation.hpp"
#include "dualgemm/formats.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::core {

// One operand with "tight" zeros replaced. Strides are elements; E2M1 data pointers advance by half
// as many bytes.
struct ResolvedMatrix {
  DataType type;
  int64_t rows, cols;  // of one batch (kContiguous A and D: of everything)
  int64_t ld, batch_stride;
  ScaleLayout scale_layout;
  int64_t sf_cols, scale_ld, scale_batch_stride;

  int64_t row_bytes() const noexcept;  // ld in bytes
  int64_t data_span_bytes(
      int64_t batches) const noexcept;  // first byte to one past the last one used
  int64_t scale_span_bytes(int64_t batches) const noexcept;  // swizzled padding included
  ScaleMap scale_map() const noexcept { return ScaleMap(scale_layout, rows, sf_cols, scale_ld); }
};

// Precondition: validated, as below.
ResolvedMatrix resolve(const Matrix& matrix, int64_t rows, int64_t cols) noexcept;

struct ResolvedProblem {
  Problem problem;
  // a: of rows_of_a() rows; d: side by side of up_column + n columns.
  ResolvedMatrix a, gate, up, d;
  ResolvedActivation act;
  int64_t bias_stride;

  bool side_by_side() const noexcept { return problem.combine != Combine::kGlu; }
  // Side by side: whether each product is activated.
  bool activates_each() const noexcept { return problem.combine == Combine::kActivatedSideBySide; }
};

// Precondition: validate(problem).ok().
ResolvedProblem resolve(const Problem& problem) noexcept;

// Whether the CPU kernels of `isa` add the products in the order that all CPU kernels share
// (docs/numerics.md), so that the bits are theirs.
constexpr bool has_shared_order(const Problem& problem, Isa isa) noexcept {
  if (isa == Isa::kAmxBf16 && problem.a.type == DataType::kE2M1) return false;
  return (isa != Isa::kAmxBf16 && isa != Isa::kAvx512Bf16) || problem.a.type != DataType::kBF16;
}

int64_t bits_of(DataType type) noexcept;                     // 4, 16, 16, 32
int64_t bytes_of(DataType type, int64_t elements) noexcept;  // elements even for kE2M1

// Bytes of one bias of Gate or Up. kNone: 0.
constexpr int64_t bytes_of(BiasType type) noexcept {
  return type == BiasType::kF32 ? 4 : type == BiasType::kBF16 ? 2 : 0;
}

// Columns of D. Precondition: check_combine().
constexpr int64_t columns_of_d(const Problem& problem) noexcept {
  return problem.n + problem.up_column;  // kGlu: 0
}

// Rows of A: of a batch, or of all groups.
constexpr int64_t rows_of_a(const Problem& problem) noexcept {
  return problem.a_rows > 0 ? problem.a_rows : problem.m;
}

// From the first bias of Gate, or of Up, to one past the last.
int64_t bias_span_bytes(const ResolvedProblem& problem) noexcept;

// Rows of swizzled scales that one expert of kContiguous takes: whole tiles of 128.
constexpr int64_t round_up_rows(int64_t rows) noexcept { return (rows + 127) / 128 * 128; }

// One run of rows that share weights: the unit that all backends loop over. For kNone and kMasked,
// batch b and its rows; for kContiguous, expert b and a row range inside the single A and D.
struct RowGroup {
  int64_t batch;           // which weights, which alpha
  int64_t row_begin;       // first row inside A's batch (kContiguous: inside the whole)
  int64_t rows;            // may be 0
  int64_t a_batch;         // batch index for a and d pointers (kContiguous: 0)
  int64_t sf_row_begin;    // first row inside the scale map of A; differs from row_begin for
                           // kContiguous + swizzled, unless rows name their experts; of no
                           // account where A is read by index
  int64_t d_sf_row_begin;  // the same for D, whose scale layout may be the other one
};
// The problem.l groups, one after the other; with Buffers::row_experts the runs of neighbouring
// rows of the same expert, up to m of them, in ascending order of rows. Precondition: validated
// buffers.
class RowGroups {
 public:
  RowGroups(const Problem& problem, const Buffers& buffers) noexcept
      : problem_(problem), buffers_(buffers) {}
  bool next(RowGroup& group) noexcept;  // false after the last one

 private:
  bool next_run(RowGroup& group) noexcept;

  const Problem& problem_;
  const Buffers& buffers_;
  int64_t next_batch_ = 0;
  int64_t padded_rows_ = 0;
  int64_t next_row_ = 0;  // of row_experts
};

// Operations of the two products, a multiply and an add as two: 4*m*n*k*l (kContiguous: 4*m*n*k).
double flops(const Problem& problem) noexcept;

}  // namespace dualgemm::core
