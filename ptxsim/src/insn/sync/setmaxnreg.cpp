// setmaxnreg (PTX ISA 9.0, "Miscellaneous Instructions: setmaxnreg"): the registers of a CTA's
// warps come out of one pool, as large as what the CTA was launched with. .dec gives registers
// back, .inc waits until the pool has enough: where it never has, the kernel hangs (R13).
//
// Registers per thread at launch, as ptxas of CUDA 13.0 chooses them for entries with setmaxnreg:
// .maxnreg, and what .minnctapersm CTAs of .maxntid (or .reqntid) threads leave each thread of the
// 64 K registers of an SM. Without these directives ptxas ignores setmaxnreg, unless an option of
// its own tells it the number: then only the sum of what was set is held against the 64 K.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "insn/sync/bar.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kRegisterFile = 65536;  // of an SM, sm_80 to sm_120
constexpr uint32_t kMaxPerThread = 256;    // 255 that a thread can name, allocated as 256
constexpr uint32_t kUnit = 8;              // registers per thread are allocated in eights

struct RegisterPool : FamilyState {
  static constexpr char kFamilyKey[] = "setmaxnreg";
  uint32_t at_launch = 0;  // per thread; 0: not known
  uint32_t total = 0;
  std::vector<uint32_t> held;        // per thread, by warp; 0: not known
  std::vector<std::string> waiting;  // by warp: what it waits for
};

uint64_t threads_of(const std::array<uint32_t, 3>& sizes) {
  uint64_t threads = sizes[0];
  for (size_t i = 1; i < sizes.size(); ++i) threads *= std::max(sizes[i], 1u);
  return threads;
}

uint32_t registers_at_launch(const Entry& entry) {
  uint64_t count = entry.maxnreg == 0 ? kMaxPerThread : entry.maxnreg;
  const uint64_t threads = threads_of(entry.reqntid[0] != 0 ? entry.reqntid : entry.maxntid);
  const bool is_bounded = threads != 0 && entry.minnctapersm != 0;
  if (!is_bounded && entry.maxnreg == 0) return 0;
  if (is_bounded) {
    constexpr uint64_t kPartitions = 4;  // of an SM: a warp of each
    const uint64_t unit = kPartitions * kWarpSize;
    const uint64_t resident = (threads * entry.minnctapersm + unit - 1) / unit * unit;
    count = std::min(count, kRegisterFile / resident / kUnit * kUnit);
  }
  return static_cast<uint32_t>(
      std::min<uint64_t>((count + kUnit - 1) / kUnit * kUnit, kMaxPerThread));
}

RegisterPool& pool_of(Execution& x) {
  RegisterPool& pool = x.cta.state<RegisterPool>();
  if (!pool.held.empty()) return pool;
  const uint32_t warps = static_cast<uint32_t>(x.cta.warps.size());
  pool.at_launch = registers_at_launch(*x.program().entry);
  pool.total = pool.at_launch == 0 ? kRegisterFile : pool.at_launch * warps * kWarpSize;
  pool.held.assign(warps, pool.at_launch);
  pool.waiting.resize(warps);
  if (pool.total > kRegisterFile)
    x.fault(fmt::format("the launch needs {} registers x {} threads = {}; an SM has {} (R13)",
                        pool.at_launch, warps * kWarpSize, pool.total, kRegisterFile));
  return pool;
}

// Registers held by warps that have not exited; those of an exited warp count as free.
uint32_t held_in_all(const Cta& cta, const RegisterPool& pool) {
  uint32_t sum = 0;
  for (size_t w = 0; w < pool.held.size(); ++w)
    if (cta.warps[w]->live != 0) sum += pool.held[w] * kWarpSize;
  return sum;
}

// "8 warps x 32 x 232 = 59392 + 4 warps x 32 x 40 = 5120"
std::string sum_text(const Cta& cta, const RegisterPool& pool, uint32_t without) {
  std::string text;
  std::vector<uint32_t> counts = pool.held;
  std::ranges::sort(counts, std::greater());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const uint32_t count : counts) {
    uint32_t warps = 0;
    for (uint32_t w = 0; w < pool.held.size(); ++w)
      warps += uint32_t{w != without && pool.held[w] == count && cta.warps[w]->live != 0};
    if (count == 0 || warps == 0) continue;
    text += fmt::format("{}{} warps x 32 x {} = {}", text.empty() ? "" : " + ", warps, count,
                        warps * kWarpSize * count);
  }
  return text.empty() ? "nothing" : text;
}

std::string pool_text(const RegisterPool& pool) {
  if (pool.at_launch == 0) return fmt::format("an SM has {}", kRegisterFile);
  return fmt::format("the CTA was launched with {} x {} threads = {}", pool.at_launch,
                     pool.held.size() * kWarpSize, pool.total);
}

Outcome decrease(Execution& x, const Insn& insn) {
  RegisterPool& pool = pool_of(x);
  uint32_t& held = pool.held[x.warp.index];
  const uint32_t wanted = static_cast<uint32_t>(insn.imm);
  held = held == 0 ? wanted : std::min(held, wanted);
  x.cluster.changed();
  return Outcome::kNext;
}

Outcome increase(Execution& x, const Insn& insn) {
  RegisterPool& pool = pool_of(x);
  uint32_t& held = pool.held[x.warp.index];
  const uint32_t wanted = static_cast<uint32_t>(insn.imm);
  const uint32_t by_others = held_in_all(x.cta, pool) - held * kWarpSize;
  if (wanted <= held || by_others + wanted * kWarpSize <= pool.total) {
    held = std::max(held, wanted);
    return Outcome::kNext;
  }
  std::string& waiting = pool.waiting[x.warp.index];
  waiting = fmt::format("32 x {} = {} registers; {}, the other warps hold {}", wanted,
                        wanted * kWarpSize, pool_text(pool), sum_text(x.cta, pool, x.warp.index));
  return x.block({.kind = WaitInfo::Kind::kOther, .what = waiting.c_str()});
}

}  // namespace

void decode_setmaxnreg(Decode& d) {
  auto& m = d.modifiers();
  const int action = m.take_one_of({"inc", "dec"});
  if (action < 0 || !m.take("sync") || !m.take("aligned") || !m.take("u32"))
    d.fail("setmaxnreg has the forms .inc.sync.aligned.u32 and .dec.sync.aligned.u32");
  d.expect_operands(1, 1);
  const auto count = d.immediate(0);
  if (!count) d.fail("the register count must be a literal");
  if (*count < 24 || *count > 256 || *count % 8 != 0)
    d.fail(fmt::format("register count {}; must be a multiple of 8 from 24 to 256", *count));
  d.require_aligned();
  d.insn().imm = *count;
  d.insn().execute = action == 0 ? increase : decrease;
}

}  // namespace ptxsim
