// The border between Status and the C status code: what a call returned is kept for its thread, and
// no exception passes.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "dualgemm/dualgemm.h"
#include "dualgemm/status.hpp"

namespace dualgemm::capi {

// Keeps `status` as the calling thread's last one and returns its code.
dualgemm_status record(const Status& status) noexcept;
// The same for a failed allocation, itself without one.
dualgemm_status record_out_of_memory() noexcept;
// The same for an exception that the C++ API promised not to throw.
dualgemm_status record_exception() noexcept;

// Runs body() -> Status as the whole of an extern "C" function.
template <class Body>
dualgemm_status guarded(Body&& body) noexcept {
  try {
    return record(std::forward<Body>(body)());
  } catch (const std::bad_alloc&) {
    return record_out_of_memory();
  } catch (...) {
    return record_exception();
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
