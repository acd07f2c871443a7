// Several launches of a case: what they run, and one result of all.
#include "case/launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace ptxsim {
namespace {

void add(std::vector<uint64_t>& sums, const std::vector<uint64_t>& values) {
  if (sums.size() < values.size()) sums.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

void add(Stats& sum, const Stats& s) {
  for (auto field : {&Stats::warp_instructions, &Stats::lane_instructions, &Stats::mma_instructions,
                     &Stats::mma_multiply_adds, &Stats::tma_load_bytes, &Stats::tma_store_bytes,
                     &Stats::l2_read_bytes, &Stats::l2_write_bytes, &Stats::barrier_waits,
                     &Stats::barrier_waits_blocked, &Stats::async_operations})
    sum.*field += s.*field;
  add(sum.by_warp, s.by_warp);
  add(sum.by_statement, s.by_statement);
}

// `of_case`: by the case's own entry, whose statements are those that reports name by their
// numbers.
void add(Reports& all, const Reports& some, bool of_case) {
  for (Report report : some.list) {
    if (!of_case) report.statement = report.other_statement = -1;
    const auto same = std::find_if(all.list.begin(), all.list.end(), [&](const Report& r) {
      return r.rule == report.rule && r.severity == report.severity &&
             r.place.ptx_name == report.place.ptx_name &&
             r.place.ptx_line == report.place.ptx_line && r.other == report.other;
    });
    if (same == all.list.end())
      all.list.push_back(std::move(report));
    else
      same->count += report.count;
  }
  all.suppressed.insert(all.suppressed.end(), some.suppressed.begin(), some.suppressed.end());
}

bool is_of_case(const Case& description, const CaseLaunch& launch) {
  return launch.kernel.empty() && launch.entry == description.entry;
}

}  // namespace

std::optional<Error> choose_entry(Case& description, const std::string& entry) {
  if (description.launches.empty()) {
    description.entry = entry;
    return std::nullopt;
  }
  const auto found =
      std::find_if(description.launches.rbegin(), description.launches.rend(),
                   [&](const CaseLaunch& l) { return l.kernel.empty() && l.entry == entry; });
  if (found == description.launches.rend())
    return Error{
        ErrorKind::kInput, fmt::format("--entry: no launch of the case is of '{}'", entry), {}};
  description.entry = found->entry;
  description.launch = found->launch;
  return std::nullopt;
}

std::optional<Error> load_launches(Case& description, const std::shared_ptr<const Module>& module) {
  std::map<std::string, std::shared_ptr<const Module>> modules{{"", module}};
  for (CaseLaunch& launch : description.launches) {
    if (is_of_case(description, launch)) continue;
    std::shared_ptr<const Module>& from = modules[launch.kernel];
    if (from == nullptr) {
      auto loaded = load(launch.text, launch.kernel);
      if (!loaded.ok()) return loaded.error();
      from = *loaded;
    }
    auto program = decode(from, launch.entry);
    if (!program.ok()) return program.error();
    launch.program = *program;
  }
  return std::nullopt;
}

RunResult run_launches(const Case& description, const std::shared_ptr<const Program>& program,
                       GlobalMemory& memory, const Options& options,
                       const std::vector<MakeObserver>& observers) {
  if (description.launches.empty())
    return run(program, description.launch, memory, options, observers);
  RunResult all;
  all.reports.strict = options.strict;
  GridChain chain;
  for (size_t i = 0; i < description.launches.size() && !all.error; ++i) {
    const CaseLaunch& one = description.launches[i];
    const bool of_case = is_of_case(description, one);
    if (!of_case && one.program == nullptr) {
      all.error =
          Error{ErrorKind::kInput,
                fmt::format("launches[{}]: load_launches() has not loaded it", i), one.place};
      break;
    }
    Launch launch = one.launch;
    if (one.overlaps) launch.earlier_grids = chain.beside_next();
    Options effective = options;
    effective.keep_trail = true;
    const std::shared_ptr<const Program>& runs = of_case ? program : one.program;
    RunResult result = run(runs, launch, memory, effective, observers);
    if (result.trail != nullptr)
      result.trail->kernel = fmt::format("launch {}, {}", i, runs->entry->name);
    chain.add(result.trail, launch.earlier_grids);
    add(all.reports, result.reports, of_case);
    if (of_case) add(all.stats, result.stats);
    // Every launch writes what is compared.
    all.stats.clusters_left_out += result.stats.clusters_left_out;
    for (PrintedText& text : result.printed.texts) all.printed.add(std::move(text));
    all.printed.lost += result.printed.lost;
    all.error = std::move(result.error);
  }
  return all;
}

}  // namespace ptxsim
