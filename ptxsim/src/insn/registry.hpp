// The families. Each file below registers the roots it decodes, a row each: the root, its decoder,
// what it is (insn/traits.hpp), and which of its forms are something else.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

// Roots that several families share (cp, fence, st) have one decoder that looks at the modifiers
// and hands over.
std::span<const Decoder> decoders_move();  // mov, selp, cvta, mapa, isspacep, prmt, ...
std::span<const Decoder> decoders_integer();
std::span<const Decoder> decoders_float();
std::span<const Decoder> decoders_convert();
std::span<const Decoder> decoders_compare();      // setp, set, slct, testp
std::span<const Decoder> decoders_control();      // bra, brx, exit, trap, nanosleep, pragma-like
std::span<const Decoder> decoders_call();         // call, ret, alloca, stacksave, stackrestore
std::span<const Decoder> decoders_memory();       // ld, st, ldu, prefetch, atom, red, ...
std::span<const Decoder> decoders_matrix_move();  // ldmatrix, stmatrix, movmatrix
std::span<const Decoder> decoders_warp();  // shfl, vote, match, redux, elect, activemask, bar.warp
std::span<const Decoder>
decoders_barrier();  // bar, barrier (with .cluster), griddepcontrol, setmaxnreg
std::span<const Decoder> decoders_fence();  // fence, membar
std::span<const Decoder> decoders_mbarrier();
std::span<const Decoder> decoders_copy();       // cp (async, bulk, tensor, reduce, prefetch)
std::span<const Decoder> decoders_tensormap();  // tensormap.replace
std::span<const Decoder> decoders_image();      // tex, tld4, txq, suld, sust, sured, suq, istypep
std::span<const Decoder> decoders_clc();        // clusterlaunchcontrol
std::span<const Decoder> decoders_tcgen05();
std::span<const Decoder> decoders_wgmma();
std::span<const Decoder> decoders_mma();  // mma.sync
std::span<const Decoder> decoders_wmma();

const Decoder* find_decoder(std::string_view root);  // nullptr: unknown opcode
std::vector<std::string_view> decoded_roots();       // all of them, sorted

}  // namespace ptxsim
