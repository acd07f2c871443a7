// What comes from unwritten memory: an error where something depends on it, and nowhere else.
#include <gtest/gtest.h>

#include <string>

#include "unit/small_kernel.hpp"

namespace {

using ptxsim_test::run_small;

// %r1: 4 bytes of shared memory of which the first is 7 and the others are unwritten.
const std::string kPartly =
    "mov.u32 %r2, 7;\n st.shared.u8 [tile], %r2;\n ld.shared.u32 %r1, [tile];\n";

std::string error_of(const std::string& body) {
  const ptxsim::RunResult result = run_small({body});
  return result.error ? to_string(*result.error) : "";
}

TEST(Undefined, CopiesAreNoError) {
  EXPECT_EQ(error_of("ld.shared.v2.u32 {%r1, %r2}, [tile];"), "");
  EXPECT_EQ(error_of(kPartly + "st.shared.u32 [tile+8], %r1;\n st.global.u32 [%rd1], %r1;"), "");
}

TEST(Undefined, WhatIsKnownOfAValueStaysKnown) {
  for (const char* taken :
       {"and.b32 %r2, %r1, 255;", "shl.b32 %r2, %r1, 24;", "bfe.u32 %r2, %r1, 0, 8;",
        "prmt.b32 %r2, %r1, %r0, 0x4440;", "cvt.u32.u8 %r2, %r1;"}) {
    SCOPED_TRACE(taken);
    EXPECT_EQ(error_of(kPartly + taken +
                       "\n st.shared.u32 [tile+16], %r2;\n ld.shared.u32 %r3, [tile+16];\n" +
                       "setp.eq.u32 %p1, %r3, 3;\n @%p1 trap;"),
              "");
  }
}

TEST(Undefined, NotChosenIsNoError) {
  EXPECT_EQ(
      error_of("ld.shared.u32 %r1, [tile];\n setp.lt.u32 %p1, %r1, 5;\n setp.gt.u32 %p2, %r0, 99;\n"
               "and.pred %p3, %p1, %p2;\n @%p3 trap;\n selp.u32 %r2, %r1, 1, %p2;\n"
               "@%p1 mov.u32 %r3, 4;\n st.global.u32 [%rd1], %r2;"),
      "");
}

TEST(Undefined, LanesThatAreNotReadAreNoError) {
  // Lane 0 has a word, and all lanes get it.
  EXPECT_EQ(
      error_of(
          "setp.eq.u32 %p1, %r0, 0;\n @%p1 st.shared.u32 [tile], 3;\n bar.warp.sync 0xffffffff;\n"
          "mov.u32 %r1, tile;\n @!%p1 add.u32 %r1, %r1, 4;\n ld.shared.u32 %r2, [%r1];\n"
          "shfl.sync.idx.b32 %r3, %r2, 0, 31, 0xffffffff;\n st.global.u32 [%rd1], %r3;"),
      "");
}

// Unwritten rows of A: those rows of the product are undefined, and no others.
const std::string kProduct =
    "setp.lt.u32 %p1, %r0, 4;\n mul.lo.u32 %r1, %r0, 4;\n mov.u32 %r2, tile;\n add.u32 %r1, %r1, "
    "%r2;\n"
    "@%p1 st.shared.u32 [%r1], 0;\n bar.warp.sync 0xffffffff;\n and.b32 %r3, %r0, 1;\n mul.lo.u32 "
    "%r3, %r3, 16;\n"
    "add.u32 %r3, %r3, %r2;\n ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];\n mov.u32 "
    "%r5, 0;\n"
    "mov.f32 %f1, 0f00000000;\n mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, "
    "%f5}, {%r4, %r5},"
    " {%r5}, {%f1, %f1, %f1, %f1};\n shr.u32 %r6, %r0, 2;\n and.b32 %r6, %r6, 1;\n setp.eq.u32 "
    "%p2, %r6, 0;\n";

TEST(Undefined, RowsOfAProductAreApart) {
  EXPECT_EQ(error_of(kProduct + "@%p2 st.global.f32 [%rd1], %f2;\n st.global.f32 [%rd1], %f4;"),
            "");
  const std::string error = error_of(kProduct + "@!%p2 st.global.f32 [%rd1], %f2;");
  EXPECT_NE(error.find("uses the result of a read of 16 bytes at shared address"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("lane 4: '@!%p2 st.global"), std::string::npos) << error;
}

struct Use {
  const char* name;
  const char* body;
};

TEST(Undefined, Uses) {
  for (const Use& use :
       {Use{"branch", "setp.eq.u32 %p1, %r1, 9;\n @%p1 bra END;\n END:"},
        Use{"address", "ld.shared.u32 %r2, [%r1];"},
        Use{"address of a store", "st.shared.u32 [%r1], %r0;"},
        Use{"guard of a store", "setp.eq.u32 %p1, %r1, 9;\n @%p1 st.global.u32 [%rd1], %r0;"},
        Use{"result", "add.u32 %r2, %r1, 1;\n st.global.u32 [%rd1], %r2;"},
        Use{"of another lane",
            "shfl.sync.idx.b32 %r2, %r1, 5, 31, 0xffffffff;\n st.global.u32 [%rd1], %r2;"},
        Use{"through memory",
            "st.shared.u32 [tile+8], %r1;\n ld.shared.u32 %r2, [tile+8];\n"
            "st.global.u32 [%rd1], %r2;"},
        Use{"guard of a mov",
            "setp.eq.u32 %p1, %r1, 9;\n mov.u32 %r2, 3;\n"
            "@%p1 mov.u32 %r2, 4;\n st.global.u32 [%rd1], %r2;"},
        Use{"metadata of a sparse matrix",
            "mov.b32 %r2, 0x3c003c00;\n mov.b32 %r3, 0;\n"
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r4, %r5, %r6, %r7}, {%r2, "
            "%r2}, "
            "{%r2, %r2}, {%r3, %r3, %r3, %r3}, %r1, 0;"},
        Use{"atomic", "red.global.add.u32 [%rd1], %r1;"}}) {
    SCOPED_TRACE(use.name);
    const std::string error = error_of("ld.shared.u32 %r1, [tile+4];\n" + std::string(use.body));
    EXPECT_NE(error.find("uses the result of a read of 4 bytes at shared address"),
              std::string::npos)
        << error;
  }
}

TEST(Undefined, AtomicsWhoseOldValueIsNotUsedAreNoError) {
  for (const char* body :
       {"atom.shared.exch.b32 %r1, [tile], %r0;\n bar.warp.sync 0xffffffff;\n ld.shared.u32 %r2, "
        "[tile];\n"
        "st.global.u32 [%rd1], %r2;",
        "atom.shared.add.u32 %r1, [tile], 1;", "red.shared.add.u32 [tile], 1;",
        "atom.shared.cas.b32 %r1, [tile], 1, 2;", "red.shared.min.u32 [tile], 5;",
        "mov.u32 %r2, 0;\n atom.shared.and.b32 %r1, [tile], %r2;\n ld.shared.u32 %r2, [tile];\n"
        "st.global.u32 [%rd1], %r2;",
        "atom.shared.max.u32 %r1, [tile], 0xffffffff;\n ld.shared.u32 %r2, [tile];\n"
        "st.global.u32 [%rd1], %r2;",
        "atom.global.exch.b32 %r1, [%rd2+4], %r0;\n ld.global.u32 %r2, [%rd2+4];\n"
        "st.global.u32 [%rd1], %r2;",
        "red.shared.add.u32 [tile], 1;\n st.shared.u32 [tile], 3;\n ld.shared.u32 %r1, [tile];\n"
        "st.global.u32 [%rd1], %r1;"})
    EXPECT_EQ(error_of(body), "") << body;
}

TEST(Undefined, AtomicsWhoseOldValueIsUsedAreErrors) {
  for (const char* body :
       {"atom.shared.exch.b32 %r1, [tile], %r0;\n st.global.u32 [%rd1], %r1;",
        "atom.shared.add.u32 %r1, [tile], 1;\n setp.eq.u32 %p1, %r1, 9;\n @%p1 bra END;\n END:",
        "red.shared.add.u32 [tile], 1;\n ld.shared.u32 %r1, [tile];\n st.global.u32 [%rd1], %r1;",
        "atom.shared.cas.b32 %r1, [tile], 1, 2;\n ld.shared.u32 %r2, [tile];\n"
        "st.global.u32 [%rd1], %r2;",
        "red.global.add.u32 [%rd2+4], 1;"})
    EXPECT_NE(error_of(body).find("read of 4 bytes at"), std::string::npos)
        << body << ": " << error_of(body);
}

TEST(Undefined, TheErrorNamesBothStatements) {
  const std::string error = error_of("ld.global.u32 %r1, [%rd2+4];\n st.global.u32 [%rd1], %r1;");
  EXPECT_NE(error.find("uses the result of a global read of 4 bytes"), std::string::npos) << error;
  EXPECT_NE(error.find("'ld.global.u32 %r1, [%rd2+4];' at small.ptx:"), std::string::npos) << error;
  EXPECT_NE(error.find("'st.global.u32 [%rd1], %r1;'"), std::string::npos) << error;
}

TEST(Undefined, OverwrittenRegistersAreKnown) {
  EXPECT_EQ(error_of("ld.shared.u32 %r1, [tile];\n mov.u32 %r1, 4;\n st.global.u32 [%rd1], %r1;"),
            "");
}

}  // namespace
