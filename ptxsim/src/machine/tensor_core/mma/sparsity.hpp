// Sparse matrices A: half of each row's elements are stored, and metadata says which (PTX ISA 9.0,
// "Sparse matrix storage"). Four bits of metadata stand for one chunk of neighbours in a row.
#pragma once

#include <cstdint>
#include <string>

#include "ptxsim/error.hpp"

namespace ptxsim {

enum class Sparsity : uint8_t {
  kNone,
  kOneOfTwo,   // tf32: a chunk has 2 elements, one of them stored; 0100 the first, 1110 the second
  kTwoOfFour,  // 8 and 16 bits: a chunk has 4 elements; two indices of 2 bits, the lower bits first
  kFourOfEight,  // 4 bits: the same with pairs of elements in the place of elements
};

// Elements of a row that one chunk covers, and how many of them are stored.
constexpr uint32_t chunk_elements(Sparsity sparsity) {
  return sparsity == Sparsity::kOneOfTwo ? 2 : sparsity == Sparsity::kTwoOfFour ? 4 : 8;
}
constexpr uint32_t chunk_stored(Sparsity sparsity) { return chunk_elements(sparsity) / 2; }

// Where in its chunk stored element `i` belongs; bits that are not is_defined() give the place that
// they point at.
constexpr uint32_t place_in_chunk(Sparsity sparsity, uint32_t bits, uint32_t i) {
  if (sparsity == Sparsity::kOneOfTwo) return bits >> 3 & 1;
  if (sparsity == Sparsity::kTwoOfFour) return bits >> 2 * i & 3;
  return 2 * (bits >> i / 2 * 2 & 3) + i % 2;
}

// Which order the two indices of a chunk may have; equal ones never.
enum class MetadataOrder : uint8_t {
  kAny,      // mma.sp, wgmma.mma_async.sp
  kRising,   // mma.sp::ordered_metadata
  kTcgen05,  // rising, or 0110, which the manual lists too
};
// Whether PTX gives these four bits a meaning.
bool is_defined(Sparsity sparsity, uint32_t bits, MetadataOrder order);

// For a Fault: the metadata of one chunk of a row is not defined.
std::string undefined_metadata(Sparsity sparsity, uint32_t bits, uint32_t row, uint32_t chunk);

// Pairs what a chunk of a row of A has stored, in elements `at` .. of that row of the operand, with
// elements of B. A Fault when the metadata is not defined, unless it decides nothing, because all
// of it is 0: rows beyond a matrix are so.
template <class Operand>
void pair_chunk(Operand& a, Sparsity sparsity, MetadataOrder order, uint32_t row, uint32_t chunk,
                uint32_t bits, uint32_t at) {
  bool decides = false;
  for (uint32_t i = 0; i < chunk_stored(sparsity); ++i) {
    a.pair(row, at + i, chunk * chunk_elements(sparsity) + place_in_chunk(sparsity, bits, i));
    decides |= !a.is_zero(row, at + i);
  }
  if (decides && !is_defined(sparsity, bits, order))
    throw Fault(undefined_metadata(sparsity, bits, row, chunk));
}

}  // namespace ptxsim
