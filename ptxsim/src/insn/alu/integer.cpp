// Integer, logic and shift instructions: the list of their roots.
#include "insn/alu/arithmetic.hpp"
#include "insn/registry.hpp"

namespace ptxsim {

std::span<const Decoder> decoders_integer() {
  static constexpr Decoder kDecoders[] = {
      {"add", decode_add_sub},    {"sub", decode_add_sub},      {"addc", decode_carry},
      {"subc", decode_carry},     {"madc", decode_carry},       {"mul", decode_mul},
      {"mad", decode_mad},        {"mul24", decode_mul24},      {"mad24", decode_mul24},
      {"div", decode_div_rem},    {"rem", decode_div_rem},      {"abs", decode_abs_neg},
      {"neg", decode_abs_neg},    {"min", decode_min_max},      {"max", decode_min_max},
      {"sad", decode_sad},        {"dp4a", decode_dot_product}, {"dp2a", decode_dot_product},
      {"popc", decode_bit_count}, {"clz", decode_bit_count},    {"brev", decode_bit_count},
      {"bfind", decode_bfind},    {"fns", decode_fns},          {"bfe", decode_bit_field},
      {"bfi", decode_bit_field},  {"bmsk", decode_bmsk_szext},  {"szext", decode_bmsk_szext},
      {"and", decode_logic},      {"or", decode_logic},         {"xor", decode_logic},
      {"not", decode_logic},      {"cnot", decode_logic},       {"lop3", decode_lop3},
      {"shl", decode_shift},      {"shr", decode_shift},        {"shf", decode_funnel_shift},
      {"vabsdiff", decode_video}, {"vabsdiff2", decode_video},  {"vabsdiff4", decode_video},
      {"vadd", decode_video},     {"vadd2", decode_video},      {"vadd4", decode_video},
      {"vavrg2", decode_video},   {"vavrg4", decode_video},     {"vmad", decode_video},
      {"vmax", decode_video},     {"vmax2", decode_video},      {"vmax4", decode_video},
      {"vmin", decode_video},     {"vmin2", decode_video},      {"vmin4", decode_video},
      {"vset", decode_video},     {"vset2", decode_video},      {"vset4", decode_video},
      {"vshl", decode_video},     {"vshr", decode_video},       {"vsub", decode_video},
      {"vsub2", decode_video},    {"vsub4", decode_video},
  };
  return kDecoders;
}

}  // namespace ptxsim
