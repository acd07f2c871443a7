#include "tools/cli/print/json.hpp"

#include <cmath>

#include "core/printable.hpp"
#include "core/resolved_activation.hpp"
#include "tools/cli/print/build_info.hpp"

namespace dualgemm::cli {

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json to_json(const Activation& given) {
  const core::ResolvedActivation act = given;
  return {{"kind", name_of(act.kind)},
          {"alpha", number(act.alpha)},
          {"beta", number(act.beta)},
          {"limit", number(act.limit)}};
}

Json to_json(const Problem& problem) {
  return {{"m", problem.m},
          {"n", problem.n},
          {"k", problem.k},
          {"l", problem.l},
          {"a_type", name_of(problem.a.type)},
          {"d_type", name_of(problem.d.type)},
          {"weight_scale_layout", name_of(problem.gate.scale_layout)},
          {"act", to_json(problem.act)},
          {"batch_invariant", problem.batch_invariant},
          {"bias", name_of(problem.bias)},
          {"grouping", name_of(problem.grouping)}};
}

Json to_json(const Plan& plan) {
  Json rejected = Json::array();
  for (const RejectedCandidate& candidate : plan.rejected) {
    rejected.push_back({{"name", candidate.name},
                        {"code", status_code_name(candidate.reason.code())},
                        {"reason", candidate.reason.message()}});
  }
  return {{"config", plan.config()},
          {"problem", to_json(plan.problem)},
          {"strategy", name_of(plan.strategy)},
          {"device", name_of(plan.device)},
          {"isa", name_of(plan.isa)},
          {"regime", name_of(plan.regime)},
          {"threads", plan.threads},
          {"prepared", plan.prepared},
          {"preparation", name_of(plan.preparation)},
          {"kernel", plan.kernel},
          {"tile_m", plan.shape.tile_m},
          {"tile_n", plan.shape.tile_n},
          {"tile_k", plan.shape.tile_k},
          {"stages", plan.shape.stages},
          {"k_warpgroups", plan.shape.k_warpgroups},
          {"ctas", plan.shape.ctas},
          {"workspace_bytes", plan.workspace_bytes},
          {"prepared_bytes", plan.prepared_bytes},
          {"rejected", std::move(rejected)}};
}

Json to_json(const DeviceCaps& caps) {
  Json isas = Json::array();
  for (const Isa isa : caps.isas) isas.push_back(name_of(isa));
  return {{"kind", name_of(caps.kind)}, {"name", caps.name},
          {"cores", caps.cores},        {"l1d_bytes", caps.l1d_bytes},
          {"l2_bytes", caps.l2_bytes},  {"l3_bytes", caps.l3_bytes},
          {"isas", std::move(isas)},    {"compute_capability", caps.compute_capability},
          {"num_sms", caps.num_sms}};
}

Json provenance() {
  return {{"version", version()},        {"revision", kRevision}, {"compiler", kCompiler},
          {"build_type", kBuildType},    {"cuda", kHasCuda},      {"device", device_caps().name},
          {"cores", device_caps().cores}};
}

std::string dump(const Json& json) {
  // JSON itself escapes C0 in strings; what else acts on a terminal gets JSON's own "\u009b".
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return core::printable(text, std::string::npos, core::LineBreaks::kKept);
}

}  // namespace dualgemm::cli
