// Kernels that are not valid: one line with the position, exit code 2.
#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

class BadPtx : public Program, public testing::WithParamInterface<BadText> {};

TEST_P(BadPtx, IsRefused) {
  const BadText& bad = GetParam();
  write("k.ptx", replaced(kKernel, bad.from, bad.to));
  expect_refused(run(), bad.position, bad.reason);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BadPtx,
    testing::Values(
        BadText{"NoSemicolon", "mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x", "k.ptx:11:3",
                "expected ';' after an instruction"},
        BadText{"NoVersion", ".version 8.7\n", "", "k.ptx:1:1", "expected '.version'"},
        BadText{"OldVersion", ".version 8.7", ".version 6.4", "k.ptx:1:10",
                "PTX version 6.4 is not supported: 7.0 to 9.x are"},
        BadText{"FutureVersion", ".version 8.7", ".version 10.0", "k.ptx:1:10",
                "PTX version 10.0 is not supported"},
        BadText{"UnknownTarget", "sm_90a", "sm_75", "k.ptx:2:9", "target 'sm_75' is not supported"},
        BadText{"AddressSize", ".address_size 64", ".address_size 32", "k.ptx:3:15",
                "address size 32 is not supported"},
        BadText{"UnknownInstruction", "mul.wide.u32", "frobnicate.u32", "k.ptx:11",
                "unknown instruction 'frobnicate' in 'frobnicate.u32 %rd3, %r1, 4;'"},
        BadText{"UnknownModifier", "ld.global.u32", "ld.global.sideways.u32", "k.ptx:13",
                "modifier .sideways is not known for ld"},
        BadText{"UndeclaredRegister", "%r2, %r2;", "%r2, %r9;", "k.ptx:14:21", "'%r9'"},
        BadText{"UnknownLabel", "  ret;", "  bra nowhere;", "k.ptx:17:7", "'nowhere'"},
        BadText{"WrongWidth", "ld.global.u32 %r2", "ld.global.u64 %r2", "k.ptx:13",
                "register %r2 has 4 bytes; the instruction's type has 8"},
        BadText{"ByteThatIsNoText", "  ret;", "  \x01 ret;", "k.ptx:17:3", "byte 0x01"},
        BadText{"CommentWithoutEnd", "  ret;", "  /* ret;", "k.ptx:17:3", "comment without an end"},
        BadText{"NoClosingBrace", "  ret;\n}\n", "  ret;\n", "k.ptx:18:1", "the end of the text"},
        BadText{"TooMuchShared", ".reg .b32 %r<4>;", ".reg .b32 %r<4>; .shared .b8 tile[300000];",
                "k.ptx:4",
                "300000 bytes of static and 0 of dynamic shared memory; at most 232448 together"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
