// Between the types of files and the types of operands.
#pragma once

#include <optional>

#include "dualgemm/types.hpp"
#include "io/tensor.hpp"

namespace dualgemm::api {

// The float types that operands can have; nothing for all others.
inline std::optional<DataType> float_type(io::ElementType type) noexcept {
  if (type == io::ElementType::kF32) return DataType::kF32;
  if (type == io::ElementType::kF16) return DataType::kF16;
  if (type == io::ElementType::kBF16) return DataType::kBF16;
  return std::nullopt;
}

// kE2M1 maps to bytes of two codes.
inline io::ElementType element_type(DataType type) noexcept {
  if (type == DataType::kF32) return io::ElementType::kF32;
  if (type == DataType::kF16) return io::ElementType::kF16;
  return type == DataType::kBF16 ? io::ElementType::kBF16 : io::ElementType::kU8;
}

}  // namespace dualgemm::api
