#include "insn/tensor/mma_sync_sp.hpp"

#include <fmt/format.h>

namespace ptxsim {
namespace {

// Lanes of a group of four that hold the metadata of two rows.
uint32_t lanes_of(const SparseDetail& detail) { return 2 * detail.chunks / 8; }

}  // namespace

void take_metadata(Decode& d, size_t index, uint32_t k, uint32_t bits, SparseDetail& detail) {
  detail.wide = bits >= 16;
  detail.sparsity = bits == 32  ? Sparsity::kOneOfTwo
                    : bits == 4 ? Sparsity::kFourOfEight
                                : Sparsity::kTwoOfFour;
  detail.chunks = k / chunk_elements(detail.sparsity);
  detail.metadata = d.source(index, Type::kB32);
  const std::optional<uint64_t> selector = d.immediate(index + 1);
  const uint32_t choices = 4 / lanes_of(detail);
  if (!selector || *selector >= choices)
    d.fail(
        fmt::format("the sparsity selector must be an integer below {} for this shape: {} of four "
                    "lanes hold the metadata of a row",
                    choices, lanes_of(detail)));
  detail.selector = static_cast<uint32_t>(*selector);
}

uint32_t metadata_of(const SparseDetail& detail, const uint32_t* lanes, uint32_t row,
                     uint32_t chunk) {
  const uint32_t group = 4 * (row % 8) + detail.selector * lanes_of(detail), half = row / 8;
  if (detail.wide) return lanes[group + chunk / 4] >> (16 * half + 4 * (chunk % 4)) & 15;
  return lanes[group + half + 2 * (chunk / 8)] >> 4 * (chunk % 8) & 15;
}

}  // namespace ptxsim
