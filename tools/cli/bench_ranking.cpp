#include "tools/cli/bench_ranking.hpp"

#include <algorithm>

#include "tools/measure/judgement.hpp"

namespace dualgemm::cli {
namespace {

const BenchResult* find_result(const BenchShape& shape, const std::string& name) {
  for (const BenchResult& result : shape.results) {
    if (result.name() == name) return &result;
  }
  return nullptr;
}

// Why `name` has no time for `shape` that says anything; empty: it has one.
std::string why_no_time(const BenchShape& shape, const std::string& name) {
  const BenchResult* result = find_result(shape, name);
  if (result == nullptr || !result->timed()) return "no time";
  return result->failed() ? "its result is wrong" : "";
}

// Why `name` has no comparable time for `shape`; empty: it has one.
std::string why_not(const BenchShape& shape, const std::string& name) {
  std::string why = why_no_time(shape, name);
  if (why.empty()) why = measure::why_unsettled(find_result(shape, name)->timing);
  return why.empty() ? why : shape_name(shape.problem) + ": " + why;
}

std::vector<std::string> timed_names(const BenchReport& report) {
  std::vector<std::string> names;
  for (const BenchShape& shape : report.shapes) {
    for (const BenchResult& result : shape.results) {
      const bool listed = std::find(names.begin(), names.end(), result.name()) != names.end();
      if (result.timed() && !listed) names.push_back(result.name());
    }
  }
  return names;
}

Ranked entry_of(const BenchReport& report, const std::string& name) {
  std::vector<double> milliseconds, speed_ups;
  Ranked entry{find_result(report.shapes.front(), name), 0, false, 0.0, 0.0, std::nullopt};
  for (const BenchShape& shape : report.shapes) {
    const BenchResult& result = *find_result(shape, name);
    milliseconds.push_back(result.timing.median_seconds * 1e3);
    entry.relative_spread = std::max(entry.relative_spread, result.timing.relative_spread);
    if (const auto value = speed_up(shape, result)) speed_ups.push_back(*value);
  }
  entry.milliseconds = measure::geometric_mean(milliseconds);
  if (speed_ups.size() == report.shapes.size()) entry.speed_up = measure::geometric_mean(speed_ups);
  return entry;
}

void give_places(std::vector<Ranked>& ranked) {
  const Ranked* first = nullptr;  // of those that share a place
  for (size_t i = 0; i < ranked.size(); ++i) {
    Ranked& entry = ranked[i];
    entry.tied =
        first != nullptr && measure::within_noise({first->milliseconds, first->relative_spread},
                                                  {entry.milliseconds, entry.relative_spread});
    entry.place = entry.tied ? first->place : static_cast<int>(i) + 1;
    if (!entry.tied) first = &entry;
  }
}

}  // namespace

Ranking rank(const BenchReport& report) {
  Ranking ranking;
  const auto in_order = [&](std::vector<Ranked>& entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Ranked& x, const Ranked& y) {
      return x.milliseconds < y.milliseconds;
    });
  };
  for (const std::string& name : timed_names(report)) {
    std::string why;
    bool timed_everywhere = true;
    for (const BenchShape& shape : report.shapes) {
      if (why.empty()) why = why_not(shape, name);
      timed_everywhere = timed_everywhere && why_no_time(shape, name).empty();
    }
    if (timed_everywhere) ranking.provisional.push_back(entry_of(report, name));
    if (why.empty()) {
      ranking.ranked.push_back(entry_of(report, name));
    } else {
      ranking.unranked.push_back({name, why});
    }
  }
  in_order(ranking.ranked);
  give_places(ranking.ranked);
  if (!ranking.ranked.empty()) ranking.provisional.clear();
  in_order(ranking.provisional);
  return ranking;
}

}  // namespace dualgemm::cli
