// Turns what the standard library and the JSON parser throw into a Status at the boundary of this
// layer.
#pragma once

#include <string>
#include <utility>

#include "api/guarded.hpp"

namespace dualgemm::checkpoint {

// `body` returns Status or Expected<T>. origin: the file, path or module that it is about.
template <class Body>
auto guarded(const std::string& origin, Body&& body) -> decltype(body()) {
  return api::guarded(origin, origin, std::forward<Body>(body));
}

}  // namespace dualgemm::checkpoint
