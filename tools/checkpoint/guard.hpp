// Turns what the standard library and the JSON parser throw into a Status at the boundary of this
// layer.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// `body` returns Status or Expected<T>.
template <class Body>
auto guarded(const std::string& origin, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status::error(StatusCode::kOutOfMemory, origin, "allocation failed",
                         "needs more memory than there is");
  } catch (const std::exception& error) {
    return Status::error(StatusCode::kInternal, origin, error.what(), "must not be thrown");
  }
}

}  // namespace dualgemm::checkpoint
