// One product as the dual product of the two halves of its weights.
#include "dualgemm/linear.hpp"

#include <array>
#include <string>
#include <utility>

#include "api/guarded.hpp"
#include "core/linear.hpp"
#include "core/validate.hpp"

namespace dualgemm {
namespace {

using api::guarded;

// Every rule in the words of LinearProblem, before anything is cut.
Status check(const LinearProblem& p) {
  const Problem whole = core::shared_part(p);
  DUALGEMM_TRY(core::check_extents(whole));
  DUALGEMM_TRY(core::check_combine(whole));
  DUALGEMM_TRY(core::check_bias(whole));
  DUALGEMM_TRY(core::check_token_strides(whole));
  const bool contiguous = p.grouping == Grouping::kContiguous;
  DUALGEMM_TRY(core::check_matrix("a", p.a, p.m, p.k, p.l, contiguous));
  DUALGEMM_TRY(core::check_weight("w", "w.type", p.w, p.n, p.k, p.l));
  DUALGEMM_TRY(core::check_output(whole, p.n));
  return core::check_padded_sizes(whole);
}

int64_t first_row_of_up(const LinearProblem& p) noexcept {
  return core::first_row_of_up(p.n, p.w.scale_layout);
}

// A name of the dual product's as LinearBuffers has it.
std::string renamed(std::string text) {
  static constexpr std::array<std::pair<const char*, const char*>, 8> kNames{
      {{"gate", "w"},
       {"up", "w"},
       {"gate_scales", "w_scales"},
       {"up_scales", "w_scales"},
       {"bias_gate", "bias"},
       {"bias_up", "bias"},
       {"alpha_gate_per_batch", "alpha_per_batch"},
       {"alpha_up_per_batch", "alpha_per_batch"}}};
  const std::string overlaps = "overlaps ";
  const bool is_overlap = text.compare(0, overlaps.size(), overlaps) == 0;
  const std::string name = is_overlap ? text.substr(overlaps.size()) : text;
  for (const auto& [dual, linear] : kNames) {
    if (name == dual) return (is_overlap ? overlaps : std::string()) + linear;
  }
  return text;
}
Status renamed(const Status& status) {
  if (status.ok()) return {};
  return Status::error(status.code(), renamed(status.argument()), renamed(status.observed()),
                       status.rule());
}

}  // namespace

Expected<Problem> dual_problem(const LinearProblem& problem) {
  return guarded([&]() -> Expected<Problem> {
    DUALGEMM_TRY(check(problem));
    return core::dual_problem(problem, first_row_of_up(problem));
  });
}

Buffers dual_buffers(const LinearProblem& problem, const LinearBuffers& buffers) {
  return core::dual_buffers(problem, buffers, first_row_of_up(problem));
}

Expected<Plan> make_plan(const LinearProblem& problem, const PlanOptions& options) {
  const Expected<Problem> dual = dual_problem(problem);
  if (!dual) return dual.status();
  return make_plan(*dual, options);
}

Status validate(const LinearProblem& problem, const LinearBuffers& buffers) {
  const Expected<Problem> dual = dual_problem(problem);
  if (!dual) return dual.status();
  return guarded([&] { return renamed(validate(*dual, dual_buffers(problem, buffers))); });
}

Status run(const LinearProblem& problem, const LinearBuffers& buffers, const PlanOptions& options,
           RunInfo* info) {
  const Expected<Problem> dual = dual_problem(problem);
  if (!dual) return dual.status();
  return guarded(
      [&] { return renamed(run(*dual, dual_buffers(problem, buffers), options, info)); });
}

}  // namespace dualgemm
