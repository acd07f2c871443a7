#include <fmt/format.h>

#include <optional>

#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/device_choice.hpp"
#include "tools/cli/print/build_info.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/verify/device_run.hpp"

namespace dualgemm::cli {

int execute(const PlanCommand& command) {
  const auto [m, n, k, l] = command.shape;
  const Problem problem = command.problem.problem(m, n, k, l);
  const Expected<Plan> plan = plan_with(problem, command.execution, command.strategy);
  if (!plan) return fail_usage(plan.status());
  std::optional<DeviceCaps> gpu;
  if (!command.execution.gpu.empty()) {
    const Expected<DeviceCaps> caps = described_caps(command.execution.gpu);
    if (!caps) return fail_usage(caps.status());
    gpu = *caps;
  }
  const verify::PredictedTime time =
      gpu ? verify::predicted_time(*plan, *gpu) : verify::PredictedTime{};
  if (command.json) {
    Json json = to_json(*plan);
    json["for_gpu"] = gpu ? Json(command.execution.gpu) : Json(nullptr);
    json["predicted"] =
        time.us > 0 ? Json{{"us", time.us}, {"low_us", time.low}, {"high_us", time.high}} : Json();
    json["build"] = provenance();
    print(dump(json));
    return 0;
  }
  std::string text = plan->explain();
  if (gpu) {
    text += "for        " + gpu->name + ", " + std::to_string(gpu->num_sms) +
            " SMs: as described, not the GPU of this machine\n";
  }
  if (time.us > 0) {
    text += fmt::format(
        "time       {:.3g} us predicted, {:.3g} to {:.3g} in nine of ten cases: by a model, with "
        "weights in memory; not measured\n",
        time.us, time.low, time.high);
  }
  print(with_long_lines_broken(text, stdout_style().width));
  return 0;
}

}  // namespace dualgemm::cli
