#include "machine/tensor_core/mma/operation.hpp"

#include <fmt/format.h>

#include <cstring>

#include "machine/cta.hpp"
#include "machine/tensor_core/mma/block4.hpp"
#include "machine/tensor_core/mma/dense.hpp"

namespace ptxsim {
namespace {

using RowBytes = std::array<uint8_t, 2 * kMmaKBytes>;

// Rows of an operand in shared memory, K-major.
RowBytes read_k_major(Cta& cta, const SmemDescriptor& d, uint32_t row, uint32_t k_bytes) {
  RowBytes bytes{};
  for (uint32_t chunk = 0; chunk < k_bytes / 16; ++chunk)
    std::memcpy(&bytes[16 * chunk], cta.shared.at(k_major_chunk(d, row, chunk)), 16);
  return bytes;
}

// A row of A in tensor memory: 8 cells of the lane that this part of D's row has.
RowBytes read_tmem(Cta& cta, const MmaOperation& op, uint32_t row, uint32_t part) {
  RowBytes bytes{};
  const uint32_t lane = op.a_tmem.lane + op.shape.lane_of(row, part * op.shape.d_columns());
  std::memcpy(bytes.data(), tensor_memory(cta).at(lane, op.a_tmem.column), kMmaKBytes);
  return bytes;
}

RowBytes read_row_of_a(Cta& cta, const MmaOperation& op, uint32_t row, uint32_t part) {
  return op.a_in_tmem ? read_tmem(cta, op, row, part) : read_k_major(cta, op.a, row, kMmaKBytes);
}

RowBytes read_row_of_b(Cta& cta, const MmaOperation& op, uint32_t row) {
  return read_k_major(cta, op.b, row, k_bytes_of_b(op.shape));
}

// The four bits of metadata for a chunk of a row of A, in the lanes of a part of D (CuTe's
// tmem_e_frg and tmem_e_frg_ws, mma_traits_sm100_frag.hpp). f16 and tf32: of 16 rows, the lanes row
// % 8 and row % 8 + 8 have the first and the second half of the chunks, of row % 8 in the low 16
// bits and of row % 8 + 8 in the upper ones. Others: the lane is the row, with two columns.
uint32_t metadata_of(Cta& cta, const MmaOperation& op, uint32_t part, uint32_t row,
                     uint32_t chunk) {
  const MmaShape& shape = op.shape;
  const uint32_t first = shape.lane_of(0, part * shape.d_columns());
  const bool by_halves = shape.metadata_columns() == 1;
  const uint32_t lane = by_halves ? row / 16 * 16 + row % 8 + chunk / 4 * 8 : row;
  const uint32_t column = op.metadata_column + (by_halves ? shape.selector : chunk / 8);
  const uint32_t bit = by_halves ? row / 8 % 2 * 16 + chunk % 4 * 4 : chunk % 8 * 4;
  return tensor_memory(cta).cell(first + lane, column) >> bit & 15;
}

template <class Operand>
void pair_row(Cta& cta, const MmaOperation& op, uint32_t part, uint32_t row, Operand& a) {
  const MmaShape& shape = op.shape;
  for (uint32_t chunk = 0; chunk < shape.k / chunk_elements(shape.sparsity); ++chunk)
    pair_chunk(a, shape.sparsity, MetadataOrder::kTcgen05, row, chunk,
               metadata_of(cta, op, part, row, chunk), chunk * chunk_stored(shape.sparsity));
}

// How often A is read: once, unless the parts of D have an A, or metadata, in their own lanes.
uint32_t readings_of_a(const MmaOperation& op) {
  return op.a_in_tmem || op.shape.is_sparse() ? op.shape.parts() : 1;
}

// Element k of a row. In shared memory 16 elements of 4 or 6 bits lie together and are padded to 16
// bytes; in tensor memory each has a byte, 4 bits in its middle (PTX ISA, "Packing formats").
uint32_t element_of(const RowBytes& bytes, Element element, uint32_t k, bool from_tmem) {
  const unsigned bits = bits_of(element);
  if (bits >= 8) {
    uint32_t code = 0;
    std::memcpy(&code, &bytes[k * bits / 8], bits / 8);
    return code;
  }
  if (from_tmem) return bits == 4 ? bytes[k] >> 2 & 15 : bytes[k] & 63;
  const unsigned bit = k % 16 * bits;
  const uint8_t* chunk = &bytes[k / 16 * 16 + bit / 8];
  return (chunk[0] | chunk[1] << 8) >> bit % 8 & ((1u << bits) - 1);
}

template <class Operand>
void set_element(Operand& operand, const MmaShape& shape, bool is_a, uint32_t row, uint32_t k,
                 uint32_t code) {
  if constexpr (std::is_same_v<Operand, IntegerOperand>)
    operand.set(row, k, is_a ? shape.a_signed : shape.b_signed, static_cast<uint8_t>(code));
  else
    operand.set(row, k, is_a ? shape.a : shape.b, code);
}

// Rows first_row .. of `operand` from an MN-major matrix that starts at d.
template <class Operand>
void read_mn_major(Cta& cta, const MmaOperation& op, bool is_a, uint32_t first_row, uint32_t rows,
                   Operand& operand) {
  const SmemDescriptor& d = is_a ? op.a : op.b;
  const uint32_t bytes = kMmaKBytes / op.shape.stored_k();
  const uint32_t together = 16 / bytes;
  for (uint32_t k = 0; k < operand.k(); ++k) {
    for (uint32_t row = 0; row < rows; ++row) {
      uint32_t code = 0;
      const std::byte* chunk = cta.shared.at(mn_major_chunk(d, row / together, k));
      std::memcpy(&code, chunk + row % together * bytes, bytes);
      set_element(operand, op.shape, is_a, first_row + row, k, code);
    }
  }
}

// Rows first_row .. of `operand` from one CTA's part of A, for a part of D, or of B.
template <class Operand>
void read_part(Cta& cta, const MmaOperation& op, bool is_a, uint32_t part, uint32_t first_row,
               uint32_t rows, Operand& operand) {
  const bool from_tmem = is_a && op.a_in_tmem;
  if (!from_tmem && (is_a ? op.shape.a_mn_major : op.shape.b_mn_major)) {
    read_mn_major(cta, op, is_a, first_row, rows, operand);
    return;
  }
  const Element element = op.shape.kind == MmaKind::kI8 ? Element::kE4m3  // any of 8 bits
                          : is_a                        ? op.shape.a
                                                        : op.shape.b;
  for (uint32_t row = 0; row < rows; ++row) {
    const RowBytes bytes = is_a ? read_row_of_a(cta, op, row, part) : read_row_of_b(cta, op, row);
    for (uint32_t k = 0; k < operand.k(); ++k)
      set_element(operand, op.shape, is_a, first_row + row, k,
                  element_of(bytes, element, k, from_tmem));
  }
}

template <class Operand>
Operand read_a(Cta& cta, const MmaOperation& op, uint32_t part) {
  Operand a(op.shape.rows(), op.shape.stored_k(), false);
  read_part(cta, op, true, part, 0, op.shape.rows(), a);
  if (op.shape.is_sparse())
    for (uint32_t row = 0; row < op.shape.rows(); ++row) pair_row(cta, op, part, row, a);
  if constexpr (std::is_same_v<Operand, DenseOperand>) {
    if (op.shape.negate_a) a.negate();
  }
  return a;
}

template <class Operand>
Operand read_b(const MmaOperation& op) {
  Operand b(op.shape.n, op.shape.k, true);
  const uint32_t rows = op.shape.n / op.shape.ctas;
  for (uint32_t r = 0; r < op.shape.ctas; ++r)
    read_part(*op.ctas[r], op, false, 0, r * rows, rows, b);
  if constexpr (std::is_same_v<Operand, DenseOperand>) {
    if (op.shape.negate_b) b.negate();
  }
  return b;
}

// The cell that holds the scales of a row: lane row % 32 of all four quarters, column row / 32
// (PTX ISA, "Block Scaling": duplicated to all 32-lane partitions). Layout B has the scales of the
// second half of N in the upper two quarters. The copies must agree; the first is what is used.
uint32_t scale_cell(Cta& cta, const MmaOperation& op, bool is_a, uint32_t row) {
  const TensorMemory& tmem = tensor_memory(cta);
  const bool is_split = !is_a && op.shape.layout == DLayout::kSplit;
  const uint32_t in_half = is_split ? row % (op.shape.n / 2) : row;
  const uint32_t column = (is_a ? op.sfa_column : op.sfb_column) + in_half / 32;
  const uint32_t first = is_split ? row / (op.shape.n / 2) * 64 : 0;
  const uint32_t lane = first + in_half % 32;
  const uint32_t cell = tmem.cell(lane, column);
  const uint32_t count = op.shape.scales, id = is_a ? op.shape.sfa_id : op.shape.sfb_id;
  const uint32_t used = (count == 4 ? 0xffffffffu : (1u << 8 * count) - 1) << 8 * id;
  for (uint32_t copy = lane + 32; copy < (is_split ? first + 64 : 128); copy += 32) {
    const uint32_t other = tmem.cell(copy, column);
    if (((other ^ cell) & used) != 0)
      throw Fault(
          fmt::format("scale factors of row {} of {}: lane {} column {} holds 0x{:08x}, lane "
                      "{} holds 0x{:08x}; the copies in all quarters must be the same (R14)",
                      row, is_a ? 'A' : 'B', lane, column, cell, copy, other));
  }
  return cell >> 8 * id;
}

// Calls f(first, columns, cells) for the parts of D's row that one reading of A serves, each in a
// lane of its own; skips disabled lanes.
template <class F>
void for_row_parts(const MmaOperation& op, uint32_t r, uint32_t reading, uint32_t row, F&& f) {
  const bool serves_all = readings_of_a(op) == 1;
  const uint32_t columns = op.shape.d_columns();
  for (uint32_t first = 0; first < op.shape.n; first += columns) {
    if (!serves_all && first != reading * columns) continue;
    const uint32_t lane = op.d.lane + op.shape.lane_of(row, first);
    if ((op.disabled[4 * r + lane / 32] >> lane % 32 & 1) == 0)
      f(first, columns, tensor_memory(*op.ctas[r]).at(lane, op.d.column));
  }
}

// One row of D through a buffer of all N columns, as some layouts have it in several lanes.
template <class Compute>
void compute_row(const MmaOperation& op, uint32_t r, uint32_t reading, uint32_t row,
                 Compute&& compute) {
  uint32_t cells[256] = {};
  for_row_parts(op, r, reading, row, [&](uint32_t first, uint32_t columns, const uint32_t* d) {
    std::memcpy(cells + first, d, columns * 4);
  });
  compute(cells);
  for_row_parts(op, r, reading, row, [&](uint32_t first, uint32_t columns, uint32_t* d) {
    std::memcpy(d, cells + first, columns * 4);
  });
}

void set_row_of_a(Cta& cta, const MmaOperation& op, uint32_t row, uint32_t reading,
                  Block4Operand& a) {
  const RowBytes codes = read_row_of_a(cta, op, row, reading);
  if (!op.shape.is_sparse()) return a.set_row(row, codes.data(), op.shape.negate_a);
  Block4Row places{codes.data()};
  pair_row(cta, op, reading, row, places);
  a.set_sparse_row(row, codes.data(), places.places.data(), op.shape.negate_a);
}

void execute_block4(const MmaOperation& op) {
  const MmaShape& shape = op.shape;
  Block4Operand a(false, shape.k), b(true, shape.k);
  const uint32_t b_rows = shape.n / shape.ctas;
  for (uint32_t n = 0; n < shape.n; ++n)
    b.set_row(n, read_row_of_b(*op.ctas[n / b_rows], op, n % b_rows).data(), shape.negate_b);
  for (uint32_t r = 0; r < shape.ctas; ++r) {
    Cta& cta = *op.ctas[r];
    const auto set_scales = [&](Block4Operand& operand, bool is_a, uint32_t row) {
      const uint32_t cell = scale_cell(cta, op, is_a, row);
      uint8_t codes[4];
      std::memcpy(codes, &cell, 4);
      operand.set_scales(row, codes, shape.scales, shape.scale_type);
    };
    for (uint32_t n = 0; n < shape.n; ++n) set_scales(b, false, n);
    for (uint32_t reading = 0; reading < readings_of_a(op); ++reading) {
      for (uint32_t row = 0; row < shape.rows(); ++row) {
        set_row_of_a(cta, op, row, reading, a);
        set_scales(a, true, row);
      }
      for (uint32_t row = 0; row < shape.rows(); ++row)
        compute_row(op, r, reading, row, [&](uint32_t* cells) {
          block4_row(a, row, b, shape.n, op.accumulate, op.exact, cells);
        });
    }
  }
}

void execute_dense(const MmaOperation& op) {
  const MmaShape& shape = op.shape;
  const DenseOperand unscaled_b = read_b<DenseOperand>(op);
  const DenseRules rules{
      .accumulator = shape.f16_accumulator ? Accumulator::kF16 : Accumulator::kF32,
      .fraction_bits = 25,
      .exact = op.exact,
      .input_shift = op.input_shift};
  for (uint32_t r = 0; r < shape.ctas; ++r) {
    DenseOperand b = unscaled_b;
    if (shape.scales != 0)
      for (uint32_t n = 0; n < shape.n; ++n)
        b.scale_row(n, static_cast<uint8_t>(scale_cell(*op.ctas[r], op, false, n)));
    for (uint32_t reading = 0; reading < readings_of_a(op); ++reading) {
      DenseOperand a = read_a<DenseOperand>(*op.ctas[r], op, reading);
      if (shape.scales != 0)
        for (uint32_t row = 0; row < shape.rows(); ++row)
          a.scale_row(row, static_cast<uint8_t>(scale_cell(*op.ctas[r], op, true, row)));
      for (uint32_t row = 0; row < shape.rows(); ++row)
        compute_row(op, r, reading, row,
                    [&](uint32_t* cells) { dense_row(a, row, b, rules, op.accumulate, cells); });
    }
  }
}

void execute_integer(const MmaOperation& op) {
  const IntegerOperand b = read_b<IntegerOperand>(op);
  for (uint32_t r = 0; r < op.shape.ctas; ++r)
    for (uint32_t reading = 0; reading < readings_of_a(op); ++reading) {
      const IntegerOperand a = read_a<IntegerOperand>(*op.ctas[r], op, reading);
      for (uint32_t row = 0; row < op.shape.rows(); ++row)
        compute_row(op, r, reading, row, [&](uint32_t* cells) {
          integer_row(a, row, b, op.shape.saturate, op.accumulate, cells);
        });
    }
}

// k elements of K in so many bytes of a row.
std::vector<ByteRange> footprint(const SmemDescriptor& d, uint32_t rows, uint32_t k, uint32_t bytes,
                                 bool mn_major) {
  return mn_major ? mn_major_footprint(d, rows * (bytes / k), k)
                  : k_major_footprint(d, rows, bytes);
}

}  // namespace

std::vector<ByteRange> footprint_of_a(const MmaOperation& op) {
  return footprint(op.a, op.shape.rows(), op.shape.stored_k(), kMmaKBytes, op.shape.a_mn_major);
}

std::vector<ByteRange> footprint_of_b(const MmaOperation& op) {
  return footprint(op.b, op.shape.n / op.shape.ctas, op.shape.k, k_bytes_of_b(op.shape),
                   op.shape.b_mn_major);
}

void execute(const MmaOperation& op) {
  if (op.shape.kind == MmaKind::kI8)
    execute_integer(op);
  else if (is_block4(op.shape.kind))
    execute_block4(op);
  else
    execute_dense(op);
}

}  // namespace ptxsim
