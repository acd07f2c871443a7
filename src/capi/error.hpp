// The border between Status and the C status code: what a call returned is kept for its thread, and
// no exception passes.
#pragma once

#include <string>
#include <utility>

#include "api/guarded.hpp"
#include "dualgemm/dualgemm.h"
#include "dualgemm/status.hpp"

namespace dualgemm::capi {

// Keeps `status` as the calling thread's last one and returns its code.
dualgemm_status record(const Status& status) noexcept;
// The same for a failed allocation, itself without one.
dualgemm_status record_out_of_memory() noexcept;

// Runs body() -> Status as the whole of an extern "C" function.
template <class Body>
dualgemm_status guarded(Body&& body) noexcept {
  try {
    return record(api::guarded(std::forward<Body>(body)));
  } catch (...) {  // no memory for the Status that says what was thrown
    return record_out_of_memory();
  }
}

inline Status require(const void* pointer, const char* argument) {
  if (pointer != nullptr) return {};
  return Status::invalid(argument, "null", "must not be null");
}

}  // namespace dualgemm::capi

// Declares `name` as the value of the Expected `expr`, or returns its Status from the enclosing
// function.
#define DUALGEMM_CAPI_TRY_VALUE(name, expr)                                \
  auto dualgemm_expected_##name = (expr);                                  \
  if (!dualgemm_expected_##name) return dualgemm_expected_##name.status(); \
  auto& name = *dualgemm_expected_##name
