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

// Whether an exception may be thrown on this thread. The C++ runtime keeps a thread's exceptions in
// thread-local memory; of a runtime that came with dlopen() the dynamic linker allocates it at the
// first throw, and ends the process when it cannot. A thread's first call takes it beforehand.
bool thread_can_throw() noexcept;

// Runs body() -> Status as the whole of an extern "C" function.
template <class Body>
dualgemm_status guarded(Body&& body) noexcept {
  if (!thread_can_throw()) return record_out_of_memory();
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
