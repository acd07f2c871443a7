// One tcgen05.mma of any kind, shape, layout and sparsity, and what it must leave in tensor memory.
// Values are small integers (or powers of two apart), so sums are exact and every cell has one
// right value, D or not. A sparse A is multiplied as the dense matrix that it stands for.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tcgen05_operands.hpp"

namespace tcgen05_test {

using ptxsim::Format;

struct Kind {
  const char* name;
  const char* scale_vec;  // "" without block scaling
  Format format;
  unsigned bits;       // of an element
  unsigned type_code;  // in the instruction descriptor
  unsigned k;          // of a dense A, and what a sparse one stores
};
inline const Kind kF16{"f16", "", Format::kF16, 16, 0, 16};
inline const Kind kBf16{"f16", "", Format::kBf16, 16, 1, 16};
inline const Kind kTf32{"tf32", "", Format::kTf32, 32, 2, 8};
inline const Kind kE4m3{"f8f6f4", "", Format::kE4m3, 8, 0, 32};
inline const Kind kE5m2{"f8f6f4", "", Format::kE5m2, 8, 1, 32};
inline const Kind kE2m3{"f8f6f4", "", Format::kE2m3, 6, 3, 32};
inline const Kind kE3m2{"f8f6f4", "", Format::kE3m2, 6, 4, 32};
inline const Kind kE2m1{"f8f6f4", "", Format::kE2m1, 4, 5, 32};
inline const Kind kMxE4m3{"mxf8f6f4", ".scale_vec::1X", Format::kE4m3, 8, 0, 32};
inline const Kind kMxE2m1{"mxf8f6f4", ".block32", Format::kE2m1, 4, 5, 32};
inline const Kind kMxf4{"mxf4", ".scale_vec::2X", Format::kE2m1, 4, 1, 64};
inline const Kind kNvf4{"mxf4nvf4", ".scale_vec::4X", Format::kE2m1, 4, 1, 64};
inline const Kind kNvf4Block16{"mxf4nvf4", ".block16", Format::kE2m1, 4, 1, 64};

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
  bool sparse = false;
  unsigned selector = 0;
  bool ws = false;
  bool own_a = false;  // A and metadata differ in the lanes of each part of D
};

constexpr uint32_t kStartB = 0x8000, kSharedBytes = 0x10000;
constexpr uint32_t kColumnD = 32, kColumnA = 320, kColumnSfa = 352, kColumnSfb = 362,
                   kColumnMetadata = 380;

// One instruction on every cell of tensor memory.
class Mma : public testing::TestWithParam<Case> {
 protected:
  const Case& c = GetParam();
  std::mt19937_64 random{0x1234};
  unsigned k = c.sparse ? 2 * c.kind.k : c.kind.k;  // c.kind.k elements of a row of A are stored
  // What the lanes of a part of D multiply: different where each has an A of its own.
  std::vector<Matrix> a;
  std::vector<std::vector<uint32_t>> stored;  // codes of a[part]
  std::vector<SparseRows> metadata;
  Matrix b{random, c.n, k, c.kind.format};
  unsigned rows = c.m / c.ctas;
  bool is_scaled = c.kind.scale_vec[0] != 0;
  bool is_packed = std::string(c.kind.name).starts_with("mxf4");
  unsigned scales = !is_scaled ? 0 : std::string(c.kind.name) == "mxf4nvf4" ? 4 : is_packed ? 2 : 1;
  std::vector<std::vector<double>> scale_a, scale_b;  // [row][block]
  Kernel kernel;

  bool is_split() const { return c.ctas == 2 && c.m == 128; }
  unsigned parts() const {  // of N, in different lanes
    return is_split() || (c.ws && c.m == 64) ? 2 : c.ws && c.m == 32 ? 4 : 1;
  }
  unsigned lane_of(unsigned row, unsigned n) const {  // row within the CTA
    if (c.m == 64 && !c.ws) return 32 * (row / 16) + row % 16 + c.lane;
    return row + kLanes / parts() * (n / (c.n / parts()));
  }
  unsigned column_of(unsigned n) const { return kColumnD + n % (c.n / parts()); }
  // Parts of D that have an A of their own.
  unsigned own_parts() const { return c.own_a ? parts() : 1; }
  unsigned own_part(unsigned n) const { return c.own_a ? n / (c.n / parts()) : 0; }

  Placement place_a() const {
    return {0, c.swizzle, rows, c.kind.k, c.kind.bits, c.a_mn_major, c.k_offset_bytes};
  }
  Placement place_b() const {
    return {kStartB, c.swizzle, c.n / c.ctas, k, c.kind.bits, c.b_mn_major, c.k_offset_bytes};
  }

  void make_a() {
    for (unsigned part = 0; part < own_parts(); ++part) {
      a.emplace_back(random, c.m, k, c.kind.format);
      stored.emplace_back();
      if (c.sparse)
        metadata.emplace_back(random, a.back(), stored.back(),
                              is_packed           ? 4u
                              : c.kind.bits == 32 ? 32u
                                                  : 16u);
      else
        stored.back() = a.back().codes;
    }
  }
  uint32_t stored_code(unsigned part, unsigned row, unsigned index) const {
    return stored[part][size_t{row} * c.kind.k + index];
  }

  void fill_operands() {
    make_a();
    kernel.shared.assign(c.ctas, std::vector<uint8_t>(kSharedBytes, 0xa5));
    for (unsigned row = 0; row < c.m; ++row)
      for (unsigned i = 0; i < c.kind.k; ++i) {
        if (c.a_in_tmem) {
          put_tmem_a(row, i);
        } else {
          put_bits(kernel.shared[row / rows], place_a().bit_of(row % rows, i, is_packed),
                   c.kind.bits, stored_code(0, row, i));
        }
      }
    if (c.sparse) put_metadata();
    const unsigned rows_b = c.n / c.ctas;
    for (unsigned n = 0; n < c.n; ++n)
      for (unsigned i = 0; i < k; ++i)
        put_bits(kernel.shared[n / rows_b], place_b().bit_of(n % rows_b, i, is_packed), c.kind.bits,
                 b.code(n, i));
  }

  // In the lanes of every part of D.
  void put_tmem_a(unsigned row, unsigned index) {
    const unsigned container = is_packed || c.kind.bits >= 8 ? c.kind.bits : 8;
    const unsigned bit = index * container;
    const uint32_t mask = container == 32 ? 0xffffffffu : (1u << container) - 1;
    for (unsigned part = 0; part < parts(); ++part) {
      uint32_t code = stored_code(c.own_a ? part : 0, row, index);
      if (container == 8 && c.kind.bits == 4) code <<= 2;
      const unsigned lane = lane_of(row % rows, part * (c.n / parts()));
      uint32_t& word = cell(kernel.tensor[row / rows], lane, kColumnA + bit / 32);
      word = (word & ~(mask << bit % 32)) | code << bit % 32;
    }
  }

  // CuTe's tmem_e_frg: the atom's strides give a place of 128 lanes and, every 128, the next bit
  // (two bits for tf32; two elements a bit for packed ones).
  uint64_t place_of_metadata(unsigned row, unsigned index) const {
    if (c.kind.bits == 32)
      return row % 8 + row / 8 % 2 * 1024 + row / 16 * 16 + index % 8 * 128 + index / 8 * 8;
    if (c.kind.bits == 16)
      return row % 8 + row / 8 % 2 * 2048 + row / 16 * 16 + index % 16 * 128 + index / 16 * 8;
    return row + uint64_t{index} * 128;
  }

  void put_metadata() {
    const unsigned chunk = metadata[0].chunk;
    for (unsigned part = 0; part < parts(); ++part) {
      const SparseRows& rows_of_a = metadata[c.own_a ? part : 0];
      for (unsigned row = 0; row < c.m; ++row)
        for (unsigned i = 0; i < k / chunk; ++i) {
          const uint64_t place = place_of_metadata(row % rows, i * chunk);
          uint64_t bit = place / kLanes;
          if (c.kind.bits == 32) bit *= 2;
          if (is_packed) bit /= 2;
          const uint64_t lane = place % kLanes + part * (kLanes / parts());
          uint32_t& word = cell(kernel.tensor[row / rows], static_cast<uint32_t>(lane),
                                static_cast<uint32_t>(kColumnMetadata + c.selector + bit / 32));
          const uint32_t four = rows_of_a.fours[size_t{row} * (k / chunk) + i];
          word = (word & ~(15u << bit % 32)) | four << bit % 32;
        }
    }
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
    uint32_t bits = (c.sparse ? 4 | c.selector : 0) | (c.n >> 3) << 17 |
                    (c.negate_a ? 1u << 13 : 0) | (c.negate_b ? 1u << 14 : 0) |
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
        at("%x5", kColumnMetadata) + set64("%d0", place_a().bits64()) +
        set64("%d1", place_b().bits64());
    s += "  setp.ne.u32 %q0, %x4, 0;\n  tcgen05.mma" + std::string(c.ws ? ".ws" : "") +
         (c.sparse ? ".sp" : "") + ".cta_group::" + std::to_string(c.ctas) +
         ".kind::" + c.kind.name + (is_scaled ? ".block_scale" : "") + c.kind.scale_vec +
         " [%x0], " + (c.a_in_tmem ? "[%x1]" : "%d0") + ", %d1, " + (c.sparse ? "[%x5], " : "") +
         "%x4, " + (is_scaled ? "[%x2], [%x3], " : "") + (c.accumulate ? "%q0" : "!%q0") +
         (c.input_shift != 0 ? ", " + std::to_string(c.input_shift) : "") + ";\n";
  }

  double product(unsigned row, unsigned n) const {
    double sum = 0;
    for (unsigned i = 0; i < k; ++i) {
      double term = a[own_part(n)].at(row, i) * b.at(n, i);
      if (is_scaled) {
        const unsigned block = i * scales / k;
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

  void check() {
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
};

inline std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

}  // namespace tcgen05_test
