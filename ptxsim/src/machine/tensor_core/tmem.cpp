#include "machine/tensor_core/tmem.hpp"

#include <fmt/format.h>

#include <bit>

#include "machine/cta.hpp"
#include "ptxsim/machine/memory.hpp"

namespace ptxsim {

TensorMemory::TensorMemory() : cells_(size_t{kLanes} * kColumns, kPoisonWord) {}

void TensorMemory::check_may_allocate(uint32_t columns) const {
  if (columns < kUnit || columns > kColumns || !std::has_single_bit(columns))
    throw Fault(fmt::format(
        "tcgen05.alloc of {} columns; must be a power of two from 32 to 512 (R9)", columns));
  if (!has_permit_)
    throw Fault("tcgen05.alloc after tcgen05.relinquish_alloc_permit of this CTA (R9)");
  if (columns > last_allocation_)
    throw Fault(
        fmt::format("tcgen05.alloc of {} columns after one of {}; the counts of one CTA must not "
                    "increase (R9)",
                    columns, last_allocation_));
}

bool TensorMemory::is_free(uint32_t first_column, uint32_t columns) const {
  for (uint32_t unit = first_column / kUnit; unit < (first_column + columns) / kUnit; ++unit)
    if (units_[unit].columns != 0) return false;
  return true;
}

std::optional<uint32_t> TensorMemory::find_room(uint32_t columns, const TensorMemory* peer) const {
  for (uint32_t first = 0; first + columns <= kColumns; first += columns)
    if (is_free(first, columns) && (peer == nullptr || peer->is_free(first, columns))) return first;
  return std::nullopt;
}

void TensorMemory::take(uint32_t first_column, uint32_t columns) {
  for (uint32_t unit = first_column / kUnit; unit < (first_column + columns) / kUnit; ++unit)
    units_[unit] = {columns, first_column};
  last_allocation_ = columns;
}

void TensorMemory::check_may_free(uint32_t first_column, uint32_t columns) const {
  if (first_column >= kColumns || first_column % kUnit != 0 ||
      units_[first_column / kUnit].columns == 0 ||
      units_[first_column / kUnit].first != first_column)
    throw Fault(fmt::format(
        "tcgen05.dealloc at column {}, where no allocation of this CTA starts (R9)", first_column));
  if (units_[first_column / kUnit].columns != columns)
    throw Fault(fmt::format("tcgen05.dealloc of {} columns at column {}; {} were allocated (R9)",
                            columns, first_column, units_[first_column / kUnit].columns));
}

void TensorMemory::free(uint32_t first_column) {
  const uint32_t columns = units_[first_column / kUnit].columns;
  for (uint32_t unit = first_column / kUnit; unit < (first_column + columns) / kUnit; ++unit)
    units_[unit] = {};
  // What the next owner finds is undefined.
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t c = first_column; c < first_column + columns; ++c) *at(lane, c) = kPoisonWord;
}

uint32_t TensorMemory::allocated_columns() const {
  uint32_t columns = 0;
  for (const Unit& unit : units_) columns += unit.columns != 0 ? kUnit : 0;
  return columns;
}

void TensorMemory::check_columns(uint32_t first, uint32_t columns, const char* what) const {
  if (first + columns > kColumns)
    throw Fault(
        fmt::format("{}: columns {} .. {} of tensor memory, which has columns 0 .. 511 (R9)", what,
                    first, first + columns - 1));
  for (uint32_t c = first; c < first + columns; c = (c / kUnit + 1) * kUnit)
    if (units_[c / kUnit].columns == 0)
      throw Fault(fmt::format("{}: columns {} .. {}; column {} is not allocated by this CTA (R9)",
                              what, first, first + columns - 1, c));
}

TensorMemory& tensor_memory(Cta& cta) {
  if (!cta.tmem) cta.tmem = std::make_unique<TensorMemory>();
  return *cta.tmem;
}

}  // namespace ptxsim
