// tcgen05.mma from shared and tensor memory to tensor memory: kinds, operand layouts, places of D,
// pairs. Values are small integers (or powers of two apart), so sums are exact and every cell of
// tensor memory has one right value, D or not.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ptxsim/number/formats.hpp"
#include "tcgen05_kernel.hpp"

namespace {

using namespace tcgen05_test;
using ptxsim::Format;

struct Kind {
  const char* name;
  const char* scale_vec;  // "" without block scaling
  Format format;
  unsigned bits;       // of an element
  unsigned type_code;  // in the instruction descriptor
  unsigned k;
};
const Kind kF16{"f16", "", Format::kF16, 16, 0, 16};
const Kind kBf16{"f16", "", Format::kBf16, 16, 1, 16};
const Kind kTf32{"tf32", "", Format::kTf32, 32, 2, 8};
const Kind kE4m3{"f8f6f4", "", Format::kE4m3, 8, 0, 32};
const Kind kE5m2{"f8f6f4", "", Format::kE5m2, 8, 1, 32};
const Kind kE2m3{"f8f6f4", "", Format::kE2m3, 6, 3, 32};
const Kind kE3m2{"f8f6f4", "", Format::kE3m2, 6, 4, 32};
const Kind kE2m1{"f8f6f4", "", Format::kE2m1, 4, 5, 32};
const Kind kMxE4m3{"mxf8f6f4", ".scale_vec::1X", Format::kE4m3, 8, 0, 32};
const Kind kMxE2m1{"mxf8f6f4", ".block32", Format::kE2m1, 4, 5, 32};
const Kind kMxf4{"mxf4", ".scale_vec::2X", Format::kE2m1, 4, 1, 64};
const Kind kNvf4{"mxf4nvf4", ".scale_vec::4X", Format::kE2m1, 4, 1, 64};
const Kind kNvf4Block16{"mxf4nvf4", ".block16", Format::kE2m1, 4, 1, 64};

struct Case {
  const char* name;
  Kind kind;
  unsigned m = 128, n = 64, ctas = 1;
  unsigned swizzle = 2;  // descriptor code of both operands
  bool a_mn_major = false, b_mn_major = false;
  bool a_in_tmem = false;
  bool f16_d = false;
  bool accumulate = true;
  unsigned lane = 0;  // M = 64: 0 or 16
  unsigned sf_id = 0;
  bool ue4m3 = false;
  unsigned input_shift = 0;
  bool negate_a = false, negate_b = false;
  unsigned k_offset_bytes = 0;  // into the 128-byte rows of both operands
};

constexpr uint32_t kStartB = 0x8000, kSharedBytes = 0x10000;
constexpr uint32_t kColumnD = 32, kColumnA = 320, kColumnSfa = 352, kColumnSfb = 362;

unsigned span_of(unsigned swizzle) {
  return swizzle == 0 ? 16 : swizzle == 6 ? 32 : swizzle == 4 ? 64 : 128;
}

// Swizzle<B, M, S> of CuTe: bits M .. M+B-1 are exchanged with those S higher.
uint32_t cute_swizzle(uint32_t address, unsigned b, unsigned m, unsigned s) {
  const uint32_t bits = ((1u << b) - 1) << (m + s);
  return address ^ (address & bits) >> s;
}
uint32_t swizzle_bits(uint32_t address, unsigned code) {
  switch (code) {
    case 1:
      return cute_swizzle(address, 2, 5, 2);
    case 2:
      return cute_swizzle(address, 3, 4, 3);
    case 4:
      return cute_swizzle(address, 2, 4, 3);
    case 6:
      return cute_swizzle(address, 1, 4, 3);
    default:
      return address;
  }
}

// A matrix operand in shared memory: densely stacked atoms.
struct Placement {
  unsigned start, swizzle, rows, k, bits;
  bool mn_major;
  unsigned k_offset;

  unsigned stride() const {
    const unsigned span = span_of(swizzle);
    if (!mn_major) return 8 * span;
    return swizzle == 0 ? 128 : (swizzle == 1 ? 4 : 8) * span;
  }
  unsigned leading() const {
    const unsigned together = 128 / bits;
    if (!mn_major) return swizzle == 0 ? rows * 16 : 16;
    if (swizzle == 0) return 128 * (rows / together);
    return k * span_of(swizzle);
  }
  uint64_t bits64() const { return descriptor(start + k_offset, leading(), stride(), swizzle); }

  // Bit position of element (row, k_index), relative to the shared bytes, for 8 bits and more, and
  // for 4 and 6 bits K-major.
  uint64_t bit_of(unsigned row, unsigned k_index, bool packed) const {
    uint32_t byte, bit = 0;
    if (mn_major) {
      const unsigned together = 128 / bits, wide = span_of(swizzle) / 16;
      const unsigned lines = swizzle == 1 ? 4 : 8;
      const unsigned chunk = row / together;
      byte = row % together * bits / 8 + chunk % wide * 16 + k_index % lines * span_of(swizzle) +
             (swizzle == 0 ? chunk * stride() + k_index / lines * leading()
                           : chunk / wide * leading() + k_index / lines * stride());
    } else {
      // Sixteen elements of 4 or 6 bits take 16 bytes, except where two share a byte.
      const unsigned in_row = packed || bits >= 8 ? k_index * bits / 8 : k_index / 16 * 16;
      bit = packed || bits >= 8 ? k_index * bits % 8 : k_index % 16 * bits;
      byte = row % 8 * span_of(swizzle) + row / 8 * stride() + k_offset;
      byte += swizzle == 0 ? in_row / 16 * leading() + in_row % 16 : in_row;
    }
    const uint32_t absolute = kSmemBase + start + byte;
    // The swizzle moves 16-byte chunks; bits within one may run on from its first byte.
    return (uint64_t{tcgen05_swizzle(absolute)} - kSmemBase) * 8 + bit;
  }
  uint32_t tcgen05_swizzle(uint32_t address) const { return swizzle_bits(address, swizzle); }
};

void put_bits(std::vector<uint8_t>& bytes, uint64_t at, unsigned count, uint32_t code) {
  for (unsigned i = 0; i < count; ++i) {
    uint8_t& byte = bytes[(at + i) / 8];
    const auto mask = static_cast<uint8_t>(1u << (at + i) % 8);
    byte = static_cast<uint8_t>((code >> i & 1) != 0 ? byte | mask : byte & ~mask);
  }
}

struct Matrix {
  unsigned k;
  std::vector<uint32_t> codes;
  std::vector<double> values;
  Matrix(std::mt19937_64& random, unsigned rows, unsigned k_, Format format) : k(k_) {
    for (unsigned i = 0; i < rows * k; ++i) {
      const double value =
          format == Format::kE2m1
              ? ptxsim::decode_to_float(format, static_cast<uint32_t>(random() % 16))
              : static_cast<double>(static_cast<int>(random() % 9) - 4);
      codes.push_back(ptxsim::encode(format, value, ptxsim::Rounding::kNearestEven));
      values.push_back(value);
    }
  }
  double at(unsigned row, unsigned k_index) const { return values[size_t{row} * k + k_index]; }
  uint32_t code(unsigned row, unsigned k_index) const { return codes[size_t{row} * k + k_index]; }
};

class Mma : public testing::TestWithParam<Case> {
 protected:
  const Case& c = GetParam();
  std::mt19937_64 random{0x1234};
  Matrix a{random, c.m, c.kind.k, c.kind.format}, b{random, c.n, c.kind.k, c.kind.format};
  unsigned rows = c.m / c.ctas;
  bool is_scaled = c.kind.scale_vec[0] != 0;
  bool is_packed = std::string(c.kind.name).starts_with("mxf4");
  unsigned scales = !is_scaled ? 0 : std::string(c.kind.name) == "mxf4nvf4" ? 4 : is_packed ? 2 : 1;
  std::vector<std::vector<double>> scale_a, scale_b;  // [row][block]
  Kernel kernel;

  bool is_split() const { return c.ctas == 2 && c.m == 128; }
  unsigned d_columns() const { return is_split() ? c.n / 2 : c.n; }
  unsigned lane_of(unsigned row, unsigned n) const {  // row within the CTA
    if (c.m == 64) return 32 * (row / 16) + row % 16 + c.lane;
    return is_split() ? row + 64 * (n / (c.n / 2)) : row;
  }
  unsigned column_of(unsigned n) const { return kColumnD + (is_split() ? n % (c.n / 2) : n); }

  Placement place_a() const {
    return {0, c.swizzle, rows, c.kind.k, c.kind.bits, c.a_mn_major, c.k_offset_bytes};
  }
  Placement place_b() const {
    return {kStartB,     c.swizzle,    c.n / c.ctas,    c.kind.k,
            c.kind.bits, c.b_mn_major, c.k_offset_bytes};
  }

  void fill_operands() {
    kernel.shared.assign(c.ctas, std::vector<uint8_t>(kSharedBytes, 0xa5));
    for (unsigned row = 0; row < c.m; ++row)
      for (unsigned k = 0; k < c.kind.k; ++k) {
        if (c.a_in_tmem) {
          put_tmem_a(row, k);
        } else {
          put_bits(kernel.shared[row / rows], place_a().bit_of(row % rows, k, is_packed),
                   c.kind.bits, a.code(row, k));
        }
      }
    const unsigned rows_b = c.n / c.ctas;
    for (unsigned n = 0; n < c.n; ++n)
      for (unsigned k = 0; k < c.kind.k; ++k)
        put_bits(kernel.shared[n / rows_b], place_b().bit_of(n % rows_b, k, is_packed), c.kind.bits,
                 b.code(n, k));
  }

  void put_tmem_a(unsigned row, unsigned k) {
    const unsigned container = is_packed || c.kind.bits >= 8 ? c.kind.bits : 8;
    uint32_t code = a.code(row, k);
    if (container == 8 && c.kind.bits == 4) code <<= 2;
    const unsigned bit = k * container;
    uint32_t& word = cell(kernel.tensor[row / rows], lane_of(row % rows, 0), kColumnA + bit / 32);
    const uint32_t mask = container == 32 ? 0xffffffffu : (1u << container) - 1;
    word = (word & ~(mask << bit % 32)) | code << bit % 32;
  }

  uint8_t random_scale(double& value) {
    if (c.ue4m3) {
      const uint32_t code = 0x30 + static_cast<uint32_t>(random() % 16);  // 0.5 .. 1.875
      value = ptxsim::decode_to_float(Format::kE4m3, code);
      return static_cast<uint8_t>(code);
    }
    const int exponent = static_cast<int>(random() % 4) - 2;
    value = std::ldexp(1.0, exponent);
    return static_cast<uint8_t>(127 + exponent);
  }

  // Cells of a row's scales in every quarter; the second half of N of layout B in the upper two.
  void put_scales(Tmem& tmem, unsigned column, unsigned row, unsigned first_lane, unsigned quarters,
                  uint32_t word) {
    for (unsigned q = 0; q < quarters; ++q)
      cell(tmem, first_lane + row % 32 + 32 * q, column + row / 32) = word;
  }

  void fill_scales() {
    if (!is_scaled) return;
    auto word_of = [&](std::vector<double>& values) {
      auto word = static_cast<uint32_t>(random());
      values.resize(scales);
      for (unsigned i = 0; i < scales; ++i) {
        const unsigned shift = 8 * (c.sf_id + i);
        word = (word & ~(0xffu << shift)) | uint32_t{random_scale(values[i])} << shift;
      }
      return word;
    };
    scale_a.resize(c.m);
    scale_b.resize(c.n);
    for (unsigned row = 0; row < c.m; ++row)
      put_scales(kernel.tensor[row / rows], kColumnSfa, row % rows, 0, 4, word_of(scale_a[row]));
    for (unsigned n = 0; n < c.n; ++n) {
      const uint32_t word = word_of(scale_b[n]);
      const unsigned half = c.n / 2;
      for (Tmem& tmem : kernel.tensor) {
        if (is_split())
          put_scales(tmem, kColumnSfb, n % half, 64 * (n / half), 2, word);
        else
          put_scales(tmem, kColumnSfb, n, 0, 4, word);
      }
    }
  }

  void fill_tensor() {
    kernel.tensor.assign(c.ctas, Tmem(size_t{kLanes} * kColumns));
    for (Tmem& tmem : kernel.tensor)
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        for (uint32_t column = 0; column < kColumns; ++column) {
          const float value = static_cast<float>((lane * 7 + column * 3) % 33) - 16;
          cell(tmem, lane, column) =
              c.f16_d ? 0xabcd0000u | ptxsim::float_to_f16(value) : std::bit_cast<uint32_t>(value);
        }
  }

  uint32_t instruction() const {
    uint32_t bits = (c.n >> 3) << 17 | (c.negate_a ? 1u << 13 : 0) | (c.negate_b ? 1u << 14 : 0) |
                    (c.a_mn_major ? 1u << 15 : 0) | (c.b_mn_major ? 1u << 16 : 0) |
                    c.kind.type_code << 7 | c.kind.type_code << 10;
    if (is_scaled)
      return bits | (c.m >> 7) << 27 | (c.ue4m3 ? 0 : 1u << 23) | c.sf_id << 4 | c.sf_id << 29;
    return bits | (c.f16_d ? 0 : 1u << 4) | (c.m >> 4) << 24;
  }

  void write_issue() {
    std::string& s = kernel.issue;
    s = at("%x0", c.lane << 16 | kColumnD) + at("%x1", c.lane << 16 | kColumnA) +
        at("%x2", kColumnSfa) + at("%x3", kColumnSfb) + set32("%x4", instruction()) +
        set64("%d0", place_a().bits64()) + set64("%d1", place_b().bits64());
    s += "  setp.ne.u32 %q0, %x4, 0;\n  tcgen05.mma.cta_group::" + std::to_string(c.ctas) +
         ".kind::" + c.kind.name + (is_scaled ? ".block_scale" : "") + c.kind.scale_vec +
         " [%x0], " + (c.a_in_tmem ? "[%x1]" : "%d0") + ", %d1, %x4, " +
         (is_scaled ? "[%x2], [%x3], " : "") + (c.accumulate ? "%q0" : "!%q0") +
         (c.input_shift != 0 ? ", " + std::to_string(c.input_shift) : "") + ";\n";
  }

  double product(unsigned row, unsigned n) const {
    double sum = 0;
    for (unsigned k = 0; k < c.kind.k; ++k) {
      double term = a.at(row, k) * b.at(n, k);
      if (is_scaled) {
        const unsigned block = k * scales / c.kind.k;
        term *= scale_a[row][block] * scale_b[n][block];
      }
      sum += term;
    }
    return c.negate_a != c.negate_b ? -sum : sum;
  }

  std::vector<Tmem> expected() const {
    std::vector<Tmem> tensor = kernel.tensor;
    for (unsigned row = 0; row < c.m; ++row)
      for (unsigned n = 0; n < c.n; ++n) {
        uint32_t& d = cell(tensor[row / rows], lane_of(row % rows, n), column_of(n));
        const double input =
            c.f16_d ? ptxsim::f16_to_float(static_cast<uint16_t>(d)) : std::bit_cast<float>(d);
        const double sum =
            product(row, n) + (c.accumulate ? std::ldexp(input, -int(c.input_shift)) : 0.0);
        d = c.f16_d ? ptxsim::float_to_f16(static_cast<float>(sum))
                    : std::bit_cast<uint32_t>(static_cast<float>(sum));
      }
    return tensor;
  }
};

TEST_P(Mma, WritesDAndNothingElse) {
  kernel.ctas = c.ctas;
  fill_tensor();
  fill_operands();
  fill_scales();
  write_issue();
  const Result result = run_clean(kernel);
  const std::vector<Tmem> want = expected();
  for (unsigned r = 0; r < c.ctas; ++r)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t column = 0; column < kColumns; ++column)
        ASSERT_EQ(cell(result.tensor[r], lane, column), cell(want[r], lane, column))
            << "CTA " << r << " lane " << lane << " column " << column;
  EXPECT_EQ(result.run.stats.mma_instructions, 1u);
  EXPECT_EQ(result.run.stats.mma_multiply_adds, uint64_t{c.m} * c.n * c.kind.k);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Mma,
    testing::Values(Case{.name = "f16", .kind = kF16}, Case{.name = "bf16", .kind = kBf16},
                    Case{.name = "tf32", .kind = kTf32}, Case{.name = "e4m3", .kind = kE4m3},
                    Case{.name = "e5m2", .kind = kE5m2}, Case{.name = "e2m3", .kind = kE2m3},
                    Case{.name = "e3m2", .kind = kE3m2}, Case{.name = "e2m1", .kind = kE2m1},
                    Case{.name = "f16_no_input", .kind = kF16, .accumulate = false},
                    Case{.name = "f16_d_f16", .kind = kF16, .f16_d = true},
                    Case{.name = "e4m3_d_f16", .kind = kE4m3, .f16_d = true},
                    Case{.name = "negate", .kind = kF16, .negate_a = true},
                    Case{.name = "negate_both", .kind = kE4m3, .negate_a = true, .negate_b = true},
                    Case{.name = "scale_input", .kind = kF16, .input_shift = 3},
                    Case{.name = "mx_e4m3", .kind = kMxE4m3},
                    Case{.name = "mx_e4m3_id3", .kind = kMxE4m3, .sf_id = 3},
                    Case{.name = "mx_e2m1", .kind = kMxE2m1, .sf_id = 1},
                    Case{.name = "mxf4", .kind = kMxf4},
                    Case{.name = "mxf4_id2", .kind = kMxf4, .sf_id = 2},
                    Case{.name = "nvf4_ue8m0", .kind = kNvf4},
                    Case{.name = "nvf4", .kind = kNvf4, .ue4m3 = true},
                    Case{.name = "nvf4_n256", .kind = kNvf4Block16, .n = 256, .ue4m3 = true},
                    Case{.name = "nvf4_n8", .kind = kNvf4, .n = 8, .ue4m3 = true},
                    Case{.name = "nvf4_n200", .kind = kNvf4, .n = 200, .ue4m3 = true},
                    Case{.name = "nvf4_negate", .kind = kNvf4, .ue4m3 = true, .negate_b = true}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Layouts, Mma,
    testing::Values(
        Case{.name = "f16_none", .kind = kF16, .swizzle = 0},
        Case{.name = "f16_32", .kind = kF16, .swizzle = 6},
        Case{.name = "f16_64", .kind = kF16, .swizzle = 4},
        Case{.name = "f16_64_step", .kind = kF16, .swizzle = 4, .k_offset_bytes = 32},
        Case{.name = "f16_128_step", .kind = kF16, .k_offset_bytes = 96},
        Case{.name = "nvf4_none", .kind = kNvf4, .swizzle = 0, .ue4m3 = true},
        Case{.name = "nvf4_128_step", .kind = kNvf4, .ue4m3 = true, .k_offset_bytes = 32},
        Case{.name = "f16_a_mn", .kind = kF16, .a_mn_major = true},
        Case{.name = "f16_b_mn", .kind = kF16, .b_mn_major = true},
        Case{.name = "f16_mn_none",
             .kind = kF16,
             .swizzle = 0,
             .a_mn_major = true,
             .b_mn_major = true},
        Case{.name = "f16_mn_32",
             .kind = kF16,
             .swizzle = 6,
             .a_mn_major = true,
             .b_mn_major = true},
        Case{.name = "f16_mn_64",
             .kind = kF16,
             .swizzle = 4,
             .a_mn_major = true,
             .b_mn_major = true},
        Case{.name = "e4m3_mn", .kind = kE4m3, .n = 128, .a_mn_major = true, .b_mn_major = true},
        Case{.name = "mx_e4m3_mn",
             .kind = kMxE4m3,
             .n = 128,
             .a_mn_major = true,
             .b_mn_major = true},
        Case{
            .name = "tf32_mn", .kind = kTf32, .swizzle = 1, .a_mn_major = true, .b_mn_major = true},
        Case{.name = "f16_a_tmem", .kind = kF16, .a_in_tmem = true},
        Case{.name = "tf32_a_tmem", .kind = kTf32, .a_in_tmem = true},
        Case{.name = "e2m1_a_tmem", .kind = kE2m1, .a_in_tmem = true},
        Case{.name = "e3m2_a_tmem", .kind = kE3m2, .a_in_tmem = true},
        Case{.name = "nvf4_a_tmem", .kind = kNvf4, .a_in_tmem = true, .ue4m3 = true}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    PlacesOfD, Mma,
    testing::Values(
        Case{.name = "m64", .kind = kF16, .m = 64},
        Case{.name = "m64_lane16", .kind = kE4m3, .m = 64, .lane = 16},
        Case{.name = "m64_a_tmem", .kind = kF16, .m = 64, .a_in_tmem = true, .lane = 16},
        Case{.name = "m64_n24", .kind = kBf16, .m = 64, .n = 24},
        Case{.name = "pair_m256", .kind = kF16, .m = 256, .n = 128, .ctas = 2},
        Case{.name = "pair_m256_a_tmem",
             .kind = kF16,
             .m = 256,
             .n = 32,
             .ctas = 2,
             .a_in_tmem = true},
        Case{.name = "pair_m256_nvf4", .kind = kNvf4, .m = 256, .n = 256, .ctas = 2, .ue4m3 = true},
        Case{.name = "pair_m256_mx", .kind = kMxE4m3, .m = 256, .n = 64, .ctas = 2, .sf_id = 2},
        Case{.name = "pair_m128", .kind = kF16, .m = 128, .n = 64, .ctas = 2},
        Case{.name = "pair_m128_tf32", .kind = kTf32, .m = 128, .n = 16, .ctas = 2},
        Case{.name = "pair_m128_nvf4", .kind = kNvf4, .m = 128, .n = 128, .ctas = 2, .ue4m3 = true},
        Case{.name = "pair_m128_mn",
             .kind = kF16,
             .m = 128,
             .n = 128,
             .ctas = 2,
             .a_mn_major = true,
             .b_mn_major = true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
