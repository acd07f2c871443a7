// Decoders that mov.cpp's list gathers from the files of its family.
#pragma once

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

void decode_mov(Decode& d);
void decode_selp(Decode& d);
void decode_slct(Decode& d);
void decode_prmt(Decode& d);
void decode_cvta(Decode& d);
void decode_isspacep(Decode& d);
void decode_mapa(Decode& d);
void decode_getctarank(Decode& d);

}  // namespace ptxsim
