// How soon a stage of 32 KiB is there: the first one of a kernel, one of other bytes, and one that
// L2 has.
#include "bench/probes/kernels.hpp"
#include "bench/probes/matrix.hpp"
#include "bench/probes/probe.hpp"
#include "cuda/kernels/common/read_bytes.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "tools/measure/median.hpp"

namespace dualgemm::bench {
namespace {

constexpr int64_t kFlushBytes = int64_t{512} << 20;  // more than any L2

}  // namespace

Expected<std::vector<Reading>> probe_first_bytes(const ProbeSettings& settings) {
  const auto ctas = static_cast<uint32_t>(settings.brief ? 2 : settings.caps.num_sms);
  const uint32_t rounds = settings.brief ? 1 : 9;
  auto matrix = CopiedMatrix::make(ctas, 2 * 2 * rounds);
  if (!matrix) return matrix.status();
  const int64_t flush_bytes = settings.brief ? 1024 : kFlushBytes;
  auto flush = cuda::DeviceMemory::allocate(flush_bytes + 16, "flush");
  if (!flush) return flush.status();
  const int64_t seen_bytes = ctas * static_cast<int64_t>(sizeof(FirstBytesSeen));
  auto seen = cuda::DeviceMemory::allocate(seen_bytes, "seen");
  if (!seen) return seen.status();
  std::vector<uint8_t> zeros(static_cast<size_t>(flush->size()));
  DUALGEMM_TRY(flush->upload(zeros.data()));

  std::vector<Reading> readings;
  int32_t column = 0;
  for (const bool prefetches : {false, true}) {
    std::vector<double> until_issue, first, other, again;
    for (uint32_t round = 0; round < rounds; ++round, column += 2 * kRowBytes) {
      const cuda::ReadBytesParams read{flush->data(), flush_bytes,
                                       reinterpret_cast<uint32_t*>(flush->data() + flush_bytes)};
      DUALGEMM_TRY(cuda::enqueue(cuda::read_bytes_launch(read, static_cast<int>(ctas)), nullptr));
      const FirstBytesParams params{matrix->map, reinterpret_cast<FirstBytesSeen*>(seen->data()),
                                    column, prefetches};
      DUALGEMM_TRY(cuda::enqueue(first_bytes_launch(params, ctas), nullptr));
      DUALGEMM_TRY(cuda::synchronize(nullptr));
      std::vector<FirstBytesSeen> of_ctas(ctas);
      DUALGEMM_TRY(seen->download(of_ctas.data()));
      for (const FirstBytesSeen& cta : of_ctas) {
        until_issue.push_back(cta.until_issue);
        first.push_back(cta.first);
        other.push_back(cta.other);
        again.push_back(cta.again);
      }
    }
    const std::string how = prefetches ? ", map prefetched" : "";
    readings.push_back({"entry to first copy" + how, measure::median(until_issue), "clk"});
    readings.push_back({"first stage" + how, measure::median(first), "clk"});
    readings.push_back({"next stage, other bytes" + how, measure::median(other), "clk"});
    readings.push_back({"the same bytes from L2" + how, measure::median(again), "clk"});
  }
  return readings;
}

}  // namespace dualgemm::bench
