// A kernel around a few tcgen05 instructions: it fills shared memory and tensor memory with what
// the test gives, lets one thread of the leading CTA execute the test's lines, commits, waits, lets
// all warps execute further lines, and hands tensor memory back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"

namespace tcgen05_test {

constexpr uint32_t kLanes = 128, kColumns = 512;
constexpr uint32_t kSmemBase = 1024;  // offset of the shared bytes in the CTA's shared memory

using Tmem = std::vector<uint32_t>;  // [lane][column]
inline uint32_t& cell(Tmem& tmem, uint32_t lane, uint32_t column) {
  return tmem[size_t{lane} * kColumns + column];
}
inline uint32_t cell(const Tmem& tmem, uint32_t lane, uint32_t column) {
  return tmem[size_t{lane} * kColumns + column];
}

struct Kernel {
  uint32_t ctas = 1;  // 2: cta_group::2
  // For each CTA; equal sizes, multiples of 16 bytes.
  std::vector<std::vector<uint8_t>> shared{std::vector<uint8_t>(16)};
  std::vector<Tmem> tensor{Tmem(size_t{kLanes} * kColumns, 0)};
  // One thread of CTA 0: %taddr is the allocation's address, %smem the address of the shared bytes;
  // %x0..%x9 (b32), %d0..%d9 (b64) and %q0..%q3 (predicates) are free.
  std::string issue;
  // All warps of all CTAs, after the commit was waited for and tensor memory was read; %r<512>
  // (b32) are free, %out2 is the address of 512 words of this thread.
  std::string all;
  std::string prologue = "";  // before anything else, all threads
  uint32_t columns = 512;     // to allocate
  bool commits = true;
};

struct Result {
  ptxsim::RunResult run;
  std::vector<Tmem> tensor;      // after the commit
  std::vector<uint32_t> second;  // [cta][thread][512]
};

inline std::string registers(const char* prefix, int count, int first = 0) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i > 0 ? ", %" : "%") + std::string(prefix) + std::to_string(first + i);
  return text + "}";
}

inline std::string text_of(const Kernel& k) {
  const std::string group = ".cta_group::" + std::to_string(k.ctas);
  const std::string bytes = std::to_string(k.shared[0].size());
  const std::string words = registers("v", 32);
  std::string s = R"(.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry kernel(.param .u64 p_shared, .param .u64 p_tensor, .param .u64 p_out, .param .u64 p_out2)
{
  .reg .pred %p<8>, %q<4>;
  .reg .b16 %h<2>;
  .reg .b32 %t<20>, %v<32>, %r<512>, %x<10>, %taddr, %smem, %bar, %slot, %rank, %quarter;
  .reg .b64 %a<20>, %d<10>, %out2;
)";
  s += k.prologue;
  s += "  mov.u32 %smem, dynamic;\n  add.u32 %bar, %smem, " + bytes + ";\n";
  s += "  add.u32 %slot, %bar, 8;\n  mov.u32 %rank, %cluster_ctarank;\n  mov.u32 %t0, %tid.x;\n";
  // Shared bytes of this CTA.
  s += "  ld.param.u64 %a0, [p_shared];\n  mul.wide.u32 %a1, %rank, " + bytes + ";\n";
  s += R"(  add.u64 %a0, %a0, %a1;
  shl.b32 %t1, %t0, 4;
FILL:
  setp.ge.u32 %p0, %t1, )" +
       bytes + R"(;
  @%p0 bra FILLED;
  cvt.u64.u32 %a2, %t1;
  add.u64 %a3, %a0, %a2;
  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%a3];
  add.u32 %t2, %smem, %t1;
  st.shared.v4.b32 [%t2], {%v0, %v1, %v2, %v3};
  add.u32 %t1, %t1, 2048;
  bra FILL;
FILLED:
  fence.proxy.async.shared::cta;
  setp.ne.u32 %p1, %t0, 0;
  @%p1 bra STARTED;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
STARTED:
  bar.warp.sync 0xffffffff;
  shr.u32 %quarter, %t0, 5;
  setp.ne.u32 %p2, %quarter, 0;
  @%p2 bra ALLOCATED;
)";
  s += "  tcgen05.alloc" + group + ".sync.aligned.shared::cta.b32 [%slot], " +
       std::to_string(k.columns) + ";\n";
  s += "  tcgen05.relinquish_alloc_permit" + group +
       ".sync.aligned;\n  tcgen05.fence::before_thread_sync;\n";
  s += R"(ALLOCATED:
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.b32 %taddr, [%slot];
  shl.b32 %t3, %quarter, 21;
  add.u32 %t3, %t3, %taddr;
  mul.lo.u32 %t4, %rank, 128;
  add.u32 %t4, %t4, %t0;
  mul.wide.u32 %a4, %t4, 2048;
  ld.param.u64 %a5, [p_tensor];
  add.u64 %a5, %a5, %a4;
  mov.u32 %t5, 0;
PUT:
  mul.wide.u32 %a6, %t5, 4;
  add.u64 %a6, %a5, %a6;
)";
  for (int i = 0; i < 32; i += 4)
    s += "  ld.global.v4.b32 " + registers("v", 4, i) + ", [%a6+" + std::to_string(4 * i) + "];\n";
  s += "  add.u32 %t6, %t3, %t5;\n  tcgen05.st.sync.aligned.32x32b.x32.b32 [%t6], " + words + ";\n";
  s += "  add.u32 %t5, %t5, 32;\n  setp.lt.u32 %p3, %t5, " + std::to_string(k.columns) + ";\n";
  s += R"(  @%p3 bra PUT;
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  setp.ne.u32 %p4, %t4, 0;
  @%p4 bra ISSUED;
  tcgen05.fence::after_thread_sync;
)";
  s += k.issue;
  if (k.commits && k.ctas == 1)
    s += "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];\n";
  if (k.commits && k.ctas == 2)
    s += "  mov.b16 %h0, 3;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster."
         "multicast::cluster.b64 [%bar], %h0;\n";
  s += R"(ISSUED:
  bar.warp.sync 0xffffffff;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%bar], 0;
  @!%p5 bra WAIT;
  bar.warp.sync 0xffffffff;
  tcgen05.fence::after_thread_sync;
  ld.param.u64 %a7, [p_out];
  add.u64 %a7, %a7, %a4;
  mov.u32 %t5, 0;
GET:
  add.u32 %t6, %t3, %t5;
)";
  s += "  tcgen05.ld.sync.aligned.32x32b.x32.b32 " + words + ", [%t6];\n";
  s += "  tcgen05.wait::ld.sync.aligned;\n  mul.wide.u32 %a6, %t5, 4;\n  add.u64 %a6, %a7, %a6;\n";
  for (int i = 0; i < 32; i += 4)
    s += "  st.global.v4.b32 [%a6+" + std::to_string(4 * i) + "], " + registers("v", 4, i) + ";\n";
  s += "  add.u32 %t5, %t5, 32;\n  setp.lt.u32 %p3, %t5, " + std::to_string(k.columns) + ";\n";
  s += "  @%p3 bra GET;\n  ld.param.u64 %out2, [p_out2];\n  add.u64 %out2, %out2, %a4;\n";
  s += k.all;
  s += R"(  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  tcgen05.fence::after_thread_sync;
  @%p2 bra DONE;
)";
  s += "  tcgen05.dealloc" + group + ".sync.aligned.b32 %taddr, " + std::to_string(k.columns) +
       ";\nDONE:\n  ret;\n}\n";
  return s;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<std::vector<T>>& parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) {
    const auto* data = reinterpret_cast<const std::byte*>(part.data());
    all.insert(all.end(), data, data + part.size() * sizeof(T));
  }
  return all;
}

inline Result run(const Kernel& k, ptxsim::Options options = {}) {
  Result result;
  auto module = ptxsim::load(text_of(k), "tcgen05_test.ptx");
  if (!module) {
    result.run.error = module.error();
    return result;
  }
  auto program = ptxsim::decode(*module, "kernel");
  if (!program) {
    result.run.error = program.error();
    return result;
  }
  constexpr uint64_t kShared = 0x1000'0000, kTensor = 0x2000'0000, kOut = 0x3000'0000,
                     kOut2 = 0x4000'0000;
  const size_t out_bytes = size_t{k.ctas} * kLanes * kColumns * 4;
  ptxsim::GlobalMemory memory;
  memory.add("shared", kShared, bytes_of(k.shared), true, true);
  memory.add("tensor", kTensor, bytes_of(k.tensor), true, true);
  memory.add("out", kOut, std::vector<std::byte>(out_bytes), true, false);
  memory.add("out2", kOut2, std::vector<std::byte>(out_bytes), true, false);
  ptxsim::Launch launch;
  launch.grid = launch.cluster = {k.ctas, 1, 1};
  launch.block = {128, 1, 1};
  launch.dynamic_shared_bytes = static_cast<uint32_t>(k.shared[0].size() + 16);
  const uint64_t params[] = {kShared, kTensor, kOut, kOut2};
  launch.params.resize(sizeof params);
  std::memcpy(launch.params.data(), params, sizeof params);
  options.check_uninitialized = true;
  result.run = ptxsim::run(*program, launch, memory, options);
  result.tensor.assign(k.ctas, Tmem(size_t{kLanes} * kColumns));
  result.second.resize(out_bytes / 4);
  for (uint32_t r = 0; r < k.ctas; ++r)
    std::memcpy(result.tensor[r].data(), memory.find("out")->data.data() + r * out_bytes / k.ctas,
                out_bytes / k.ctas);
  std::memcpy(result.second.data(), memory.find("out2")->data.data(), out_bytes);
  return result;
}

inline std::string problems(const ptxsim::RunResult& run) {
  std::string text = run.error ? to_string(*run.error) + "\n" : "";
  for (const ptxsim::Report& report : run.reports.list) text += to_string(report) + "\n";
  return text;
}

// Runs under each schedule; no error and no report; the results of the first run.
inline Result run_clean(const Kernel& k) {
  Result first;
  for (const auto schedule :
       {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
    ptxsim::Options options;
    options.schedule = schedule;
    options.seed = 7;
    Result result = run(k, options);
    EXPECT_FALSE(result.run.error) << problems(result.run);
    EXPECT_TRUE(result.run.reports.list.empty()) << problems(result.run);
    if (schedule == ptxsim::Schedule::kEager) {
      first = std::move(result);
    } else {
      EXPECT_EQ(result.tensor, first.tensor) << "schedule " << static_cast<int>(schedule);
      EXPECT_EQ(result.second, first.second) << "schedule " << static_cast<int>(schedule);
    }
  }
  return first;
}

// The run must fail with a message that holds `part`.
inline void expect_error(const Kernel& k, const std::string& part) {
  const Result result = run(k);
  ASSERT_TRUE(result.run.error) << "no error; wanted: " << part;
  EXPECT_NE(result.run.error->message.find(part), std::string::npos)
      << result.run.error->message << "\nwanted: " << part;
}

// Bits of a descriptor as PTX ISA's table has them; `start` relative to the shared bytes.
inline uint64_t descriptor(uint32_t start, uint32_t leading, uint32_t stride, uint32_t swizzle) {
  return uint64_t{(kSmemBase + start) >> 4} | uint64_t{leading >> 4} << 16 |
         uint64_t{stride >> 4} << 32 | uint64_t{1} << 46 | uint64_t{swizzle} << 61;
}
inline std::string hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}
inline std::string set64(const char* name, uint64_t value) {
  return "  mov.b64 " + std::string(name) + ", " + hex(value) + ";\n";
}
inline std::string set32(const char* name, uint32_t value) {
  return "  mov.b32 " + std::string(name) + ", " + hex(value) + ";\n";
}
// %x_i = %taddr + offset.
inline std::string at(const char* name, uint32_t offset) {
  return "  add.u32 " + std::string(name) + ", %taddr, " + hex(offset) + ";\n";
}

}  // namespace tcgen05_test
