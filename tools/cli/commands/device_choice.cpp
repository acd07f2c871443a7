#include "tools/cli/commands/device_choice.hpp"

#include <cstdlib>

#include "cuda/runtime/architectures.hpp"
#include "tools/cli/print/build_info.hpp"
#include "tools/verify/device_run.hpp"

namespace dualgemm::cli {
namespace {

bool is_of_a_gpu(Isa wanted) {
#define DUALGEMM_IS(name, isa, runs) || wanted == Isa::isa
  return false DUALGEMM_CUDA_ARCHITECTURES(DUALGEMM_IS);
#undef DUALGEMM_IS
}

}  // namespace

DeviceChoice choose_device(const ExecutionOptions& execution, StrategyId strategy,
                           const Problem& problem, const Expected<DeviceCaps>& gpu,
                           const std::string& forced_isa) {
  if (execution.device != DeviceKind::kAuto)
    return {execution.device, std::string(name_of(execution.device)) + ", as --device says"};
  const bool gpu_isa = is_of_a_gpu(execution.isa);
  if (execution.isa != Isa::kAuto && !gpu_isa)
    return {DeviceKind::kCpu, "cpu, as --isa names one of its instruction sets"};
  if (execution.threads != 0) return {DeviceKind::kCpu, "cpu, as --threads counts its cores"};
  if (!forced_isa.empty() && !gpu_isa)
    return {DeviceKind::kCpu, "cpu, as DUALGEMM_FORCE_ISA is set"};
  if (!gpu) return {DeviceKind::kCpu, ""};
  PlanOptions options = execution.plan_options(strategy);
  options.device = DeviceKind::kCuda;
  const Expected<Plan> plan = make_plan(problem, options, *gpu);
  if (plan) return {DeviceKind::kCuda, "cuda, " + gpu->name};
  return {DeviceKind::kCpu, "cpu, as the GPU does not take it (" + plan.status().message() + ")"};
}

std::string settle_device(ExecutionOptions& execution, StrategyId strategy,
                          const Problem& problem) {
  if (execution.device != DeviceKind::kAuto) return {};
  const char* forced = std::getenv("DUALGEMM_FORCE_ISA");
  const DeviceChoice choice =
      choose_device(execution, strategy, problem, device_caps(DeviceKind::kCuda),
                    forced == nullptr ? "" : forced);
  execution.device = choice.device;
  return choice.why;
}

DeviceCaps caps_of(const GpuDescription& gpu) {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.name = gpu.product;
  caps.compute_capability = gpu.compute_capability;
  caps.num_sms = gpu.sms;
  caps.l2_bytes = gpu.l2_bytes;
  caps.isas = verify::isas_of_gpu(gpu.compute_capability);
  return caps;
}

Expected<DeviceCaps> described_caps(const std::string& name_or_file) {
  if (!kHasCuda) {
    return Status::unsupported("--device", "'" + name_or_file + "'",
                               "this build of dualgemm has no CUDA part to plan with");
  }
  if (const GpuDescription* gpu = find_gpu(name_or_file)) return caps_of(*gpu);
  const Expected<GpuDescription> gpu = read_gpu(name_or_file);
  if (!gpu) return gpu.status();
  return caps_of(*gpu);
}

Expected<Plan> plan_with(const Problem& problem, const ExecutionOptions& execution,
                         StrategyId strategy) {
  const PlanOptions options = execution.plan_options(strategy);
  if (execution.gpu.empty()) return make_plan(problem, options);
  DUALGEMM_TRY(validate(problem));  // a mistake counts before a missing file
  const Expected<DeviceCaps> caps = described_caps(execution.gpu);
  if (!caps) return caps.status();
  return make_plan(problem, options, *caps);
}

}  // namespace dualgemm::cli
