// tcgen05.ld, st and cp in kernels, under every schedule.
#include <gtest/gtest.h>

#include "tcgen05_kernel.hpp"

namespace {

using namespace tcgen05_test;

// Each cell says where it is.
uint32_t name_of_cell(uint32_t lane, uint32_t column) { return lane << 16 | column | 0x8000; }
Tmem named_cells() {
  Tmem tmem(size_t{kLanes} * kColumns);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t column = 0; column < kColumns; ++column)
      cell(tmem, lane, column) = name_of_cell(lane, column);
  return tmem;
}

struct Move {
  const char* shape;
  uint32_t num;
  uint32_t registers;  // of one repetition
  uint32_t lane;       // in the quarter
  bool halves;
  uint32_t split;
};

// Register j of thread t of a warp whose lanes start at `first`: PTX ISA's figures as formulas.
std::pair<uint32_t, uint32_t> place(const Move& m, uint32_t t, uint32_t j) {
  const std::string shape = m.shape;
  if (shape == "32x32b") return {t, j};
  if (shape == "16x32bx2") return {t % 16, j};
  if (shape == "16x64b") return {t / 4 + t % 2 * 8, j * 2 + t % 4 / 2};
  if (shape == "16x128b") return {t / 4 + j % 2 * 8, j / 2 * 4 + t % 4};
  return {t / 4 + j / 2 % 2 * 8, j / 4 * 8 + t % 4 * 2 + j % 2};
}

class MoveShape : public testing::TestWithParam<Move> {
 protected:
  const Move& m = GetParam();
  uint32_t count = m.num * m.registers;
  std::string opcode(const char* direction) const {
    return std::string("tcgen05.") + direction + ".sync.aligned." + m.shape + ".x" +
           std::to_string(m.num) +
           (!m.halves                        ? ""
            : std::string(direction) == "ld" ? ".pack::16b"
                                             : ".unpack::16b") +
           ".b32 ";
  }
  std::string split() const {
    return std::string(m.shape) == "16x32bx2" ? ", " + std::to_string(m.split) : "";
  }
  // %r500 = address of the warp's lanes, from column 64.
  std::string address() const { return "  add.u32 %r500, %t3, " + hex(m.lane << 16 | 64) + ";\n"; }
  uint32_t column(uint32_t t, uint32_t j, uint32_t half) const {
    const uint32_t in_shape = place(m, t, j).second;
    return 64 + (m.halves ? 2 * in_shape + half : in_shape) +
           (std::string(m.shape) == "16x32bx2" ? t / 16 * m.split : 0);
  }
};

TEST_P(MoveShape, LoadReadsItsCells) {
  Kernel kernel;
  kernel.tensor = {named_cells()};
  kernel.all = address() + "  " + opcode("ld") + registers("r", static_cast<int>(count)) +
               ", [%r500]" + split() + ";\n  tcgen05.wait::ld.sync.aligned;\n";
  for (uint32_t j = 0; j < count; ++j)
    kernel.all +=
        "  st.global.b32 [%out2+" + std::to_string(4 * j) + "], %r" + std::to_string(j) + ";\n";
  const Result result = run_clean(kernel);
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t j = 0; j < count; ++j) {
      const uint32_t t = thread % 32;
      const uint32_t lane = thread / 32 * 32 + m.lane + place(m, t, j).first;
      uint32_t want = name_of_cell(lane, column(t, j, 0));
      if (m.halves) want = (want & 0xffff) | name_of_cell(lane, column(t, j, 1)) << 16;
      ASSERT_EQ(result.second[size_t{thread} * 512 + j], want) << "thread " << thread << " r" << j;
    }
}

TEST_P(MoveShape, StoreWritesItsCells) {
  Kernel kernel;
  kernel.tensor = {named_cells()};
  kernel.all = address();
  for (uint32_t j = 0; j < count; ++j)  // thread * 2^20 + j * 2^4 + 3
    kernel.all += "  mad.lo.u32 %r" + std::to_string(j) + ", %t0, 0x100000, " +
                  std::to_string(16 * j + 3) + ";\n";
  kernel.all += "  " + opcode("st") + "[%r500]" + split() + ", " +
                registers("r", static_cast<int>(count)) + ";\n";
  // What a store takes from a register it takes when it is issued.
  kernel.all += "  mov.b32 %r0, 0;\n  tcgen05.wait::st.sync.aligned;\n  mov.u32 %r501, 0;\n";
  kernel.all += "BACK:\n  add.u32 %r502, %t3, %r501;\n  tcgen05.ld.sync.aligned.32x32b.x32.b32 " +
                registers("r", 32, 200) +
                ", [%r502];\n  tcgen05.wait::ld.sync.aligned;\n  mul.wide.u32 %a10, %r501, 4;\n"
                "  add.u64 %a10, %out2, %a10;\n";
  for (int i = 0; i < 32; ++i)
    kernel.all += "  st.global.b32 [%a10+" + std::to_string(4 * i) + "], %r" +
                  std::to_string(200 + i) + ";\n";
  kernel.all += "  add.u32 %r501, %r501, 32;\n  setp.lt.u32 %q0, %r501, 512;\n  @%q0 bra BACK;\n";
  const Result result = run_clean(kernel);
  Tmem want = named_cells();
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t j = 0; j < count; ++j) {
      const uint32_t t = thread % 32, value = thread << 20 | (16 * j + 3);
      const uint32_t lane = thread / 32 * 32 + m.lane + place(m, t, j).first;
      cell(want, lane, column(t, j, 0)) = m.halves ? value & 0xffff : value;
      if (m.halves) cell(want, lane, column(t, j, 1)) = value >> 16;
    }
  EXPECT_EQ(result.second, want);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MoveShape,
    testing::Values(Move{"32x32b", 1, 1, 0, false, 0}, Move{"32x32b", 128, 1, 0, false, 0},
                    Move{"32x32b", 16, 1, 0, true, 0}, Move{"16x64b", 1, 1, 16, false, 0},
                    Move{"16x64b", 64, 1, 0, false, 0}, Move{"16x64b", 8, 1, 16, true, 0},
                    Move{"16x128b", 1, 2, 0, false, 0}, Move{"16x128b", 32, 2, 16, false, 0},
                    Move{"16x128b", 4, 2, 0, true, 0}, Move{"16x256b", 1, 4, 0, false, 0},
                    Move{"16x256b", 2, 4, 16, false, 0}, Move{"16x256b", 32, 4, 0, false, 0},
                    Move{"16x256b", 8, 4, 0, true, 0}, Move{"16x32bx2", 1, 1, 0, false, 1},
                    Move{"16x32bx2", 32, 1, 16, false, 100}, Move{"16x32bx2", 2, 1, 0, true, 4}),
    [](const auto& info) {
      return std::string(info.param.shape) + "_x" + std::to_string(info.param.num) +
             (info.param.halves ? "_16b" : "") + "_lane" + std::to_string(info.param.lane);
    });

// All bytes of the source are different within each 256.
std::vector<uint8_t> counted_bytes(size_t size, unsigned seed) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<uint8_t>(i + 37 * (i / 256) + seed * 101);
  return bytes;
}

struct Copy {
  const char* name;
  const char* modifiers;
  uint32_t rows, row_bytes;
  uint32_t ctas = 1;
};

std::vector<uint32_t> lanes_of(const std::string& shape, uint32_t row) {
  if (shape.find("32x128b") != std::string::npos) return {row, row + 32, row + 64, row + 96};
  if (shape.find("02_13") != std::string::npos) return {row, row + 64};
  if (shape.find("01_23") != std::string::npos) {
    const uint32_t first = row < 32 ? row : row + 32;
    return {first, first + 32};
  }
  if (shape.find("4x256b") == 1) return {32 * row};
  return {row};
}

class CopyShape : public testing::TestWithParam<Copy> {};

// Without a swizzle: 8 rows of 16 bytes together, then the next 8; the second 16 bytes of each row
// lie 2048 + 16 bytes further.
TEST_P(CopyShape, WritesItsLanes) {
  const Copy& c = GetParam();
  Kernel kernel;
  kernel.ctas = c.ctas;
  kernel.shared.clear();
  kernel.tensor.assign(c.ctas, named_cells());
  for (uint32_t r = 0; r < c.ctas; ++r) kernel.shared.push_back(counted_bytes(8192, r));
  constexpr uint32_t kLeading = 2064, kColumn = 40;
  kernel.issue = at("%x0", kColumn) + set64("%d0", descriptor(256, kLeading, 128, 0)) +
                 "  tcgen05.cp.cta_group::" + std::to_string(c.ctas) + c.modifiers +
                 " [%x0], %d0;\n";
  const Result result = run_clean(kernel);
  for (uint32_t r = 0; r < c.ctas; ++r) {
    Tmem want = named_cells();
    for (uint32_t row = 0; row < c.rows; ++row)
      for (const uint32_t lane : lanes_of(c.modifiers, row))
        for (uint32_t byte = 0; byte < c.row_bytes; ++byte) {
          const uint32_t from = 256 + row * 16 + byte / 16 * kLeading + byte % 16;
          uint32_t& word = cell(want, lane, kColumn + byte / 4);
          word = (word & ~(0xffu << byte % 4 * 8)) | uint32_t{kernel.shared[r][from]}
                                                         << byte % 4 * 8;
        }
    EXPECT_EQ(result.tensor[r], want) << "CTA " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CopyShape,
                         testing::Values(Copy{"128x256b", ".128x256b", 128, 32},
                                         Copy{"4x256b", ".4x256b", 4, 32},
                                         Copy{"128x128b", ".128x128b", 128, 16},
                                         Copy{"64x128b_02_13", ".64x128b.warpx2::02_13", 64, 16},
                                         Copy{"64x128b_01_23", ".64x128b.warpx2::01_23", 64, 16},
                                         Copy{"32x128b", ".32x128b.warpx4", 32, 16},
                                         Copy{"32x128b_other_order", ".warpx4.32x128b", 32, 16},
                                         Copy{"32x128b_pair", ".32x128b.warpx4", 32, 16, 2}),
                         [](const auto& info) { return std::string(info.param.name); });

// 16 elements of 4 or 6 bits and padding become 16 bytes.
TEST(CopyFormat, Decompresses) {
  for (const unsigned bits : {4u, 6u}) {
    Kernel kernel;
    kernel.shared = {counted_bytes(4096, 3)};
    kernel.tensor = {named_cells()};
    kernel.issue = at("%x0", 0) + set64("%d0", descriptor(0, 0, 128, 0)) +
                   "  tcgen05.cp.cta_group::1.128x128b.b8x16" +
                   (bits == 4 ? ".b4x16_p64" : ".b6x16_p32") + " [%x0], %d0;\n";
    const Result result = run_clean(kernel);
    for (uint32_t row = 0; row < 128; ++row)
      for (uint32_t i = 0; i < 16; ++i) {
        uint32_t code = 0;
        for (unsigned b = 0; b < bits; ++b)
          code |= (kernel.shared[0][row * 16 + (i * bits + b) / 8] >> (i * bits + b) % 8 & 1u) << b;
        const uint32_t got = cell(result.tensor[0], row, i / 4) >> i % 4 * 8 & 0xff;
        ASSERT_EQ(got, bits == 4 ? code << 2 : code) << "row " << row << " element " << i;
      }
  }
}

}  // namespace
