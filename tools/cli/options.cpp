#include "tools/cli/options.hpp"

namespace dualgemm::cli {
namespace {

std::vector<int64_t> or_default(const std::vector<int64_t>& list, int64_t fallback) {
  return list.empty() ? std::vector<int64_t>{fallback} : list;
}

}  // namespace

// A parameter that the kind does not use is passed on all the same: validate() refuses it with the
// reason.
Activation ProblemOptions::activation() const {
  Activation result{.kind = act};
  if (act_alpha) result.alpha = static_cast<float>(*act_alpha);
  if (act_beta) result.beta = static_cast<float>(*act_beta);
  if (act_limit) result.limit = static_cast<float>(*act_limit);
  return result;
}

Problem ProblemOptions::problem(int64_t m, int64_t n, int64_t k, int64_t l) const {
  Problem problem{.m = m, .n = n, .k = k, .l = l};
  problem.a.type = a_type;
  problem.d.type = d_type;
  // The scale layout is a property of E2M1 operands alone; elsewhere it keeps its default.
  problem.gate.scale_layout = problem.up.scale_layout = scale_layout;
  if (a_type == DataType::kE2M1) problem.a.scale_layout = scale_layout;
  if (d_type == DataType::kE2M1) problem.d.scale_layout = scale_layout;
  problem.act = activation();
  problem.batch_invariant = batch_invariant;
  problem.bias = bias;
  problem.grouping = grouping;
  return problem;
}

PlanOptions ExecutionOptions::plan_options(StrategyId strategy) const {
  PlanOptions options;
  options.strategy = strategy;
  options.device = device;
  options.isa = isa;
  options.threads = threads;
  options.prepared = prepared;
  options.config = config;
  return options;
}

std::vector<Shape> ShapeLists::combinations(const Shape& fallback) const {
  std::vector<Shape> shapes;
  for (int64_t l_value : or_default(l, fallback.l)) {
    for (int64_t k_value : or_default(k, fallback.k)) {
      for (int64_t n_value : or_default(n, fallback.n)) {
        for (int64_t m_value : or_default(m, fallback.m))
          shapes.push_back({m_value, n_value, k_value, l_value});
      }
    }
  }
  return shapes;
}

}  // namespace dualgemm::cli
