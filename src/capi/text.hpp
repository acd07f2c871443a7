// A text into memory of a C caller's.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include "capi/error.hpp"

namespace dualgemm::capi {

// As dualgemm_plan_explain() promises it.
inline Status copy_text(const std::string& text, char* buffer, size_t capacity, size_t* required) {
  const size_t needed = text.size() + 1;
  if (buffer == nullptr && capacity != 0) {
    return Status::invalid("capacity", std::to_string(capacity),
                           "must be 0 when the buffer is null");
  }
  if (buffer == nullptr) DUALGEMM_TRY(require(required, "required"));
  if (required != nullptr) *required = needed;
  if (buffer == nullptr) return {};
  if (capacity < needed) {
    return Status::invalid("capacity", std::to_string(capacity),
                           "must be at least " + std::to_string(needed));
  }
  std::memcpy(buffer, text.c_str(), needed);
  return {};
}

}  // namespace dualgemm::capi
