// Runs of a part of a launch.
#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

const std::string kNames = R"(//! {"entry": "names", "grid": [64, 1, 1], "block": [32, 1, 1],
//!  "buffers": [{"name": "out", "type": "u32", "count": 64, "fill": 0, "expect": "0..63"}],
//!  "params": [{"buffer": "out"}]}
.version 8.7
.target sm_90a
.address_size 64
.visible .entry names(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  .reg .pred %p;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p ret;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)";

using Sample = Program;

TEST_F(Sample, ClustersAreSpreadEvenly) {
  write("names.ptx", kNames);
  EXPECT_EQ(start({"run", "names.ptx"}).exit_code, 0);
  const Outcome some = start({"run", "names.ptx", "--sample", "4", "--dump", "out=out.bin"});
  EXPECT_EQ(some.exit_code, 0) << some;
  EXPECT_TRUE(contains(some.out, "60 clusters were left out (--sample 4); no result was compared"))
      << some;
  const std::string bytes = read("out.bin");
  ASSERT_EQ(bytes.size(), 256u);
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(static_cast<unsigned char>(bytes[4 * i]), i % 16 == 0 ? i : 0) << i;
}

// A launch that is whole reads what one that is not has left.
TEST_F(Sample, OneOfSeveralLaunches) {
  std::string several = kNames;
  several.replace(
      several.find("//! {"), several.find(".version"),
      R"(//! {"buffers": [{"name": "out", "type": "u32", "count": 64, "fill": 0, "expect": "0..63"}],
//!  "launches": [{"entry": "names", "grid": [64], "block": [32], "params": [{"buffer": "out"}]},
//!               {"entry": "names", "grid": [2], "block": [32], "params": [{"buffer": "out"}]}]}
)");
  write("several.ptx", several);
  EXPECT_EQ(start({"run", "several.ptx"}).exit_code, 0);
  const Outcome some = start({"run", "several.ptx", "--sample", "4"});
  EXPECT_EQ(some.exit_code, 0) << some;
  EXPECT_TRUE(contains(some.out, "60 clusters were left out")) << some;
}

TEST_F(Sample, MoreThanThereAreIsAll) {
  write("names.ptx", kNames);
  const Outcome all = start({"run", "names.ptx", "--sample", "100"});
  EXPECT_EQ(all.exit_code, 0) << all;
  EXPECT_FALSE(contains(all.out, "left out")) << all;
  EXPECT_EQ(start({"run", "names.ptx", "--sample", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace ptxsim_test
