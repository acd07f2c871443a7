// The block-scaled mma.sync alone, as src/cuda/ptx/mma_nvf4.cuh writes it: which lane's registers
// hold which codes, and whose scales count for each thread-id, against products that are computed
// here. support/nvf4_fragments.hpp has the places, tests/cutlass compares them with CuTe's. Scales
// of lanes that are not selected are NaN.
#include <fmt/format.h>

#include <cstring>
#include <span>

#include "dualgemm/formats.hpp"
#include "kernels/simulation/simulation.hpp"
#include "support/nvf4_fragments.hpp"

namespace dualgemm::test {
namespace {

constexpr int kRows = 16, kCols = 8, kK = 64, kBlocks = kK / 16;

// Codes and scales of both operands, [row of A or column of B].
struct Operands {
  uint8_t a[kRows][kK], b[kCols][kK];
  uint8_t sfa[kRows][kBlocks], sfb[kCols][kBlocks];
};

Operands random_operands(Rng& rng) {
  Operands o;
  const auto fill = [&](auto& codes, auto& scales) {
    for (auto& row : codes)
      for (uint8_t& code : row) code = static_cast<uint8_t>(rng.integer(0, 15));
    for (auto& row : scales)  // 1/4 .. 4 in quarters of an octave: sums are exact
      for (uint8_t& scale : row) scale = static_cast<uint8_t>(rng.integer(0x28, 0x48) & ~1);
  };
  fill(o.a, o.sfa);
  fill(o.b, o.sfb);
  return o;
}

float product(const Operands& o, int row, int col) {
  double sum = 0;
  for (int k = 0; k < kK; ++k) {
    sum += double{decode_e2m1(o.a[row][k])} * decode_e2m1(o.b[col][k]) *
           decode_scale(o.sfa[row][k / 16]) * decode_scale(o.sfb[col][k / 16]);
  }
  return static_cast<float>(sum);
}

uint32_t word_of_scales(const uint8_t (&scales)[kBlocks]) {
  uint32_t word = 0;
  for (int i = 0; i < kBlocks; ++i) word |= uint32_t{scales[i]} << (8 * i);
  return word;
}

// What each lane has, eight words: a[4], b[2], sfa, sfb.
std::vector<uint32_t> registers_of(const Operands& o, int pair_a, int lane_b) {
  constexpr uint32_t kNan = 0x7F7F7F7F;
  std::vector<uint32_t> all;
  for (int lane = 0; lane < 32; ++lane) {
    const auto add = [&](const auto& rows, int registers, Place (*place)(int, int, int)) {
      for (int j = 0; j < registers; ++j) {
        uint32_t word = 0;
        for (int i = 0; i < 8; ++i) {
          const Place at = place(lane, j, i);
          word |= uint32_t{rows[at.row][at.k]} << (4 * i);
        }
        all.push_back(word);
      }
    };
    add(o.a, 4, place_in_a);
    add(o.b, 2, place_in_b);
    const int in_quad = lane % 4;
    all.push_back(in_quad / 2 == pair_a ? word_of_scales(o.sfa[row_of_sfa(lane)]) : kNan);
    all.push_back(in_quad == lane_b ? word_of_scales(o.sfb[col_of_sfb(lane)]) : kNan);
  }
  return all;
}

std::string program_text(int pair_a, int lane_b) {
  return fmt::format(R"(.version 9.0
.target sm_120f
.address_size 64
.visible .entry fragments(.param .u64 in, .param .u64 out)
{{
  .reg .b32 %r<16>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r9, %tid.x;
  mul.wide.u32 %rd3, %r9, 32;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd4];
  ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd4+16];
  mov.f32 %f1, 0f00000000;
  mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
    {{%f2, %f3, %f4, %f5}}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {{%f1, %f1, %f1, %f1}},
    {{%r7}}, {{0, {}}}, {{%r8}}, {{0, {}}};
  mul.wide.u32 %rd5, %r9, 16;
  add.s64 %rd6, %rd2, %rd5;
  st.global.v4.f32 [%rd6], {{%f2, %f3, %f4, %f5}};
  ret;
}}
)",
                     pair_a, lane_b);
}

std::vector<float> run(const std::vector<uint32_t>& registers, int pair_a, int lane_b) {
  constexpr uint64_t kIn = uint64_t{1} << 40, kOut = uint64_t{1} << 41;
  std::vector<float> d(32 * 4);
  const auto program = decoded_entry(program_text(pair_a, lane_b), "fragments.ptx", "fragments");
  if (program == nullptr) return d;
  ptxsim::GlobalMemory memory;
  const auto bytes = std::as_bytes(std::span(registers));
  memory.add("in", kIn, {bytes.begin(), bytes.end()}, true, true);
  memory.add("out", kOut, std::vector<std::byte>(d.size() * sizeof(float)), false, false);
  ptxsim::Launch grid;
  grid.grid = {1, 1, 1};
  grid.block = {32, 1, 1};
  grid.params.resize(2 * sizeof(uint64_t));
  std::memcpy(grid.params.data(), &kIn, sizeof kIn);
  std::memcpy(grid.params.data() + sizeof kIn, &kOut, sizeof kOut);
  const ptxsim::RunResult result = ptxsim::run(program, grid, memory, {.strict = true});
  EXPECT_TRUE(result.clean());
  std::memcpy(d.data(), memory.find("out")->data.data(), d.size() * sizeof(float));
  return d;
}

TEST(Sm120aFragments, EveryThreadId) {
  Rng rng;
  for (int pair_a = 0; pair_a < 2; ++pair_a) {
    for (int lane_b = 0; lane_b < 4; ++lane_b) {
      SCOPED_TRACE(::testing::Message() << "thread-ids " << pair_a << " and " << lane_b);
      const Operands o = random_operands(rng);
      const std::vector<float> d = run(registers_of(o, pair_a, lane_b), pair_a, lane_b);
      for (int lane = 0; lane < 32; ++lane) {
        for (int j = 0; j < 4; ++j) {
          const int row = lane / 4 + 8 * (j / 2), col = 2 * (lane % 4) + j % 2;
          EXPECT_EQ(d[static_cast<size_t>(4 * lane + j)], product(o, row, col))
              << row << " " << col;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
