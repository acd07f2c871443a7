// Checks that the functions of formats.hpp share: one rule each, message "argument: observed;
// rule".
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm/formats.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::core {

inline Status check_not_negative(const char* argument, int64_t value) {
  if (value >= 0) return Status();
  return Status::invalid(argument, std::to_string(value), "must not be negative");
}

inline Status check_multiple(const char* argument, int64_t value, int64_t of) {
  DUALGEMM_TRY(check_not_negative(argument, value));
  if (value % of == 0) return Status();
  return Status::invalid(argument, std::to_string(value),
                         "must be a multiple of " + std::to_string(of));
}

// A pointer may be null only where nothing lies behind it.
inline Status check_pointer(const char* argument, const void* pointer, int64_t bytes) {
  if (pointer != nullptr || bytes == 0) return Status();
  return Status::invalid(argument, "null", "needs " + std::to_string(bytes) + " bytes");
}

inline Status overflow(const char* argument, const std::string& observed) {
  return Status::error(StatusCode::kOverflow, argument, observed, "must fit in 64 bits");
}

inline Expected<int64_t> checked_product(const char* argument, int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return overflow(argument, std::to_string(a) + " * " + std::to_string(b));
}

// Units from the first to one past the last of rows x cols with `ld` between rows; 0 when there are
// none. Needs ld >= cols, so that rows do not overlap.
inline Expected<int64_t> checked_row_span(const char* ld_argument, int64_t rows, int64_t cols,
                                          int64_t ld) {
  if (ld < cols) {
    return Status::invalid(ld_argument, std::to_string(ld),
                           "must be at least the row's " + std::to_string(cols));
  }
  if (rows == 0 || cols == 0) return int64_t{0};
  int64_t span = 0;
  if (!__builtin_mul_overflow(rows - 1, ld, &span) && !__builtin_add_overflow(span, cols, &span))
    return span;
  return overflow(ld_argument, std::to_string(rows) + " rows of " + std::to_string(ld));
}

inline bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && first < second + static_cast<uintptr_t>(b_bytes) &&
         second < first + static_cast<uintptr_t>(a_bytes);
}

inline Status check_disjoint(const char* output, const void* out, int64_t out_bytes,
                             const char* other, const void* with, int64_t with_bytes) {
  if (!overlap(out, out_bytes, with, with_bytes)) return Status();
  return Status::invalid(output, std::string("overlaps ") + other,
                         "must not overlap what is read or written beside it");
}

// The layout object, once its span is known to fit in 64 bits.
Expected<ScaleMap> checked_scale_map(const char* ld_argument, ScaleLayout layout, int64_t rows,
                                     int64_t sf_cols, int64_t ld);

}  // namespace dualgemm::core
