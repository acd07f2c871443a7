// Sparse matrices A: metadata that PTX does not define, and statements that are refused. What
// sparse instructions compute is in the cases mma_sp_*, wgmma_sp_* and in tcgen05_sparse_test.cpp.
#include <gtest/gtest.h>

#include <string>

#include "small_kernel.hpp"
#include "unit/run_text.hpp"

namespace {

using ptxsim::test::decode_error;
using ptxsim::test::with_header;
using ptxsim_test::run_small;

const std::string kOrdered = "mma.sp::ordered_metadata.sync.aligned.";
const std::string kAnyOrder = "mma.sp.sync.aligned.";

// The message of a run with words `a` in A, 0 in C, and metadata `e` in all lanes; "" for none.
std::string run_error(const std::string& opcode, uint32_t a, uint32_t e) {
  const std::string body = "mov.b32 %r1, " + std::to_string(a) + ";\n  mov.b32 %r2, " +
                           std::to_string(e) + ";\n  mov.b32 %r3, 0;\n  " + opcode +
                           " {%r4, %r5, %r6, %r7}, {%r1, %r1}, {%r1, %r1}, {%r3, %r3, %r3, %r3}, "
                           "%r2, 0;";
  const ptxsim::RunResult result = run_small({.body = body});
  return result.error ? result.error->message : "";
}

constexpr uint32_t kOnes16 = 0x3c003c00;
constexpr uint32_t repeated(uint32_t four_bits) { return four_bits * 0x11111111u; }

TEST(SparseMetadata, EqualIndicesAreAnError) {
  const std::string opcode = kAnyOrder + "m16n8k16.row.col.f32.f16.f16.f32";
  for (const uint32_t bits : {0b0000u, 0b0101u, 0b1010u, 0b1111u})
    EXPECT_NE(run_error(opcode, kOnes16, repeated(bits)).find("of row 0 of A, columns 0 .. 3"),
              std::string::npos)
        << bits;
  for (uint32_t bits = 0; bits < 16; ++bits)
    EXPECT_EQ(run_error(opcode, kOnes16, repeated(bits)).empty(), (bits & 3) != bits >> 2) << bits;
}

TEST(SparseMetadata, OrderedIndicesRise) {
  const std::string opcode = kOrdered + "m16n8k16.row.col.f32.f16.f16.f32";
  for (uint32_t bits = 0; bits < 16; ++bits)
    EXPECT_EQ(run_error(opcode, kOnes16, repeated(bits)).empty(), (bits & 3) < bits >> 2) << bits;
}

TEST(SparseMetadata, OneOfTwo) {
  const std::string opcode = kAnyOrder + "m16n8k8.row.col.f32.tf32.tf32.f32";
  for (uint32_t bits = 0; bits < 16; ++bits)
    EXPECT_EQ(run_error(opcode, 0x3f800000, repeated(bits)).empty(),
              bits == 0b0100 || bits == 0b1110)
        << bits;
}

TEST(SparseMetadata, TheChunkIsNamed) {
  const uint32_t wrong = (repeated(0b0100) & ~0xf00u) | 0x500u;
  const std::string f16 = run_error(kOrdered + "m16n8k16.row.col.f32.f16.f16.f32", kOnes16, wrong);
  EXPECT_NE(f16.find("of row 0 of A, columns 8 .. 11: 0b0101; PTX does not define it"),
            std::string::npos)
      << f16;
  EXPECT_NE(run_error(kOrdered + "m16n8k64.row.col.s32.s4.s4.s32", 0x11111111, wrong)
                .find("of row 0 of A, columns 16 .. 23: 0b0101"),
            std::string::npos);
}

// What is stored beyond the last row of a matrix is 0, and so is often its metadata.
TEST(SparseMetadata, OfZerosDecidesNothing) {
  EXPECT_EQ(run_error(kOrdered + "m16n8k16.row.col.f32.f16.f16.f32", 0, 0), "");
  EXPECT_EQ(run_error(kOrdered + "m16n8k32.row.col.s32.s8.s8.s32", 0, 0), "");
}

struct Refused {
  std::string statement, message;
};

std::string error_of(const std::string& statement) {
  return decode_error(
      with_header(".visible .entry k() {\n  .reg .b16 %h<8>;\n  .reg .b32 %r<60>;\n  " + statement +
                      "\n  ret;\n}\n",
                  "sm_120a"));
}

TEST(SparseMma, RefusedStatements) {
  const std::string four =
      " {%r1, %r2, %r3, %r4}, {%r11, %r12, %r13, %r14}, {%r21, %r22, %r23, "
      "%r24}, {%r31, %r32, %r33, %r34}, ";
  const std::string two =
      " {%r1, %r2, %r3, %r4}, {%r11, %r12}, {%r21, %r22}, {%r31, %r32, %r33, %r34}, ";
  const std::string k32 = kOrdered + "m16n8k32.row.col.f32.f16.f16.f32";
  const Refused refused[] = {
      {k32 + four + "%r50, 2;", "selector must be an integer below 2"},
      {k32 + four + "%r50, %r51;", "selector must be an integer below 2"},
      {kOrdered + "m16n8k16.row.col.f32.f16.f16.f32" + two + "%r50, 4;", "below 4"},
      {kOrdered + "m16n8k64.row.col.s32.s8.s8.s32" + four + "%r50, 1;", "below 1"},
      {k32 + two + "%r50, 0;", "A has 2 registers; needs 4"},
      {k32 + four + "%r50;", "operands"},
      {kOrdered + "m16n8k64.row.col.f32.f16.f16.f32" + four + "%r50, 0;",
       "K = 64 is not known for these types"},
      {kOrdered + "m16n8k32.row.col.f32.e4m3.e4m3.f32" + two + "%r50, 0;",
       "K = 32 is not known for these types"},
      {kAnyOrder + "m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" + four + "%r50, 0;",
       "needs .sp::ordered_metadata"},
      {kOrdered + "m16n8k64.row.col.s32.s4.s8.s32" + two + "%r50, 0;", "A and B of .s4 or .u4"},
  };
  for (const Refused& r : refused)
    EXPECT_NE(error_of(r.statement).find(r.message), std::string::npos)
        << r.statement << "\n  gave: " << error_of(r.statement);
  EXPECT_EQ(error_of(k32 + four + "%r50, 1;"), "");
}

TEST(SparseWgmma, RefusedStatements) {
  const std::string four = " {%r1, %r2, %r3, %r4}, %rd1, %rd2, ";
  const std::string f16 = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16";
  const std::string s8 = "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8";
  const auto error = [](const std::string& statement) {
    return decode_error(
        with_header(".visible .entry k() {\n  .reg .b32 %r<60>;\n  .reg .b64 %rd<4>;\n  " +
                        statement + "\n  ret;\n}\n",
                    "sm_90a"));
  };
  const Refused refused[] = {
      {f16 + four + "%r50, 2, 1, 1, 1, 0, 0;", "selector must be an integer below 2"},
      {s8 + four + "%r50, 1, 1;", "selector must be an integer below 1"},
      {f16 + four + "1, 1, 1, 0, 0;", "has 8 operands; must have 10"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.f16.f16" + four + "%r50, 0, 1, 1, 1, 0, 0;",
       "with K = 16 is not known"},
      {"wgmma.mma_async.sp.sync.aligned.m64n40k64.s32.s8.s8" + four + "%r50, 0, 1;",
       "this shape does not exist for 8-bit integers"},
  };
  for (const Refused& r : refused)
    EXPECT_NE(error(r.statement).find(r.message), std::string::npos)
        << r.statement << "\n  gave: " << error(r.statement);
  EXPECT_EQ(error(f16 + four + "%r50, 1, 1, 1, 1, 0, 0;"), "");
  EXPECT_EQ(error(s8 + four + "%r50, 0, 1;"), "");
}

}  // namespace
