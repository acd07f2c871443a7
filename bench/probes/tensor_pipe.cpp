// Clocks of a stage of the sm_100a kernel's MMAs, with its copies of scales and without them.
#include <fmt/format.h>

#include "bench/probes/kernels.hpp"
#include "bench/probes/probe.hpp"
#include "bench/probes/timing.hpp"
#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::bench {

Expected<std::vector<Reading>> probe_tensor_pipe(const ProbeSettings& settings) {
  DUALGEMM_TRY(
      check_capability(settings, 10, "tcgen05.mma with block scales exists on 10.0 and 10.3"));
  auto memory = cuda::DeviceMemory::allocate(8, "clocks");
  if (!memory) return memory.status();
  const auto clocks = [&](int columns, uint32_t stages, bool copies) -> Expected<double> {
    const TensorPipeParams params{stages, copies, reinterpret_cast<uint64_t*>(memory->data())};
    return median_clocks(tensor_pipe_launch(params, columns), *memory, settings.brief ? 1 : 9);
  };
  const uint32_t few = settings.brief ? 1 : 64, many = settings.brief ? 2 : 512;
  std::vector<Reading> readings;
  for (const int columns : kPipeColumns) {
    for (const bool copies : {false, true}) {
      const auto short_run = clocks(columns, few, copies);
      if (!short_run) return short_run.status();
      const auto long_run = clocks(columns, many, copies);
      if (!long_run) return long_run.status();
      readings.push_back({fmt::format("a stage of 8 MMAs of {} columns{}", columns,
                                      copies ? ", 12 copies of scales between" : ""),
                          (*long_run - *short_run) / (many - few), "clk"});
    }
  }
  return readings;
}

}  // namespace dualgemm::bench
