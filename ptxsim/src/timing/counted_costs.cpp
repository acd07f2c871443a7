#include "timing/counted_costs.hpp"

#include <fmt/format.h>

#include <utility>

#include "timing/cuda_tools.hpp"

namespace ptxsim::timing {

CountedCosts counted_costs(const Program& program, std::span<const SassSection> sections,
                           std::string from, std::string note) {
  auto costs = costs_of(program, sections);
  InstructionCounts counts{std::move(from), std::move(note), costs->of.size(), costs->told};
  return {std::move(costs), std::move(counts)};
}

Result<CountedCosts> costs_by(const std::string& how, const std::string& ptx,
                              const Program& program) {
  const bool may_fail = how == "auto";
  if (how == "off") return counted_costs(program, {}, "table");
  // A machine without CUDA is the usual case, and needs no list of folders.
  if (const std::string missing = missing_cuda_tool(); may_fail && !missing.empty())
    return counted_costs(program, {}, "table", fmt::format("no {} was found", missing));
  auto sections = sass_by_tools(ptx, program);
  if (sections.ok()) return counted_costs(program, *sections, "ptxas");
  if (may_fail) return counted_costs(program, {}, "table", sections.error().message);
  Error error = sections.error();
  error.message = "--sass: " + error.message;
  return error;
}

}  // namespace ptxsim::timing
