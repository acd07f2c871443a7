// Integer, logic and shift instructions: the list of their roots.
#include "insn/alu/arithmetic.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

using traits::kArithmetic, traits::kComputing;

constexpr Form kDivForms[] = {{{"approx"}, traits::kArithmetic}, {{"full"}, traits::kArithmetic}};
// What compilers do with addresses: add an offset within the alignment, and round down.
constexpr Form kOrForms[] = {{{"b64"}, kComputing.with(ResultFrom::kSum)}};
constexpr Form kAndForms[] = {{{"b64"}, kComputing.with(ResultFrom::kMasked)}};

}  // namespace

std::span<const Decoder> decoders_integer() {
  static constexpr Decoder kDecoders[] = {
      {"add", decode_add_sub, kArithmetic.with(ResultFrom::kSum)},
      {"sub", decode_add_sub, kArithmetic.with(ResultFrom::kDifference)},
      {"addc", decode_carry, kComputing},
      {"subc", decode_carry, kComputing},
      {"madc", decode_carry, kComputing},
      {"mul", decode_mul, kArithmetic},
      {"mad", decode_mad, kArithmetic.with(ResultFrom::kAddend)},
      {"mul24", decode_mul24, kComputing},
      {"mad24", decode_mul24, kComputing},
      {"div", decode_div_rem, kArithmetic, kDivForms},
      {"rem", decode_div_rem, kComputing},
      {"abs", decode_abs_neg, kArithmetic},
      {"neg", decode_abs_neg, kArithmetic},
      {"min", decode_min_max, kArithmetic},
      {"max", decode_min_max, kArithmetic},
      {"sad", decode_sad, kComputing},
      {"dp4a", decode_dot_product, kComputing},
      {"dp2a", decode_dot_product, kComputing},
      {"popc", decode_bit_count, kComputing},
      {"clz", decode_bit_count, kComputing},
      {"brev", decode_bit_count, kComputing},
      {"bfind", decode_bfind, kComputing},
      {"fns", decode_fns, kComputing},
      {"bfe", decode_bit_field, kComputing},
      {"bfi", decode_bit_field, kComputing},
      {"bmsk", decode_bmsk_szext, kComputing},
      {"szext", decode_bmsk_szext, kComputing},
      {"and", decode_logic, kComputing, kAndForms},
      {"or", decode_logic, kComputing, kOrForms},
      {"xor", decode_logic, kComputing},
      {"not", decode_logic, kComputing},
      {"cnot", decode_logic, kComputing},
      {"lop3", decode_lop3, kComputing},
      {"shl", decode_shift, kComputing},
      {"shr", decode_shift, kComputing},
      {"shf", decode_funnel_shift, kComputing},
      {"vabsdiff", decode_video, kComputing},
      {"vabsdiff2", decode_video, kComputing},
      {"vabsdiff4", decode_video, kComputing},
      {"vadd", decode_video, kComputing},
      {"vadd2", decode_video, kComputing},
      {"vadd4", decode_video, kComputing},
      {"vavrg2", decode_video, kComputing},
      {"vavrg4", decode_video, kComputing},
      {"vmad", decode_video, kComputing},
      {"vmax", decode_video, kComputing},
      {"vmax2", decode_video, kComputing},
      {"vmax4", decode_video, kComputing},
      {"vmin", decode_video, kComputing},
      {"vmin2", decode_video, kComputing},
      {"vmin4", decode_video, kComputing},
      {"vset", decode_video, kComputing},
      {"vset2", decode_video, kComputing},
      {"vset4", decode_video, kComputing},
      {"vshl", decode_video, kComputing},
      {"vshr", decode_video, kComputing},
      {"vsub", decode_video, kComputing},
      {"vsub2", decode_video, kComputing},
      {"vsub4", decode_video, kComputing},
  };
  return kDecoders;
}

}  // namespace ptxsim
