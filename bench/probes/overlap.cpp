// Whether a grid that was launched to overlap the one before it runs, and writes, before that one
// has ended: the manual's words say so of a grid that does not wait (PTX ISA, "griddepcontrol"),
// and ptxsim's rule R21 rests on them.
#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/stream_pool.hpp"

namespace dualgemm::bench {
namespace {

// After the first grid, which watches, come one or two others; the last one sets the flag.
struct Chain {
  const char* name;
  bool lets_next_start;  // the first grid
  bool overlaps;         // the others
  bool has_middle, middle_waits;
  bool last_waits;
};
constexpr Chain kChains[] = {
    {"ran beside the grid before: without a wait", true, true, false, false, false},
    {"with griddepcontrol.wait", true, true, false, false, true},
    {"without, the one before lets none start", false, true, false, false, false},
    {"without, an ordinary launch", true, false, false, false, false},
    {"ran beside the last but one: waited, the last did not", true, true, true, false, true},
    {"did not wait, the last did", true, true, true, true, false},
};

Expected<uint32_t> was_seen(const Chain& chain, uint64_t clocks) {
  auto memory = cuda::DeviceMemory::allocate(2 * sizeof(uint32_t), "flag");
  if (!memory) return memory.status();
  constexpr uint32_t kZeros[2] = {};
  DUALGEMM_TRY(memory->upload(kZeros));
  auto* const words = reinterpret_cast<uint32_t*>(memory->data());
  // Not the default stream: there none of the chains overlapped (H200, 2026-11-24).
  const auto own = cuda::BorrowedStream::take();
  if (!own) return own.status();
  const cudaStream_t stream = own->stream();
  DUALGEMM_TRY(
      cuda::enqueue(watch_launch({words, words + 1, clocks, chain.lets_next_start}), stream));
  if (chain.has_middle)
    DUALGEMM_TRY(
        cuda::enqueue(follow_launch({nullptr, chain.middle_waits}, chain.overlaps), stream));
  DUALGEMM_TRY(cuda::enqueue(follow_launch({words, chain.last_waits}, chain.overlaps), stream));
  DUALGEMM_TRY(cuda::synchronize(stream));
  uint32_t after[2];
  DUALGEMM_TRY(memory->download(after));
  return after[1];
}

}  // namespace

Expected<std::vector<Reading>> probe_overlap(const ProbeSettings& settings) {
  const uint64_t clocks = settings.brief ? 20 : 20'000'000;  // 10 ms: a launch takes microseconds
  std::vector<Reading> readings;
  for (const Chain& chain : kChains) {
    const auto seen = was_seen(chain, clocks);
    if (!seen) return seen.status();
    readings.push_back({chain.name, static_cast<double>(*seen), "(1: yes)"});
  }
  return readings;
}

}  // namespace dualgemm::bench
