// Tensor memory of one CTA: 128 lanes x 512 columns of 32-bit cells, and the allocations of its
// columns (PTX ISA 9.0, "Tensor Memory", "Tensor Memory Allocation and Management Instructions").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim {

struct Cta;

// A 32-bit address: lane in bits 31-16, column in bits 15-0.
struct TmemAddress {
  uint32_t lane = 0;
  uint32_t column = 0;
  static TmemAddress of(uint32_t bits) { return {bits >> 16, bits & 0xffffu}; }
};

class TensorMemory {
 public:
  static constexpr uint32_t kLanes = 128;
  static constexpr uint32_t kColumns = 512;
  static constexpr uint32_t kUnit = 32;  // columns; of allocation

  TensorMemory();  // every cell holds a NaN pattern
  uint32_t* at(uint32_t lane, uint32_t column) { return &cells_[lane * kColumns + column]; }
  uint32_t cell(uint32_t lane, uint32_t column) const { return cells_[lane * kColumns + column]; }

  // Life cycle (R9). All checks throw Faults.
  void check_may_allocate(uint32_t columns) const;  // range, power of two, permit, not increasing
  // The first column of a free place, which for a pair is free in both; nothing: full.
  std::optional<uint32_t> find_room(uint32_t columns, const TensorMemory* peer = nullptr) const;
  void take(uint32_t first_column, uint32_t columns);  // as find_room() gave it
  void check_may_free(uint32_t first_column, uint32_t columns) const;
  void free(uint32_t first_column);
  void relinquish() { has_permit_ = false; }
  uint32_t allocated_columns() const;
  // Every column of [first, first + columns) belongs to an allocation; `what` names the access.
  void check_columns(uint32_t first, uint32_t columns, const char* what) const;

 private:
  bool is_free(uint32_t first_column, uint32_t columns) const;

  std::vector<uint32_t> cells_;
  // For each unit of 32 columns: columns of the allocation it belongs to (0: free) and its first.
  struct Unit {
    uint32_t columns = 0;
    uint32_t first = 0;
  };
  std::array<Unit, kColumns / kUnit> units_{};
  uint32_t last_allocation_ = kColumns;  // counts must not increase
  bool has_permit_ = true;
};

// The CTA's tensor memory, made on first use.
TensorMemory& tensor_memory(Cta& cta);

}  // namespace ptxsim
