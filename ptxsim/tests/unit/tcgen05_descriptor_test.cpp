// Matrix descriptors, instruction descriptors and the shapes of tcgen05.ld and st.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "machine/tensor_core/descriptor.hpp"
#include "machine/tensor_core/instruction_descriptor.hpp"
#include "machine/tensor_core/tmem_shapes.hpp"
#include "ptxsim/error.hpp"

namespace {

using namespace ptxsim;

constexpr uint64_t kConstant = uint64_t{1} << 46;

std::string fault_of(auto&& call) {
  try {
    call();
  } catch (const Fault& fault) {
    return fault.error().message;
  }
  return "";
}

TEST(SmemDescriptor, FieldsOfTcgen05) {
  const uint64_t bits =
      0x2345 | uint64_t{0x1001} << 16 | uint64_t{0x40} << 32 | kConstant | uint64_t{4} << 61;
  const SmemDescriptor d = decode_tcgen05_descriptor(bits, "a-desc");
  EXPECT_EQ(d.start, 0x23450u);
  EXPECT_EQ(d.leading_bytes, 0x10010u);
  EXPECT_EQ(d.stride_bytes, 1024u);
  EXPECT_EQ(d.swizzle, SmemSwizzle::k64B);
  const std::pair<unsigned, SmemSwizzle> modes[] = {{0, SmemSwizzle::kNone},
                                                    {1, SmemSwizzle::k128BAtom32B},
                                                    {2, SmemSwizzle::k128B},
                                                    {4, SmemSwizzle::k64B},
                                                    {6, SmemSwizzle::k32B}};
  for (const auto& [code, mode] : modes)
    EXPECT_EQ(decode_tcgen05_descriptor(kConstant | uint64_t{code} << 61, "d").swizzle, mode);
}

TEST(SmemDescriptor, FieldsOfWgmma) {
  const SmemSwizzle modes[] = {SmemSwizzle::kNone, SmemSwizzle::k128B, SmemSwizzle::k64B,
                               SmemSwizzle::k32B};
  for (unsigned code = 0; code < 4; ++code)
    EXPECT_EQ(decode_wgmma_descriptor(uint64_t{code} << 62, "d").swizzle, modes[code]);
}

// Every bit that has no meaning, one at a time.
TEST(SmemDescriptor, RefusesBitsWithoutMeaning) {
  for (unsigned bit : {14u, 15u, 30u, 31u, 46u, 47u, 48u, 52u, 53u, 57u, 60u}) {
    const std::string message =
        fault_of([&] { decode_tcgen05_descriptor(kConstant ^ uint64_t{1} << bit, "b-desc"); });
    EXPECT_NE(message.find("b-desc 0x"), std::string::npos) << bit << ": " << message;
    EXPECT_NE(message.find("(R14)"), std::string::npos) << bit << ": " << message;
  }
  for (unsigned code : {3u, 5u, 7u})
    EXPECT_NE(fault_of([&] {
                decode_tcgen05_descriptor(kConstant | uint64_t{code} << 61, "a-desc");
              }).find("swizzle mode (bits 61-63) is " + std::to_string(code)),
              std::string::npos);
  for (unsigned bit : {14u, 30u, 46u, 48u, 52u, 61u})
    EXPECT_NE(
        fault_of([&] { decode_wgmma_descriptor(uint64_t{1} << bit, "a-desc"); }).find("(R14)"),
        std::string::npos)
        << bit;
}

// The base offset, bits 49-51, belongs to a swizzle pattern.
TEST(SmemDescriptor, BaseOffsetWithoutASwizzleIsIgnored) {
  for (unsigned bit : {49u, 50u, 51u}) {
    const uint64_t offset = uint64_t{1} << bit;
    EXPECT_EQ(decode_tcgen05_descriptor(kConstant | offset, "d").swizzle, SmemSwizzle::kNone);
    EXPECT_EQ(decode_wgmma_descriptor(offset, "d").swizzle, SmemSwizzle::kNone);
    for (uint64_t mode : {1, 2, 3})
      EXPECT_NE(fault_of([&] {
                  decode_wgmma_descriptor(offset | mode << 62, "b-desc");
                }).find("matrix base offset (bits 49-51)"),
                std::string::npos);
    for (uint64_t mode : {1, 2, 4, 6})
      EXPECT_NE(fault_of([&] {
                  decode_tcgen05_descriptor(kConstant | offset | mode << 61, "b-desc");
                }).find("matrix base offset (bits 49-51)"),
                std::string::npos);
  }
}

TEST(SmemDescriptor, StepMustLieInARow) {
  const SmemDescriptor d{.start = 1024 + 112, .stride_bytes = 1024, .swizzle = SmemSwizzle::k128B};
  EXPECT_NE(fault_of([&] { require_step_in_row(d, 32, "a-desc"); }).find("byte 112"),
            std::string::npos);
  EXPECT_EQ(fault_of([&] { require_step_in_row(d, 16, "a-desc"); }), "");
}

// As a bank-conflict-free layout: the 16-byte chunk c of row r of a 1024-byte atom is at column
// c XOR r (of 8); for narrower spans, XOR with r / 2 and r / 4.
TEST(SmemDescriptor, SwizzleOfOneAtom) {
  const std::pair<SmemSwizzle, unsigned> modes[] = {
      {SmemSwizzle::k128B, 8}, {SmemSwizzle::k64B, 4}, {SmemSwizzle::k32B, 2}};
  for (const auto& [mode, chunks] : modes) {
    const SmemDescriptor d{.start = 2048, .stride_bytes = 128 * chunks, .swizzle = mode};
    for (uint32_t row = 0; row < 16; ++row)
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const uint32_t phase = row % 8 * chunks / 8;
        EXPECT_EQ(k_major_chunk(d, row, chunk), 2048 + row * 16 * chunks + 16 * (chunk ^ phase))
            << row << " " << chunk;
      }
  }
}

// Different elements have different bytes, and the footprint holds just those.
TEST(SmemDescriptor, FootprintsAreExact) {
  for (const SmemSwizzle mode : {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B,
                                 SmemSwizzle::k128B, SmemSwizzle::k128BAtom32B}) {
    const uint32_t span = swizzle_span(mode);
    const SmemDescriptor d{
        .start = 4096, .leading_bytes = 128 * 16, .stride_bytes = 8 * span, .swizzle = mode};
    std::set<uint32_t> chunks;
    for (uint32_t row = 0; row < 128; ++row)
      for (uint32_t chunk = 0; chunk < 2; ++chunk) chunks.insert(k_major_chunk(d, row, chunk));
    EXPECT_EQ(chunks.size(), 256u);
    uint32_t total = 0, last = 0;
    for (const ByteRange& range : k_major_footprint(d, 128, 32)) {
      EXPECT_GT(range.offset, last);
      last = range.offset + range.bytes;
      total += range.bytes;
      for (uint32_t at = range.offset; at < last; at += 16) EXPECT_EQ(chunks.count(at), 1u);
    }
    EXPECT_EQ(total, 4096u);
  }
  const SmemDescriptor mn{
      .start = 0, .leading_bytes = 2048, .stride_bytes = 1024, .swizzle = SmemSwizzle::k128B};
  const auto ranges = mn_major_footprint(mn, 256, 16);  // 128 rows of 16 bits
  ASSERT_EQ(ranges.size(), 1u) << "densely stacked atoms";
  EXPECT_EQ(ranges[0], (ByteRange{0, 4096}));
}

constexpr uint32_t kNvf4 = 1u << 7 | 1u << 10 | 16u << 17 | 1u << 27;  // M = 128, N = 128

TEST(InstructionDescriptor, Nvf4) {
  const MmaShape s = decode_instruction_descriptor(kNvf4, MmaKind::kMxf4nvf4, 1, 4);
  EXPECT_EQ(s.m, 128u);
  EXPECT_EQ(s.n, 128u);
  EXPECT_EQ(s.k, 64u);
  EXPECT_EQ(s.scale_type, ScaleType::kUe4m3);
  EXPECT_EQ(s.layout, DLayout::kFull);
  EXPECT_EQ(s.sfa_columns(), 4u);
  EXPECT_EQ(s.sfb_columns(), 4u);
}

TEST(InstructionDescriptor, ReservedBitsOfNvf4) {
  for (unsigned bit :
       {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u, 9u, 11u, 12u, 15u, 16u, 24u, 25u, 26u, 29u, 30u, 31u})
    EXPECT_NE(fault_of([&] {
                decode_instruction_descriptor(kNvf4 ^ 1u << bit, MmaKind::kMxf4nvf4, 1, 4);
              }).find("(R14)"),
              std::string::npos)
        << "bit " << bit;
}

TEST(InstructionDescriptor, ShapesThatAreNot) {
  auto decode = [](MmaKind kind, uint32_t m, uint32_t n, uint32_t ctas) {
    const uint32_t type = kind == MmaKind::kTf32 ? 2 : kind >= MmaKind::kMxf4 ? 1 : 0;
    const uint32_t d = kind == MmaKind::kI8 ? 2 : 1;
    const uint32_t bits = n >> 3 << 17 | type << 7 | type << 10 |
                          (is_block_scaled(kind) ? m >> 7 << 27 | 1u << 23 : m >> 4 << 24 | d << 4);
    const uint32_t scales = !is_block_scaled(kind) ? 0 : kind == MmaKind::kMxf8f6f4 ? 1 : 2;
    return fault_of([&] { decode_instruction_descriptor(bits, kind, ctas, scales); });
  };
  for (const MmaKind kind : {MmaKind::kF16, MmaKind::kTf32, MmaKind::kF8f6f4, MmaKind::kMxf8f6f4,
                             MmaKind::kMxf4, MmaKind::kMxf4nvf4}) {
    for (uint32_t n = 8; n <= 256; n += 8) EXPECT_EQ(decode(kind, 128, n, 1), "") << n;
    for (uint32_t n = 8; n <= 256; n += 8)
      EXPECT_EQ(decode(kind, 256, n, 2).empty(), n % 16 == 0) << n;
    EXPECT_NE(decode(kind, 128, 0, 1), "");
    EXPECT_NE(decode(kind, 128, 264, 1), "");
    EXPECT_NE(decode(kind, 256, 64, 1), "");
    EXPECT_EQ(decode(kind, 128, 64, 2), "");
    if (!is_block_scaled(kind)) {
      EXPECT_EQ(decode(kind, 64, 64, 1), "");
      EXPECT_NE(decode(kind, 64, 64, 2), "");
      EXPECT_NE(decode(kind, 32, 64, 1), "");
    }
  }
  for (uint32_t n = 8; n <= 256; n += 8)
    EXPECT_EQ(decode(MmaKind::kI8, 128, n, 1).empty(), n <= 32 || n % 16 == 0) << n;
}

// PTX ISA: bytes of a row and of its 32-bit cells; each (thread, register) has its own cell, and
// all cells of lanes x columns are reached.
TEST(MoveShapes, CoverTheirCellsOnce) {
  struct Shape {
    MoveShape shape;
    uint32_t lanes, columns, registers;
  };
  for (const Shape& s :
       {Shape{MoveShape::k32x32b, 32, 1, 1}, Shape{MoveShape::k16x64b, 16, 2, 1},
        Shape{MoveShape::k16x128b, 16, 4, 2}, Shape{MoveShape::k16x256b, 16, 8, 4}}) {
    for (uint32_t num = 1; s.registers * num <= 128; num *= 2) {
      EXPECT_EQ(registers_of(s.shape, num), s.registers * num);
      EXPECT_EQ(columns_of(s.shape, num), s.columns * num);
      std::set<std::pair<uint32_t, uint32_t>> cells;
      for (uint32_t t = 0; t < 32; ++t)
        for (uint32_t j = 0; j < s.registers * num; ++j) {
          const CellOffset cell = cell_of(s.shape, t, j);
          EXPECT_LT(cell.lane, s.lanes);
          EXPECT_LT(cell.column, s.columns * num);
          cells.insert({cell.lane, cell.column});
        }
      EXPECT_EQ(cells.size(), size_t{s.lanes} * s.columns * num);
    }
  }
}

// The layouts of CuTe's copy traits for one repetition, as offsets in bits of a 16 x width matrix:
// thread strides and register strides written as CuTe has them.
TEST(MoveShapes, AreThoseOfCute) {
  // 16dp64b: threads ((2,2,8)):((8 rows),(1 cell),(1 row)).
  for (uint32_t t = 0; t < 32; ++t) {
    const CellOffset c64 = cell_of(MoveShape::k16x64b, t, 0);
    EXPECT_EQ(c64.lane, t % 2 * 8 + t / 4);
    EXPECT_EQ(c64.column, t / 2 % 2);
    // 16dp128b: threads (4,8):(1 cell,1 row), registers 2: 8 rows.
    for (uint32_t j = 0; j < 2; ++j) {
      const CellOffset c128 = cell_of(MoveShape::k16x128b, t, j);
      EXPECT_EQ(c128.lane, t / 4 + 8 * j);
      EXPECT_EQ(c128.column, t % 4);
    }
    // 16dp256b: threads (4,8):(2 cells,1 row), registers (2,2):(1 cell,8 rows), as an accumulator
    // fragment of mma.m16n8.
    for (uint32_t j = 0; j < 4; ++j) {
      const CellOffset c256 = cell_of(MoveShape::k16x256b, t, j);
      EXPECT_EQ(c256.lane, t / 4 + 8 * (j / 2));
      EXPECT_EQ(c256.column, 2 * (t % 4) + j % 2);
    }
  }
}

}  // namespace
