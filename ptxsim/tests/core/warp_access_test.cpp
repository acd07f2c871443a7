// Accesses that a warp makes at once: what observers hear of its lanes, and what is known to be
// written.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "machine/execution.hpp"
#include "machine/memory/addresses.hpp"
#include "ptxsim/ptxsim.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kIn = 0x10'0000'0000, kOut = 0x20'0000'0000;

// Lanes whose bit of the parameter is set read a word each, the last one's first, and hand it on
// through shared memory.
constexpr const char* kKernel = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 lanes) {
  .reg .b32 %lane, %bit, %lanes, %back, %at, %v<3>;
  .reg .b64 %in, %out, %from, %to;
  .reg .pred %p;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u32 %lanes, [lanes];
  mov.u32 %lane, %tid.x;
  mov.u32 %bit, %lanemask_eq;
  and.b32 %bit, %bit, %lanes;
  setp.ne.b32 %p, %bit, 0;
  sub.s32 %back, 31, %lane;
  mul.wide.u32 %from, %back, 4;
  add.s64 %from, %from, %in;
  mov.u32 %at, tile;
  mad.lo.s32 %at, %lane, 8, %at;
  @%p ld.global.u32 %v0, [%from];
  @%p st.shared.v2.u32 [%at], {%v0, %lane};
  @%p ld.shared.v2.u32 {%v1, %v2}, [%at];
  mul.wide.u32 %to, %lane, 4;
  add.s64 %to, %to, %out;
  @%p add.s32 %v1, %v1, %v2;
  @%p st.global.u32 [%to], %v1;
  ret;
}
)";

struct Heard {
  char what;
  int lane;
  uint64_t at;
  uint32_t bytes;
  bool operator==(const Heard&) const = default;
};

class Listener final : public Observer {
 public:
  explicit Listener(std::vector<Heard>& heard) : heard_(heard) {}
  bool wants_global_accesses() const override { return true; }
  void global_access(const Execution&, int lane, const MemoryAt& at, uint32_t bytes,
                     AccessKind kind) override {
    heard_.push_back({kind == AccessKind::kRead ? 'r' : 'w', lane, at.offset, bytes});
  }
  void shared_access(const Execution&, int lane, Cta&, uint32_t offset, uint32_t bytes,
                     AccessKind kind) override {
    heard_.push_back({kind == AccessKind::kRead ? 'R' : 'W', lane, offset, bytes});
  }

 private:
  std::vector<Heard>& heard_;
};

TEST(WarpAccess, ObserversHearOfEachLaneThatMakesIt) {
  for (const uint32_t lanes : {kAllLanes, 1u, 0x80000000u, 0x0f0f1234u}) {
    auto module = load(kKernel, "test.ptx");
    ASSERT_TRUE(module.ok()) << to_string(module.error());
    auto program = decode(*module, "");
    ASSERT_TRUE(program.ok()) << to_string(program.error());
    GlobalMemory memory;
    std::vector<uint32_t> in(32), out(32);
    for (uint32_t i = 0; i < 32; ++i) in[i] = 1000 + i;
    std::vector<std::byte> bytes(128);
    std::memcpy(bytes.data(), in.data(), 128);
    memory.add("in", kIn, bytes, true, true);
    memory.add("out", kOut, std::vector<std::byte>(128), true, false);
    Launch launch;
    launch.block = {32, 1, 1};
    launch.params.resize(20);
    std::memcpy(launch.params.data(), &kIn, 8);
    std::memcpy(launch.params.data() + 8, &kOut, 8);
    std::memcpy(launch.params.data() + 16, &lanes, 4);
    std::vector<Heard> heard, expected;
    const RunResult result =
        interpret(*program, launch, memory, Options{},
                  {[&](Cluster&) { return std::make_unique<Listener>(heard); }});
    ASSERT_FALSE(result.error) << to_string(*result.error);
    std::memcpy(out.data(), memory.find("out")->data.data(), 128);
    uint64_t sectors = 0;
    for (const char what : {'r', 'W', 'R', 'w'})
      for (int lane = 0; lane < kWarpSize; ++lane) {
        if ((lanes >> lane & 1) == 0) continue;
        const auto i = static_cast<uint64_t>(lane);
        const bool is_shared = what == 'W' || what == 'R';
        expected.push_back({what, lane,
                            is_shared     ? kSharedBegin + 8 * i
                            : what == 'r' ? kIn + 4 * (31 - i)
                                          : kOut + 4 * i,
                            is_shared ? 8u : 4u});
        if (what == 'r') sectors |= uint64_t{1} << (31 - i) / 8;
      }
    EXPECT_EQ(heard, expected) << std::hex << lanes;
    EXPECT_EQ(result.stats.l2_read_bytes, 32u * static_cast<uint32_t>(std::popcount(sectors)));
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(out[i], (lanes >> i & 1) != 0 ? 1031u : 0u) << std::hex << lanes << " " << i;
  }
}

TEST(WarpAccess, WhatIsKnownToBeWrittenIsForgottenWithTheFirstByte) {
  SharedMemory shared(kSharedBegin, kSharedBegin + 8192);
  EXPECT_FALSE(shared.is_range_written(kSharedBegin, kSharedBegin + 4));
  shared.mark_written(kSharedBegin + 100, 6000);
  EXPECT_FALSE(shared.is_range_written(kSharedBegin + 96, kSharedBegin + 104));
  EXPECT_TRUE(shared.is_range_written(kSharedBegin + 100, kSharedBegin + 104));
  EXPECT_TRUE(shared.is_range_written(kSharedBegin + 3000, kSharedBegin + 3004));
  EXPECT_TRUE(shared.is_range_written(kSharedBegin + 100, kSharedBegin + 6100));
  EXPECT_FALSE(shared.is_range_written(kSharedBegin + 100, kSharedBegin + 6101));
  shared.mark_unwritten(kSharedBegin + 3001);
  EXPECT_FALSE(shared.is_range_written(kSharedBegin + 3000, kSharedBegin + 3004));
  EXPECT_TRUE(shared.is_range_written(kSharedBegin + 3002, kSharedBegin + 6100));
  EXPECT_TRUE(shared.is_range_written(kSharedBegin + 100, kSharedBegin + 3001));
  shared.poison(kSharedBegin + 200, 8);
  EXPECT_FALSE(shared.is_range_written(kSharedBegin + 200, kSharedBegin + 204));
  EXPECT_TRUE(shared.is_range_written(kSharedBegin + 208, kSharedBegin + 3001));
}

TEST(WarpAccess, ARangeOfGlobalMemoryIsOfOneBufferAndWritten) {
  GlobalMemory memory;
  memory.add("whole", kIn, std::vector<std::byte>(4096), true, false);
  memory.add("fresh", kOut, std::vector<std::byte>(256), false, false);
  EXPECT_EQ(memory.read_range(kIn + 8, kIn + 4096), memory.find("whole")->data.data() + 8);
  EXPECT_EQ(memory.read_range(kIn, kIn + 4097), nullptr);
  EXPECT_EQ(memory.read_range(kIn - 1, kIn + 4), nullptr);
  EXPECT_EQ(memory.read_range(kIn + 64, kOut + 4), nullptr);
  EXPECT_EQ(memory.read_range(kOut, kOut + 4), nullptr);
  memory.write(kOut + 16, 32);
  EXPECT_EQ(memory.read_range(kOut + 16, kOut + 48), memory.find("fresh")->data.data() + 16);
  EXPECT_EQ(memory.read_range(kOut + 16, kOut + 49), nullptr);
  EXPECT_EQ(memory.read_range(kOut + 15, kOut + 48), nullptr);
  memory.check_uninitialized = false;
  EXPECT_NE(memory.read_range(kOut, kOut + 256), nullptr);
}

}  // namespace
}  // namespace ptxsim
