// Runs a few statements as a kernel and gives what went wrong: for tests of messages and reports.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ptxsim/ptxsim.hpp"

namespace ptxsim_test {

struct SmallKernel {
  std::string body;
  ptxsim::Dim3 block{32, 1, 1};
  ptxsim::Dim3 cluster{1, 1, 1};  // the grid is one cluster
  ptxsim::Schedule schedule = ptxsim::Schedule::kEager;
  uint64_t seed = 1;
};

inline constexpr uint64_t kData = 0x1'0000'0000;   // p0, %rd1: 256 bytes of zero
inline constexpr uint64_t kFresh = 0x1'0001'0000;  // p1, %rd2: 64 unwritten bytes
inline constexpr uint64_t kFixed = 0x1'0002'0000;  // p2, %rd3: 64 bytes that are read only

// %r0 is the thread's number; `tile` and `full` are shared.
inline std::string text_of(const SmallKernel& kernel) {
  return R"(.version 8.8
.target sm_100a
.address_size 64
.const .align 8 .b8 table[16] = {1, 2, 3};
.visible .entry small(.param .u64 p0, .param .u64 p1, .param .u64 p2)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  .reg .f32 %f<8>;
  .shared .align 16 .b8 tile[64];
  .shared .align 8 .b64 full;
  .local .align 8 .b8 frame[16];
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd1, [p0];
  ld.param.u64 %rd2, [p1];
  ld.param.u64 %rd3, [p2];
)" + kernel.body +
         "\n  ret;\n}\n";
}

inline ptxsim::RunResult run_small(const SmallKernel& kernel) {
  ptxsim::RunResult failed;
  auto module = ptxsim::load(text_of(kernel), "small.ptx");
  if (!module.ok()) return failed.error = module.error(), failed;
  auto program = ptxsim::decode(*module, "small");
  if (!program.ok()) return failed.error = program.error(), failed;
  ptxsim::GlobalMemory memory;
  memory.add("data", kData, std::vector<std::byte>(256), true, false);
  memory.add("fresh", kFresh, std::vector<std::byte>(64), false, false);
  memory.add("fixed", kFixed, std::vector<std::byte>(64), true, true);
  ptxsim::Launch launch;
  launch.grid = launch.cluster = kernel.cluster;
  launch.block = kernel.block;
  for (uint64_t address : {kData, kFresh, kFixed})
    for (int i = 0; i < 8; ++i) launch.params.push_back(static_cast<uint8_t>(address >> (8 * i)));
  ptxsim::Options options;
  options.schedule = kernel.schedule;
  options.seed = kernel.seed;
  options.max_warp_instructions = 400'000;
  return ptxsim::run(*program, launch, memory, options);
}

// The error's text; empty when the kernel ran to its end.
inline std::string error_of(const SmallKernel& kernel) {
  const ptxsim::RunResult result = run_small(kernel);
  return result.error ? to_string(*result.error) : std::string();
}

// Whether `rule` was reported, as whatever severity.
inline bool reports(const ptxsim::RunResult& result, int rule) {
  for (const ptxsim::Report& report : result.reports.list)
    if (report.rule == rule) return true;
  return false;
}

struct ErrorCase {
  const char* name;
  std::string body;
  const char* message;  // a part of it
  ptxsim::Dim3 block{32, 1, 1};
  ptxsim::Dim3 cluster{1, 1, 1};
};

inline void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.name; }

}  // namespace ptxsim_test
