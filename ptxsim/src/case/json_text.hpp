// The one reader of JSON: bounded in depth, each key of an object once.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "ptxsim/error.hpp"

namespace ptxsim {

// Levels of lists and objects. What ptxsim reads has eight at most; programs that walk through a
// value, the JSON library's among them, may call themselves for each level.
inline constexpr size_t kMostJsonDepth = 64;

// Throws Fault (kInput) with the line and column.
nlohmann::json read_json(std::string_view text);

Place place_in(std::string_view text, size_t offset);

}  // namespace ptxsim
