// cvt.rs.f16x2 where the manual leaves the random bits' use open. What it says is in the cases
// cvt_rs_*.
#include <gtest/gtest.h>

#include <string>

#include "small_kernel.hpp"

namespace {

using ptxsim_test::run_small;

std::string error_of(const std::string& modifiers, const std::string& value) {
  const ptxsim::RunResult result =
      run_small({.body = "mov.b32 %r1, " + value + ";\n  mov.b32 %r2, 0;\n  cvt.rs" + modifiers +
                         ".f16x2.f32 %r3, %r1, %r2, %r0;"});
  return result.error ? result.error->message : "";
}

TEST(CvtStochastic, OpenToTheManualIsRefused) {
  for (const char* inexact : {"0x387fffff", "0x33000000", "0x00000001", "0xb3800001"})
    EXPECT_NE(error_of("", inexact).find("below 2^-14 the manual does not say"), std::string::npos)
        << inexact;
  for (const char* exact : {"0x38800001", "0x387fc000", "0x33800000", "0x00000000", "0x80000000"})
    EXPECT_EQ(error_of("", exact), "") << exact;
  EXPECT_NE(error_of("", "0x47800000").find("from 2^16 on the manual does not say"),
            std::string::npos);
  EXPECT_EQ(error_of("", "0x477fffff"), "");
  EXPECT_EQ(error_of(".satfinite", "0x47800000"), "");
  EXPECT_EQ(error_of("", "0x7f800000"), "");
}

}  // namespace
