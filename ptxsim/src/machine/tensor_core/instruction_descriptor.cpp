#include "machine/tensor_core/instruction_descriptor.hpp"

#include <fmt/format.h>

#include <string>

#include "ptxsim/error.hpp"

namespace ptxsim {
namespace {

// Reads fields of one descriptor; a refusal names the field.
class Fields {
 public:
  Fields(uint32_t bits, MmaKind kind) : bits_(bits), kind_(kind) {}

  uint32_t get(unsigned first, unsigned last) const {
    return bits_ >> first & ((1u << (last - first + 1)) - 1);
  }
  bool bit(unsigned at) const { return get(at, at) != 0; }
  [[noreturn]] void refuse(const std::string& what, const std::string& rule) const {
    throw Fault(fmt::format("instruction descriptor 0x{:08x} of kind::{}: {}; {} (R14)", bits_,
                            name_of(kind_), what, rule));
  }
  void require(unsigned first, unsigned last, uint32_t value, const char* name) const {
    if (get(first, last) != value)
      refuse(fmt::format("{} (bits {}-{}) is {}", name, first, last, get(first, last)),
             fmt::format("must be {}", value));
  }
  void require_sparsity(bool is_sparse) const {
    if (bit(2) != is_sparse)
      refuse(fmt::format("sparsity (bit 2) is {}", get(2, 2)),
             is_sparse ? "tcgen05.mma.sp needs 1" : "only tcgen05.mma.sp has a sparse A");
  }

 private:
  uint32_t bits_;
  MmaKind kind_;
};

Element element_of_f8f6f4(const Fields& f, unsigned first, const char* name) {
  switch (f.get(first, first + 2)) {
    case 0:
      return Element::kE4m3;
    case 1:
      return Element::kE5m2;
    case 3:
      return Element::kE2m3;
    case 4:
      return Element::kE3m2;
    case 5:
      return Element::kE2m1;
    default:
      f.refuse(
          fmt::format("{} (bits {}-{}) is {}", name, first, first + 2, f.get(first, first + 2)),
          "must be 0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2) or 5 (e2m1)");
  }
}

void decode_dense_types(const Fields& f, MmaShape& s) {
  const uint32_t d = f.get(4, 5), a = f.get(7, 9), b = f.get(10, 12);
  s.f16_accumulator = d == 0;
  switch (s.kind) {
    case MmaKind::kF16:
      if (d > 1) f.refuse(fmt::format("D type (bits 4-5) is {}", d), "must be 0 (f16) or 1 (f32)");
      if (a > 1 || b > 1)
        f.refuse(fmt::format("A and B types are {} and {}", a, b), "must be 0 (f16) or 1 (bf16)");
      if (d == 0 && (a | b) != 0)
        f.refuse(fmt::format("A and B types are {} and {}", a, b), "an f16 D needs f16 operands");
      s.a = a == 0 ? Element::kF16 : Element::kBf16;
      s.b = b == 0 ? Element::kF16 : Element::kBf16;
      s.k = 16;
      return;
    case MmaKind::kTf32:
      f.require(4, 5, 1, "D type");
      f.require(7, 9, 2, "A type");
      f.require(10, 12, 2, "B type");
      s.a = s.b = Element::kTf32;
      s.k = 8;
      return;
    case MmaKind::kF8f6f4:
      if (d > 1) f.refuse(fmt::format("D type (bits 4-5) is {}", d), "must be 0 (f16) or 1 (f32)");
      s.a = element_of_f8f6f4(f, 7, "A type");
      s.b = element_of_f8f6f4(f, 10, "B type");
      s.k = 32;
      return;
    default:
      f.require(4, 5, 2, "D type");
      if (a > 1 || b > 1)
        f.refuse(fmt::format("A and B types are {} and {}", a, b), "must be 0 (u8) or 1 (s8)");
      if (s.negate_a || s.negate_b) f.refuse("negate (bits 13-14) is set", "integers have none");
      s.a_signed = a == 1;
      s.b_signed = b == 1;
      s.saturate = f.bit(3);
      s.k = 32;
  }
}

// Two columns of metadata lie side by side for the kinds whose steps fill one each, as CuTe's
// sparse kernels have it (mma_traits_sm100.hpp). What 2 and 3 select, only a figure of the manual
// shows.
void decode_selector(const Fields& f, MmaShape& s) {
  if (!s.is_sparse() || (s.kind != MmaKind::kF16 && s.kind != MmaKind::kTf32))
    return f.require(0, 1, 0, "sparsity selector");
  s.selector = f.get(0, 1);
  if (s.selector > 1)
    f.refuse(fmt::format("sparsity selector (bits 0-1) is {}", s.selector),
             "only 0 and 1 are modelled");
}

void decode_dense(const Fields& f, MmaShape& s, bool is_weight_stationary) {
  decode_selector(f, s);
  if (s.kind != MmaKind::kI8) f.require(3, 3, 0, "saturate");
  f.require(6, 6, 0, "reserved field");
  f.require(23, 23, 0, "reserved field");
  f.require(29, 29, 0, "reserved field");
  if (!is_weight_stationary) f.require(30, 31, 0, "maximum shift of .ws");
  s.m = f.get(24, 28) << 4;
  decode_dense_types(f, s);
}

void decode_block_scaled(const Fields& f, MmaShape& s) {
  f.require(0, 1, 0, "reserved field");
  f.require(3, 3, 0, "reserved field");
  f.require(6, 6, 0, "reserved field");
  f.require(24, 26, 0, "reserved field");
  s.m = f.get(27, 28) << 7;
  s.sfb_id = f.get(4, 5);
  s.sfa_id = f.get(29, 30);
  s.scale_type = f.bit(23) ? ScaleType::kUe8m0 : ScaleType::kUe4m3;
  if (is_block4(s.kind)) {
    f.require(7, 9, 1, "A type");
    f.require(10, 12, 1, "B type");
    f.require(15, 16, 0, "transpose");
    f.require(31, 31, 0, "K dimension (1: K = 96, not modelled)");
    s.a = s.b = Element::kE2m1;
    s.k = 64;
  } else {
    f.require(31, 31, 0, "reserved field");
    s.a = element_of_f8f6f4(f, 7, "A type");
    s.b = element_of_f8f6f4(f, 10, "B type");
    s.k = 32;
  }
  if (s.scale_type == ScaleType::kUe4m3 && s.scales != 4)
    f.refuse("scale type (bit 23) is 0, UE4M3", "only kind::mxf4nvf4 with scale_vec::4X has it");
  for (uint32_t id : {s.sfa_id, s.sfb_id})
    if ((s.scales == 2 && id % 2 != 0) || (s.scales == 4 && id != 0))
      f.refuse(fmt::format("scale factor id {}", id),
               s.scales == 4 ? "must be 0 for scale_vec::4X" : "must be 0 or 2 for scale_vec::2X");
}

void check_shape(const Fields& f, const MmaShape& s) {
  const bool m_ok = s.ctas == 2 ? s.m == 128 || s.m == 256
                                : s.m == 128 || (s.m == 64 && !is_block_scaled(s.kind));
  if (!m_ok)
    f.refuse(fmt::format("M is {}", s.m), s.ctas == 2 ? "must be 128 or 256 with cta_group::2"
                                          : is_block_scaled(s.kind)
                                              ? "must be 128 with cta_group::1"
                                              : "must be 64 or 128 with cta_group::1");
  // Where the metadata of 64 rows a CTA lies, only figures of the manual show, and CuTe has no such
  // kernel.
  if (s.is_sparse() && s.m != 128 * s.ctas)
    f.refuse(fmt::format("M is {} with a sparse A", s.m),
             fmt::format("only {} is modelled with cta_group::{}", 128 * s.ctas, s.ctas));
  uint32_t step = 8 * s.ctas;
  const bool is_byte = s.kind == MmaKind::kF8f6f4 || s.kind == MmaKind::kMxf8f6f4;
  if ((is_byte && s.b_mn_major) ||
      (s.kind == MmaKind::kI8 && (s.ctas == 2 || s.n > 32 || s.b_mn_major)))
    step = 16 * s.ctas;
  if (s.n < step || s.n > 256 || s.n % step != 0)
    f.refuse(fmt::format("N is {}", s.n),
             fmt::format("must be a multiple of {} up to 256 here", step));
}

void check_weight_stationary_shape(const Fields& f, const MmaShape& s) {
  if (s.m != 32 && s.m != 64 && s.m != 128)
    f.refuse(fmt::format("M is {}", s.m), "must be 32, 64 or 128 with .ws");
  if (s.n != 64 && s.n != 128 && (s.n != 256 || s.is_sparse()))
    f.refuse(fmt::format("N is {}", s.n), s.is_sparse()
                                              ? "must be 64 or 128 with .ws and a sparse A"
                                              : "must be 64, 128 or 256 with .ws");
}

DLayout layout_of(const MmaShape& s, bool is_weight_stationary) {
  if (s.ctas == 2) return s.m == 128 ? DLayout::kSplit : DLayout::kFull;
  if (s.m == 32) return DLayout::kQuarters;
  if (s.m == 64) return is_weight_stationary ? DLayout::kSplit : DLayout::kHalf;
  return DLayout::kFull;
}

Sparsity sparsity_of(MmaKind kind) {
  if (kind == MmaKind::kTf32) return Sparsity::kOneOfTwo;
  return is_block4(kind) ? Sparsity::kFourOfEight : Sparsity::kTwoOfFour;
}

void check_transpose(const Fields& f, const MmaShape& s) {
  if ((s.a_mn_major && bits_of(s.a) < 8) || (s.b_mn_major && bits_of(s.b) < 8))
    f.refuse("transpose (bits 15-16) of an operand with 4 or 6 bits", "such operands are K-major");
}

}  // namespace

const char* name_of(MmaKind kind) {
  static constexpr const char* kNames[] = {"f16",      "tf32", "f8f6f4",  "i8",
                                           "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return kNames[static_cast<int>(kind)];
}

MmaShape decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t ctas, uint32_t scales,
                                       MmaVariant variant) {
  const Fields f(bits, kind);
  f.require_sparsity(variant.is_sparse);
  MmaShape s;
  s.kind = kind;
  s.ctas = ctas;
  s.scales = scales;
  if (variant.is_sparse) s.sparsity = sparsity_of(kind);
  s.negate_a = f.bit(13);
  s.negate_b = f.bit(14);
  s.a_mn_major = f.bit(15);
  s.b_mn_major = f.bit(16);
  s.n = f.get(17, 22) << 3;
  if (is_block_scaled(kind)) {
    decode_block_scaled(f, s);
  } else {
    decode_dense(f, s, variant.is_weight_stationary);
  }
  if (variant.is_sparse) s.k *= 2;
  if (variant.is_weight_stationary) {
    check_weight_stationary_shape(f, s);
  } else {
    check_shape(f, s);
  }
  if (kind != MmaKind::kI8) check_transpose(f, s);
  s.layout = layout_of(s, variant.is_weight_stationary);
  return s;
}

}  // namespace ptxsim
