// Sparsity metadata in the registers of a warp: mma.sp, wgmma.mma_async.sp (PTX ISA 9.0, "Sparse
// matrix storage"; the metadata of "Matrix Fragments for sparse mma.m16n8k16" and its neighbours,
// as CuTe's ELayouts have it: mma_traits_sm90_gmma_sparse.hpp, mma_traits_sm120_sparse.hpp). A word
// has eight chunks of four bits. With g = row % 8, h = row / 8, chunk c of C in a row and selector
// s:
//   elements of 16 and 32 bits   four chunks of row g, then four of row g + 8:
//                                lane 4 * g + f + c / 4, bits 16 * h + 4 * (c % 4)
//   elements of 8 and 4 bits     eight chunks of one row:
//                                lane 4 * g + f + h + 2 * (c / 8), bits 4 * (c % 8)
// where f, the first lane of a group of four that is asked, is s when one lane has everything, 2 *
// s when two have it, and 0 when all do.
#pragma once

#include <array>
#include <cstdint>

#include "machine/tensor_core/mma/sparsity.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

struct SparseDetail {
  Sparsity sparsity = Sparsity::kNone;
  MetadataOrder order = MetadataOrder::kAny;
  bool wide = false;    // elements of 16 or 32 bits
  uint32_t chunks = 0;  // in a row
  uint32_t selector = 0;
  Slot metadata;
  bool present() const { return sparsity != Sparsity::kNone; }
};

// Operands `index` (metadata) and `index` + 1 (selector) of an instruction whose rows of A have k
// elements of so many bits, of which half are stored.
void take_metadata(Decode& d, size_t index, uint32_t k, uint32_t bits, SparseDetail& detail);

// The four bits for chunk `chunk` of row `row` of 16; `lanes`: the metadata of the 32 lanes.
uint32_t metadata_of(const SparseDetail& detail, const uint32_t* lanes, uint32_t row,
                     uint32_t chunk);

// Pairs the stored elements of row `row` of 16 with B, as row `row_of_a` of A; of `parts` parts of
// them, the chunks of one, which are all that A holds.
template <class Operand>
void pair_row(Operand& a, uint32_t row_of_a, const SparseDetail& detail, const uint32_t* lanes,
              uint32_t row, uint32_t parts = 1, uint32_t part = 0) {
  for (uint32_t chunk = part; chunk < detail.chunks; chunk += parts)
    pair_chunk(a, detail.sparsity, detail.order, row_of_a, chunk,
               metadata_of(detail, lanes, row, chunk),
               chunk / parts * chunk_stored(detail.sparsity));
}

}  // namespace ptxsim
