// What a boundary of the library does with exceptions: they become a Status.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "dualgemm/status.hpp"

namespace dualgemm::api {

inline Status out_of_memory(const std::string& argument) {
  return Status::error(StatusCode::kOutOfMemory, argument, "allocation failed",
                       "the operation needs more than there is");
}

inline Status internal_error(const std::string& argument, const char* what) {
  return Status::error(StatusCode::kInternal, argument, what,
                       "this is a bug in dualgemm; please report it");
}

// `body` returns Status or Expected<T>. memory, exception: the arguments that errors name.
template <class Body>
auto guarded(const std::string& memory, const std::string& exception, Body&& body)
    -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return out_of_memory(memory);
  } catch (const std::exception& error) {
    return internal_error(exception, error.what());
  } catch (...) {
    return internal_error(exception, "not a std::exception");
  }
}

template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  return guarded("memory", "exception", std::forward<Body>(body));
}

}  // namespace dualgemm::api
