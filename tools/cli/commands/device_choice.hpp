// Where a problem whose data the command owns will run: `--device auto`, and GPUs that are
// described, not there.
#pragma once

#include "dualgemm/dualgemm.hpp"
#include "tools/cli/options.hpp"
#include "tools/cli/parse/gpu_table.hpp"

namespace dualgemm::cli {

struct DeviceChoice {
  DeviceKind device = DeviceKind::kCpu;
  std::string why;  // "cpu, as --isa names one of its instruction sets"; empty: there is no GPU
};

// `auto` takes the GPU where there is one whose kernels take `problem`, else the CPU. What belongs
// to the CPU decides for it: --isa, --threads, `forced_isa` (DUALGEMM_FORCE_ISA). Pure.
DeviceChoice choose_device(const ExecutionOptions& execution, StrategyId strategy,
                           const Problem& problem, const Expected<DeviceCaps>& gpu,
                           const std::string& forced_isa);

// Replaces DeviceKind::kAuto in `execution` by what choose_device() says of this machine, and
// returns why; another device stays, and the text is empty.
std::string settle_device(ExecutionOptions& execution, StrategyId strategy, const Problem& problem);

// What the kernels would be told of that GPU.
DeviceCaps caps_of(const GpuDescription& gpu);

// For --device NAME or FILE.json of `plan`; the request must have been parsed.
Expected<DeviceCaps> described_caps(const std::string& name_or_file);

// make_plan for `execution`, on a described GPU if it names one.
Expected<Plan> plan_with(const Problem& problem, const ExecutionOptions& execution,
                         StrategyId strategy);

}  // namespace dualgemm::cli
