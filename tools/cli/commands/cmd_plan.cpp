#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/device_choice.hpp"
#include "tools/cli/print/build_info.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {

int execute(const PlanCommand& command) {
  const auto [m, n, k, l] = command.shape;
  const Problem problem = command.problem.problem(m, n, k, l);
  const Expected<Plan> plan = plan_with(problem, command.execution, command.strategy);
  if (!plan) return fail_usage(plan.status());
  if (command.json) {
    Json json = to_json(*plan);
    json["for_gpu"] = command.execution.gpu.empty() ? Json(nullptr) : Json(command.execution.gpu);
    json["build"] = provenance();
    print(dump(json));
    return 0;
  }
  std::string text = plan->explain();
  if (!command.execution.gpu.empty()) {
    const Expected<DeviceCaps> caps = described_caps(command.execution.gpu);
    if (!caps) return fail_usage(caps.status());
    text += "for        " + caps->name + ", " + std::to_string(caps->num_sms) +
            " SMs: as described, not the GPU of this machine\n";
  }
  print(with_long_lines_broken(text, stdout_style().width));
  return 0;
}

}  // namespace dualgemm::cli
