// The weights of all experts one after the other, tight, with linear scales, low nibble = even k.
#pragma once

#include <cstdint>
#include <cstring>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/formats.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {

inline Status take_bytes(const char* what, int64_t size, verify::AlignedBytes& out) {
  Expected<verify::AlignedBytes> memory = core::AlignedBytes::allocate(size, what);
  if (!memory) return memory.status();
  out = *std::move(memory);
  return {};
}

struct StackedOperand {
  verify::AlignedBytes *codes, *scales;
};
struct MatrixShape {
  int64_t n, k;
  ScaleLayout scale_layout;  // of what is appended
};

// Precondition: make_runnable() of the operand's layer.
inline Status append(const LayerOperand& operand, const MatrixShape& shape, int64_t expert,
                     StackedOperand to) {
  const auto [n, k, layout] = shape;
  std::memcpy(to.codes->data() + expert * n * (k / 2), operand.codes(), operand.data.size());
  return convert_scale_layout(operand.scales.data(), layout, 0,
                              to.scales->data() + expert * n * (k / kSfVec), ScaleLayout::kLinear,
                              0, n, k / kSfVec);
}

}  // namespace dualgemm::checkpoint
