// Tensor loads of random boxes against the definition, in every schedule; counters; refused
// statements.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "machine/tensor_map/tensor_map.hpp"
#include "run_text.hpp"

namespace ptxsim {
namespace {

using test::decode_error;
using test::run_text;
using test::with_header;

constexpr uint32_t kTileBytes = 16384;
constexpr uint32_t kBefore = 0xabababab;

// Loads one box of `rank` dimensions to tile + skip and writes the tile out.
std::string load_kernel(uint32_t rank) {
  std::string text =
      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, "
      ".param .u32 skip";
  for (uint32_t i = 0; i < rank; ++i) text += ", .param .s32 c" + std::to_string(i);
  text +=
      ") {\n.reg .pred %p<3>; .reg .b32 %r<24>; .reg .b64 %rd<6>;\n"
      ".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar; ld.param.u32 %r3, [bytes];\n"
      "ld.param.u32 %r4, [skip]; mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0;\n"
      "ld.param.u64 %rd1, [out]; setp.eq.u32 %p0, %r0, 0; add.u32 %r5, %r1, %r4;\n";
  std::string coordinates;
  for (uint32_t i = 0; i < rank; ++i) {
    const std::string reg = "%r" + std::to_string(10 + i);
    text += "ld.param.s32 " + reg + ", [c" + std::to_string(i) + "];\n";
    coordinates += (i == 0 ? "" : ", ") + reg;
  }
  return with_header(
      text +
      "mov.u32 %r6, %r0;\nFILL: shl.b32 %r7, %r6, 2; add.u32 %r8, %r1, %r7;\n"
      "st.shared.u32 [%r8], 0xabababab; add.u32 %r6, %r6, 32; setp.lt.u32 %p1, %r6, 4096; @%p1 bra "
      "FILL;\n"
      "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r3;\n@%p0 cp.async.bulk.tensor." +
      std::to_string(rank) +
      "d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r5], [%rd0, {" + coordinates +
      "}], [%r2];\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;\n"
      "mov.u32 %r6, %r0;\nCOPY: shl.b32 %r7, %r6, 2; add.u32 %r8, %r1, %r7; ld.shared.u32 %r9, "
      "[%r8];\n"
      "cvt.u64.u32 %rd2, %r7; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r9;\n"
      "add.u32 %r6, %r6, 32; setp.lt.u32 %p1, %r6, 4096; @%p1 bra COPY;\nret;\n}\n");
}

struct Scene {
  TensorMap map;
  std::array<int32_t, 5> at{};
  uint32_t skip = 0;
  std::vector<std::byte> in;
  std::vector<uint32_t> expected;
  uint32_t counted = 0;
};

// Chunks of 16 bytes: where chunk c of line l stands, from the tables of "Swizzling Modes".
uint32_t swizzled(TensorMapSwizzle swizzle, uint32_t address) {
  const uint32_t line = address / 128, chunk = address % 128 / 16;
  uint32_t to = chunk;
  if (swizzle == TensorMapSwizzle::k32) to = chunk ^ line % 2;
  if (swizzle == TensorMapSwizzle::k64) to = chunk ^ line % 4;
  if (swizzle == TensorMapSwizzle::k128) to = chunk ^ line % 8;
  return line * 128 + to * 16 + address % 16;
}

void expect_box(Scene& s) {
  std::vector<unsigned char> tile(kTileBytes, kBefore & 0xff);
  const uint32_t size = element_bits(s.map.type) / 8;
  const uint32_t row_bytes = s.map.box[0] * size;
  const uint32_t pitch = std::max(row_bytes, swizzle_span_bytes(s.map.swizzle));
  uint32_t row = 0;
  std::array<uint32_t, 5> i{};
  for (i[4] = 0; i[4] < s.map.box[4]; ++i[4])
    for (i[3] = 0; i[3] < s.map.box[3]; ++i[3])
      for (i[2] = 0; i[2] < s.map.box[2]; ++i[2])
        for (i[1] = 0; i[1] < s.map.box[1]; ++i[1], ++row)
          for (uint32_t b = 0; b < row_bytes; ++b) {
            i[0] = b / size;
            bool inside = true;
            uint64_t offset = b % size;
            for (uint32_t d = 0; d < 5; ++d) {
              const int64_t at = int64_t{s.at[d]} + i[d];
              inside = inside && at >= 0 && at < static_cast<int64_t>(s.map.extents[d]);
              offset += static_cast<uint64_t>(at) * (d == 0 ? size : s.map.stride_bytes[d - 1]);
            }
            tile[swizzled(s.map.swizzle, s.skip + row * pitch + b)] =
                inside ? static_cast<unsigned char>(s.in[offset]) : 0;
          }
  s.counted = row * row_bytes;
  s.expected.resize(kTileBytes / 4);
  std::memcpy(s.expected.data(), tile.data(), kTileBytes);
}

Scene random_scene(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random() % n); };
  static constexpr TensorMapType kTypes[] = {TensorMapType::kU8, TensorMapType::kBf16,
                                             TensorMapType::kF32, TensorMapType::kF64};
  Scene s;
  s.map.type = kTypes[below(4)];
  s.map.rank = 1 + below(5);
  s.map.swizzle = static_cast<TensorMapSwizzle>(below(4));
  s.map.address = test::kInAddress;
  const uint32_t per_16 = 128 / element_bits(s.map.type);
  const uint32_t span = std::max(swizzle_span_bytes(s.map.swizzle), 32u);
  s.map.box[0] = per_16 * (1 + below(span / 16));
  s.map.extents[0] = 1 + below(3 * s.map.box[0]);
  s.at[0] = static_cast<int32_t>(per_16 * below(8)) - static_cast<int32_t>(3 * per_16);
  uint64_t stride = (s.map.extents[0] * element_bits(s.map.type) / 8 + 31) / 16 * 16;
  for (uint32_t i = 1; i < s.map.rank; ++i) {
    s.map.extents[i] = 1 + below(5);
    s.map.box[i] = 1 + below(3);
    s.map.stride_bytes[i - 1] = stride;
    stride *= s.map.extents[i];
    s.at[i] = static_cast<int32_t>(below(6)) - 2;
  }
  s.skip = 128 * below(9);
  s.in.resize(stride);
  for (std::byte& b : s.in) b = static_cast<std::byte>(random());
  expect_box(s);
  return s;
}

TEST(TensorLoad, RandomBoxesAreWhatTheDefinitionSaysInEverySchedule) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Scene s = random_scene(seed);
    auto record = encode_tensor_map(s.map);
    ASSERT_TRUE(record.ok()) << "seed " << seed << ": " << record.error().message;
    Launch launch;
    launch.block = {32, 1, 1};
    test::append_param(launch.params, *record);
    test::append_param(launch.params, test::kOutAddress);
    test::append_param(launch.params, s.counted);
    test::append_param(launch.params, s.skip);
    for (uint32_t i = 0; i < s.map.rank; ++i) test::append_param(launch.params, s.at[i]);
    for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
      Options options;
      options.schedule = schedule;
      options.seed = seed;
      const auto run = run_text(load_kernel(s.map.rank), launch, s.in, kTileBytes / 4, options);
      ASSERT_FALSE(run.result.error) << "seed " << seed << ": " << to_string(*run.result.error);
      ASSERT_TRUE(run.result.clean()) << to_string(run.result.reports.list[0]);
      for (size_t i = 0; i < s.expected.size(); ++i)
        ASSERT_EQ(run.out[i], s.expected[i]) << "seed " << seed << " word " << i;
      EXPECT_EQ(run.result.stats.tma_load_bytes, s.counted);
      EXPECT_EQ(run.result.stats.async_operations, 1u);
      EXPECT_LE(run.result.stats.l2_read_bytes, s.counted);
    }
  }
}

// A wrong count of expected bytes is a deadlock in every schedule, never a pass.
TEST(TensorLoad, TooManyExpectedBytesNeverComplete) {
  const Scene s = random_scene(3);
  auto record = encode_tensor_map(s.map);
  ASSERT_TRUE(record.ok());
  Launch launch;
  launch.block = {32, 1, 1};
  test::append_param(launch.params, *record);
  test::append_param(launch.params, test::kOutAddress);
  test::append_param(launch.params, s.counted + 16);
  test::append_param(launch.params, s.skip);
  for (uint32_t i = 0; i < s.map.rank; ++i) test::append_param(launch.params, s.at[i]);
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    Options options;
    options.schedule = schedule;
    const auto run = run_text(load_kernel(s.map.rank), launch, s.in, kTileBytes / 4, options);
    ASSERT_TRUE(run.result.error);
    EXPECT_EQ(run.result.error->kind, ErrorKind::kDeadlock);
    EXPECT_NE(run.result.error->message.find("tx-count 16"), std::string::npos)
        << run.result.error->message;
  }
}

// A CTA may end before its store has read its source, as CUTLASS kernels do: the bytes arrive, with
// a warning (R8).
TEST(BulkStore, EndBeforeTheSourceIsReadIsAWarningInEverySchedule) {
  const std::string text = with_header(
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<2>; .reg .b64 %rd<2>; .shared .align 16 "
      ".b8 a[16];\n"
      "ld.param.u64 %rd0, [out]; mov.u32 %r0, a; st.shared.v4.u32 [%r0], {1, 2, 3, 4};\n"
      "fence.proxy.async.shared::cta;\ncp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], "
      "16;\n"
      "cp.async.bulk.commit_group;\nret;\n}\n");
  Launch launch;
  test::append_param(launch.params, test::kOutAddress);
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    Options options;
    options.schedule = schedule;
    const auto run = run_text(text, launch, {}, 4, options);
    ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
    EXPECT_EQ(run.out, (std::vector<uint32_t>{1, 2, 3, 4}));
    EXPECT_TRUE(run.result.clean());
    ASSERT_EQ(run.result.reports.list.size(), 1u);
    EXPECT_EQ(run.result.reports.list[0].rule, 8);
    EXPECT_EQ(run.result.reports.list[0].severity, Severity::kWarning);
    EXPECT_EQ(run.result.stats.tma_store_bytes, 16u);
  }
}

// wait_group.read 0 lets the source be overwritten, in every schedule; what is stored is what was
// there.
TEST(BulkStore, SourceCanBeOverwrittenOnceRead) {
  const std::string text = with_header(
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<1>; "
      ".shared .align 16 .b8 a[16];\nld.param.u64 %rd0, [out]; mov.u32 %r0, a; mov.u32 %r1, 0;\n"
      "AGAIN: st.shared.v4.u32 [%r0], {%r1, %r1, %r1, %r1};\nfence.proxy.async.shared::cta;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], "
      "16;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group.read 0;\nadd.u32 %r1, %r1, 1; add.s64 %rd0, %rd0, 16;\n"
      "setp.lt.u32 %p0, %r1, 20; @%p0 bra AGAIN;\ncp.async.bulk.wait_group 0;\nret;\n}\n");
  Launch launch;
  test::append_param(launch.params, test::kOutAddress);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Options options;
    options.schedule = seed == 1   ? Schedule::kEager
                       : seed == 2 ? Schedule::kLazy
                                   : Schedule::kRandom;
    options.seed = seed;
    const auto run = run_text(text, launch, {}, 80, options);
    ASSERT_FALSE(run.result.error) << "seed " << seed << ": " << to_string(*run.result.error);
    EXPECT_TRUE(run.result.reports.list.empty()) << to_string(run.result.reports.list[0]);
    for (uint32_t i = 0; i < 80; ++i) ASSERT_EQ(run.out[i], i / 4) << "seed " << seed;
  }
}

struct Refused {
  const char* statement;
  const char* message;
};

TEST(Copies, StatementsThatAreNotLegalAreRefused) {
  const std::vector<Refused> refused = {
      {"cp.async.ca.shared.global [%r0], [%rd0], 12;", "cp.async of 12 bytes; must be 4, 8 or 16"},
      {"cp.async.cg.shared.global [%r0], [%rd0], 8;", "must be 16 with .cg"},
      {"cp.async.shared.global [%r0], [%rd0], 16;", "needs .ca or .cg"},
      {"cp.async.ca.shared::cluster.global [%r0], [%rd0], 16;", "needs .shared.global"},
      {"cp.async.wait_group %r0;", "needs an integer constant"},
      {"cp.async.bulk.commit_group.read;", "modifier .read is not known"},
      {"cp.async.mbarrier.arrive.shared::cluster.b64 [%r0];", "takes .shared::cta only"},
      {"cp.ca.shared.global [%r0], [%rd0], 16;", "cp without .async"},
      {"cp.async.bulk.shared::cluster.global [%r0], [%rd0], 16, [%r1];",
       "needs a completion mechanism"},
      {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%r0], "
       "[%rd0], 16, [%r1], %rs0;",
       "needs a destination in .shared::cluster"},
      {"cp.async.bulk.global.shared::cluster.bulk_group [%rd0], [%r0], 16;",
       "goes from .shared::cta to .global"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd0], [%r0], 16;",
       "needs .noftz"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd0], [%r0], 16;",
       "does not exist"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%rd0], [%r0], 16;",
       "does not exist"},
      {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64 "
       "[%r0], [%r2], 16, [%r1];",
       "does not exist for a destination in shared memory"},
      {"cp.async.bulk.tensor.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0, {0}], "
       "[%r1];",
       "needs its dimension"},
      {"cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0, "
       "{0}], [%r1];",
       "needs [map, {2 coordinates}]"},
      {"cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r0], "
       "[%rd0, {0, 0, 0, 0}], [%r1], {%rs0};",
       "needs a vector of 2 behind the mbarrier or the map"},
      {"cp.async.bulk.tensor.2d.global.shared::cta.tile::gather4.bulk_group [%rd0, {0, 0, 0, 0, "
       "0}], [%r0];",
       "gather4"},
      {"cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.invented [%r0], "
       "[%rd0, {0}], [%r1];",
       "modifier .invented is not known"},
      {"tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r0], 4;",
       "at most 3 is modelled"},
      {"tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r0], %r1;", "must be an immediate"},
      {"tensormap.replace.tile.global_address.shared::cta.b1024.b32 [%r0], %r1;",
       "needs the type .b64"},
      {"clusterlaunchcontrol.try_cancel.async.b128 [%r0], [%r1];", "try_cancel needs"},
  };
  for (const Refused& r : refused) {
    const std::string message = decode_error(with_header(
        std::string(
            ".visible .entry k() {\n.reg .pred %p<2>; .reg .b16 %rs<2>; .reg .b32 %r<4>; .reg .b64 "
            "%rd<4>;\n") +
        r.statement + "\nret;\n}\n"));
    EXPECT_NE(message.find(r.message), std::string::npos) << r.statement << ": '" << message << "'";
  }
}

}  // namespace
}  // namespace ptxsim
