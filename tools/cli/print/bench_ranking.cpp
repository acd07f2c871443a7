#include "tools/cli/print/bench_ranking.hpp"

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

// Why `name` has no time to compare for some shape; empty: it has one for each.
std::string why_not(const BenchReport& report, const std::string& name) {
  for (const BenchShape& shape : report.shapes) {
    const BenchResult* result = find_result(shape, name);
    const bool timed = result != nullptr && result->timed();
    if (timed && !result->failed()) continue;
    return shape_name(shape.problem) + ": " + (timed ? "its result is wrong" : "no time");
  }
  return {};
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
  Ranked entry{};
  entry.result = find_result(report.shapes.front(), name);
  for (const BenchShape& shape : report.shapes) {
    const BenchResult& result = *find_result(shape, name);
    milliseconds.push_back(result.timing.median_seconds * 1e3);
    const measure::Estimate value = speed_up(shape, result);
    if (value.value > 0) speed_ups.push_back(value.value);
  }
  entry.milliseconds = measure::geometric_mean(milliseconds);
  if (speed_ups.size() == report.shapes.size()) entry.speed_up = measure::geometric_mean(speed_ups);
  return entry;
}

// Compares each with each.
void give_places(const BenchReport& report, Ranking& ranking) {
  ranking.confidence = ranking.ranked.size() > 1 ? 1.0 : 0.0;
  for (Ranked& entry : ranking.ranked) {
    entry.place = 1;
    for (const Ranked& other : ranking.ranked) {
      if (&other == &entry) continue;
      const std::string name = other.result->name();
      const measure::Interval ratio = time_ratio(report, entry.result->name(), name).interval;
      ranking.confidence = std::min(ranking.confidence, ratio.confidence);
      const measure::Comparison order = measure::compare(ratio);
      if (order == measure::Comparison::kSlower) ++entry.place;
      if (order == measure::Comparison::kTied) entry.tied.push_back(name);
    }
  }
}

}  // namespace

measure::Estimate time_ratio(const BenchReport& report, const std::string& x,
                             const std::string& y) {
  std::vector<double> ratios;
  for (const BenchShape& shape : report.shapes) {
    const BenchResult* of_x = find_result(shape, x);
    const BenchResult* of_y = find_result(shape, y);
    if (of_x == nullptr || of_y == nullptr) continue;
    const std::vector<double> rounds = measure::round_ratios(of_x->timing, of_y->timing);
    ratios.insert(ratios.end(), rounds.begin(), rounds.end());
  }
  return measure::estimate(ratios);
}

Ranking rank(const BenchReport& report) {
  Ranking ranking;
  for (const std::string& name : timed_names(report)) {
    const std::string why = why_not(report, name);
    if (why.empty()) {
      ranking.ranked.push_back(entry_of(report, name));
    } else {
      ranking.unranked.push_back({name, why});
    }
  }
  give_places(report, ranking);
  std::stable_sort(ranking.ranked.begin(), ranking.ranked.end(),
                   [](const Ranked& x, const Ranked& y) {
                     if (x.place != y.place) return x.place < y.place;
                     return x.milliseconds < y.milliseconds;
                   });
  for (Ranked& entry : ranking.ranked) {
    const std::string first = ranking.ranked.front().result->name();
    if (entry.result->name() != first)
      entry.over_first = time_ratio(report, entry.result->name(), first);
  }
  return ranking;
}

}  // namespace dualgemm::cli
