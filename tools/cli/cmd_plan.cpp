#include "tools/cli/commands.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {

int execute(const PlanCommand& command) {
  const auto [m, n, k, l] = command.shape;
  const Problem problem = command.problem.problem(m, n, k, l);
  const Expected<Plan> plan = make_plan(problem, command.execution.plan_options(command.strategy));
  if (!plan) return fail_usage(plan.status());
  if (command.json) {
    print(dump(to_json(*plan)));
    return 0;
  }
  std::string text = plan->explain();
  if (text.empty() || text.back() != '\n') text += '\n';
  print(text);
  return 0;
}

}  // namespace dualgemm::cli
