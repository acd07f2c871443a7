// Arrays of the caller, and the rules that all of them keep.
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::core {

// One array, from its first to one past the last byte that is used.
struct MemoryRange {
  const char* name;
  const void* data;
  int64_t bytes;
  int64_t alignment;
  bool required;  // otherwise null is legal

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(data); }
  uintptr_t end() const { return begin() + static_cast<uintptr_t>(bytes); }
  bool used() const { return data != nullptr && bytes > 0; }
};

inline Status check_range(const MemoryRange& range) {
  if (range.data == nullptr) {
    if (!range.required || range.bytes == 0) return {};
    return Status::invalid(range.name, "null", "is required");
  }
  const uintptr_t excess = range.begin() % static_cast<uintptr_t>(range.alignment);
  if (excess != 0) {
    return Status::invalid(
        range.name, "address % " + std::to_string(range.alignment) + " = " + std::to_string(excess),
        "must be aligned to " + std::to_string(range.alignment) + " bytes");
  }
  uintptr_t end = 0;
  if (__builtin_add_overflow(range.begin(), static_cast<uintptr_t>(range.bytes), &end)) {
    return Status::error(StatusCode::kOverflow, range.name,
                         std::to_string(range.bytes) + " bytes from its address",
                         "must end inside the address space");
  }
  return {};
}

inline Status check_absent(const char* name, const void* data, const char* rule) {
  if (data == nullptr) return {};
  return Status::invalid(name, "not null", rule);
}

// Precondition: check_range() of both.
inline Status check_apart(const MemoryRange& output, const MemoryRange& other) {
  if (!output.used() || !other.used()) return {};
  if (output.end() <= other.begin() || other.end() <= output.begin()) return {};
  return Status::invalid(output.name, std::string("overlaps ") + other.name,
                         "must not share bytes with any other operand");
}

}  // namespace dualgemm::core
