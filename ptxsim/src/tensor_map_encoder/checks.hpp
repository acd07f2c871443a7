// Checks of a tensor map's arguments: what tensor_map.cpp and tensor_map_im2col.cpp share.
#pragma once

#include <concepts>
#include <optional>
#include <string>

#include "ptxsim/tensor_map.hpp"

namespace ptxsim {

using Problem = std::optional<std::string>;  // what is wrong; nothing when all is well

inline std::string at(const char* name, uint32_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

std::string observed(const std::string& what, std::integral auto value, const std::string& rule) {
  return what + ": " + std::to_string(value) + "; " + rule;
}

// What the innermost extent that a copy takes must satisfy; the encoder calls it `name`.
Problem check_innermost(const TensorMap& map, const std::string& name);

// What only im2col maps must satisfy; tiled ones pass.
Problem check_im2col(const TensorMap& map);

}  // namespace ptxsim
