// Doubles eight numbers; docs/guide.md shows this file as the example of the C++ interface.
#include <cstdio>
#include <cstring>

#include "ptxsim/ptxsim.hpp"

constexpr const char* kPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 data)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, %r2;
  st.global.u32 [%rd3], %r2;
  ret;
})";

int twice(uint32_t (&values)[8]) {
  auto module = ptxsim::load(kPtx, "twice.ptx");
  if (!module) return std::puts(to_string(module.error()).c_str()), 2;
  auto program = ptxsim::decode(*module, "twice");
  if (!program) return std::puts(to_string(program.error()).c_str()), 2;

  constexpr uint64_t kAddress = 0x10'0000'0000;
  std::vector<std::byte> bytes(sizeof values);
  std::memcpy(bytes.data(), values, sizeof values);
  ptxsim::GlobalMemory memory;
  memory.add("data", kAddress, bytes, /*initialized=*/true, /*read_only=*/false);

  ptxsim::Launch launch;
  launch.block = {8, 1, 1};
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &kAddress, 8);

  ptxsim::Options options;
  options.schedule = ptxsim::Schedule::kRandom;
  options.seed = 7;
  const ptxsim::RunResult result = ptxsim::run(*program, launch, memory, options);
  if (result.error) std::puts(to_string(*result.error).c_str());
  for (const ptxsim::Report& report : result.reports.list) std::puts(to_string(report).c_str());
  std::memcpy(values, memory.find("data")->data.data(), sizeof values);
  return result.clean() ? 0 : 1;
}
