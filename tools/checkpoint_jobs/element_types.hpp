// Between the types of files and the types of operands.
#pragma once

#include <optional>

#include "checkpoint/tensor.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::checkpoint {

// The float types that operands can have; nothing for all others.
inline std::optional<DataType> float_type(checkpoint::ElementType type) noexcept {
  if (type == checkpoint::ElementType::kF32) return DataType::kF32;
  if (type == checkpoint::ElementType::kF16) return DataType::kF16;
  if (type == checkpoint::ElementType::kBF16) return DataType::kBF16;
  return std::nullopt;
}

// kE2M1 maps to bytes of two codes.
inline checkpoint::ElementType element_type(DataType type) noexcept {
  if (type == DataType::kF32) return checkpoint::ElementType::kF32;
  if (type == DataType::kF16) return checkpoint::ElementType::kF16;
  return type == DataType::kBF16 ? checkpoint::ElementType::kBF16 : checkpoint::ElementType::kU8;
}

}  // namespace dualgemm::checkpoint
