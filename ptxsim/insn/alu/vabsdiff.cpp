// vabsdiff2 and vabsdiff4 (PTX ISA 9.0, "Video Instructions", "SIMD Video Instructions") of unsigned
// elements: what nvcc makes of the intrinsics __vabsdiffu4, __vsadu2 and their like. Signed elements,
// selectors of elements, .sat and the other video instructions are not modelled.
#include "ptxsim/insn/alu/arithmetic.hpp"
#include "ptxsim/insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

// The differences in their places; kAdds: their sum and c.
template <unsigned kBits, bool kAdds>
uint32_t absolute_differences(uint32_t a, uint32_t b, uint32_t c) {
  constexpr uint32_t kElement = (1u << kBits) - 1;
  uint32_t elements = 0, sum = c;
  for (unsigned shift = 0; shift < 32; shift += kBits) {
    const uint32_t x = a >> shift & kElement, y = b >> shift & kElement;
    const uint32_t difference = x > y ? x - y : y - x;
    elements |= difference << shift;
    sum += difference;
  }
  return kAdds ? sum : elements;
}

}  // namespace

void decode_vabsdiff(Decode& d) {
  for (int i = 0; i < 3; ++i) take_type_of(d, {Type::kU32});
  const bool adds = d.modifiers().take("add");
  take_operands(d, Type::kU32, {Type::kU32, Type::kU32, Type::kU32});
  if (d.statement().root == "vabsdiff2")
    d.insn().execute = adds ? &each_lane<&absolute_differences<16, true>>
                            : &each_lane<&absolute_differences<16, false>>;
  else
    d.insn().execute = adds ? &each_lane<&absolute_differences<8, true>>
                            : &each_lane<&absolute_differences<8, false>>;
}

}  // namespace ptxsim
