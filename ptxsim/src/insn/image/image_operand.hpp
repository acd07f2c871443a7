// What texture and surface instructions share: the operand [object, {coordinates}] and the object
// itself.
#pragma once

#include <array>

#include "machine/execution.hpp"
#include "ptxsim/insn/decode.hpp"
#include "ptxsim/machine/image.hpp"

namespace ptxsim {

struct ImageOperand {
  Slot object;
  ImageShape geometry = ImageShape::k1d;
  Slot layer;  // present with layers
  std::array<Slot, 3> coordinates;
  uint32_t count = 0;  // of coordinates
  bool is_layered() const { return layer.present(); }
};

// .1d .2d .3d .a1d .a2d .cube .acube, of which `names` are legal, and the operand; what the manual
// calls ignored is.
ImageOperand take_image_operand(Decode& d, size_t index,
                                std::initializer_list<std::string_view> names);
// A 64-bit register that holds an object.
Slot take_image_object(Decode& d, size_t index);

// The object of a lane: a Fault when it is none, or another kind.
const Image& image_at(const Execution& x, Slot object, int lane);
const Image& texture_at(const Execution& x, const ImageOperand& operand, int lane);
const Image& surface_at(const Execution& x, const ImageOperand& operand, int lane);

void decode_tex(Decode& d);          // tex.cpp: tex, tld4
void decode_surface(Decode& d);      // suld_sust.cpp: suld, sust, sured
void decode_image_query(Decode& d);  // txq_suq.cpp: txq, suq
void decode_istypep(Decode& d);      // txq_suq.cpp

}  // namespace ptxsim
