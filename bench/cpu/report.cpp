#include "bench/cpu/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "bench_build_info.hpp"  // written by CMake: revision, compiler, flags

namespace dualgemm::bench {
namespace {

std::string in_markdown(const Table& table) {
  std::vector<size_t> widths(table.header.size());
  const auto widen = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text = "|";
    for (size_t i = 0; i < row.size(); ++i) text += fmt::format(" {:<{}} |", row[i], widths[i]);
    return text + "\n";
  };
  std::string text = fmt::format("### {}\n\n{}|", table.title, line(table.header));
  for (const size_t width : widths) text += std::string(width + 2, '-') + "|";
  text += "\n";
  for (const auto& row : table.rows) text += line(row);
  for (const std::string& note : table.notes) text += "\n" + note + "\n";
  return text + "\n";
}

// null: not known.
nlohmann::ordered_json interval_json(const measure::Interval& interval) {
  if (!interval.known()) return nullptr;
  return nlohmann::ordered_json::array({interval.low, interval.high});
}

measure::Estimate scaled(measure::Estimate estimate, double factor) {
  estimate.value *= factor;
  estimate.interval.low *= factor;
  estimate.interval.high *= factor;
  return estimate;
}

}  // namespace

Report::Report(Suite& suite, const measure::RoundReport& measured)
    : suite_(suite), measured_(measured) {
  for (size_t i = 0; i < measured.cases.size(); ++i) {
    const SuiteCase& item = suite.cases()[i];
    results_[item.name] = &measured.cases[i];
    giga_[item.name] = item.giga_per_run;
    if (item.gemm) gemms_[item.name] = item.gemm.get();
  }
  read_peaks();
  add_environment();
  add_speed_table();
  add_isa_table();
  add_type_table();
  for (const int64_t m : kStrategyM) add_strategy_table(m);
  add_quantizer_table();
  for (const RowsSeries& series : rows_series(suite.options())) add_rows_table(series);
  add_peak_table();
  add_skipped_table();
}

const measure::CaseTimes* Report::find(const std::string& name) const {
  const auto found = results_.find(name);
  return found == results_.end() || found->second->samples == 0 ? nullptr : found->second;
}

double Report::seconds(const std::string& name) const {
  const measure::CaseTimes* result = find(name);
  return result == nullptr ? 0 : result->median_seconds;
}

double Report::rate(const std::string& name) const {
  const double time = seconds(name);
  return time > 0 ? giga_.at(name) / time : 0;
}

std::string Report::time_cell(const std::string& name) const {
  const measure::CaseTimes* result = find(name);
  if (result == nullptr) return kNone;
  const double ms = 1e3 * result->median_seconds;
  const int digits = ms < 10 ? 3 : ms < 100 ? 2 : 1;
  const bool has_spread = result->samples >= measure::kSamplesOfASpread;
  return fmt::format("{:.{}f} ({}{})", ms, digits, measure::noise_text(*result),
                     has_spread ? " %" : "");
}

measure::Estimate Report::time_ratio(const std::string& x, const std::string& y) const {
  const measure::CaseTimes *of_x = find(x), *of_y = find(y);
  if (of_x == nullptr || of_y == nullptr) return {};
  return measure::estimate(measure::round_ratios(*of_x, *of_y));
}

measure::Estimate Report::rate_ratio(const std::string& x, const std::string& y) const {
  const measure::Estimate ratio = time_ratio(y, x);
  return ratio.value > 0 ? scaled(ratio, giga_.at(x) / giga_.at(y)) : ratio;
}

measure::Estimate Report::rate_estimate(const std::string& name) const {
  const measure::CaseTimes* times = find(name);
  if (times == nullptr) return {};
  const double giga = giga_.at(name);
  const measure::Interval& seconds = times->interval;
  const bool known = seconds.known();
  return {giga / times->median_seconds,
          {known ? giga / seconds.high : 0, known ? giga / seconds.low : 0, seconds.confidence}};
}

std::string Report::add_bar(const Bar& bar) {
  const SuiteOptions reference;  // the bars were set for its shape
  const SuiteOptions& options = suite_.options();
  if (bar.value.value <= 0 || options.n != reference.n || options.k != reference.k) return kNone;
  bars_.push_back(bar);
  return name_of(bar.verdict());
}

void Report::read_peaks() {
  peaks_.threads = suite_.options().threads;
  for (const measure::PeakCase& peak : suite_.peaks()) {
    double& best = peaks_.*peak.field;
    best = std::max(best, rate("peak/" + peak.name));
  }
}

void Report::add_environment() {
  const DeviceCaps& caps = device_caps();
  std::string isas;
  for (const Isa isa : caps.isas) isas += (isas.empty() ? "" : " ") + std::string(name_of(isa));
  const SuiteOptions& options = suite_.options();
  environment_ = {
      {"device", caps.name},
      {"instruction_sets", isas},
      {"threads", options.threads},
      {"n", options.n},
      {"k", options.k},
      {"date", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))},
      {"revision", kBuildRevision},
      {"compiler", kBuildCompiler},
      {"flags", kBuildFlags},
      {"openblas", suite_.baseline_config()},
      {"rounds", measured_.rounds},
      {"seconds", measured_.seconds},
      {"budget_spent", measured_.budget_spent},
      {"processors_used_by_others", measured_.other_processors
                                        ? nlohmann::ordered_json(*measured_.other_processors)
                                        : nlohmann::ordered_json()},
  };
}

std::string Report::markdown() const {
  std::string text = "## dualgemm CPU benchmark\n\n";
  for (const auto& [key, value] : environment_.items()) {
    text +=
        fmt::format("- {}: {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  text += "\n";
  for (const Table& table : tables_) text += in_markdown(table);
  int met = 0, open = 0;
  for (const Bar& bar : bars_) {
    met += bar.verdict() == Verdict::kMet ? 1 : 0;
    open += bar.verdict() == Verdict::kNotJudged ? 1 : 0;
  }
  text += fmt::format("Bars met: {} of {}; {} not judged.\n", met, bars_.size(), open);
  for (const Bar& bar : bars_) {
    if (bar.verdict() == Verdict::kMet) continue;
    const bool judged = bar.verdict() == Verdict::kNotMet;
    text += fmt::format("- {}: {}: {:.3f} [{}], {} {:.3f}{}\n", judged ? "not met" : "not judged",
                        bar.what, bar.value.value, measure::interval_text(bar.value.interval),
                        bar.at_least ? "at least" : "at most", bar.bound,
                        judged ? "" : ": " + bar.why());
  }
  text +=
      "\nSpread: interquartile range over the median; n/a: too few samples for one, with their "
      "number.\n"
      "[ ]: where the median of the rounds' ratios lies, at 95 % confidence from six rounds on; a "
      "bar "
      "is judged where all of it lies on one side.\n"
      "> 100 ?: faster than the peak measured in this run allows: a defect of the measurement.\n";
  return text;
}

nlohmann::ordered_json Report::json() const {
  const nlohmann::ordered_json none = nlohmann::ordered_json::array();
  nlohmann::ordered_json root{
      {"environment", environment_}, {"cases", none}, {"bars", none}, {"skipped", none}};
  for (const measure::PeakCase& peak : suite_.peaks())
    root["peaks"][peak.name] = rate("peak/" + peak.name);
  for (const SuiteCase& item : suite_.cases()) {
    const measure::CaseTimes& result = *results_.at(item.name);
    nlohmann::ordered_json entry{
        {"name", item.name},
        {"median_seconds", result.median_seconds},
        {"min_seconds", result.min_seconds},
        {"relative_spread", result.samples < measure::kSamplesOfASpread
                                ? nlohmann::ordered_json(nullptr)
                                : nlohmann::ordered_json(result.relative_spread)},
        {"giga_per_second", rate(item.name)},
        {"samples", result.samples},
        {"runs", result.runs},
        {"interval_seconds", interval_json(result.interval)},
        {"confidence", result.interval.confidence}};
    if (item.gemm) {
      entry["config"] = item.gemm->plan().config();
      entry["isa"] = name_of(item.gemm->info().isa);
      entry["threads"] = item.gemm->info().threads;
      entry["intermediate_bytes"] = item.gemm->info().intermediate_bytes;
    }
    root["cases"].push_back(std::move(entry));
  }
  for (const Bar& bar : bars_) {
    root["bars"].push_back({{"what", bar.what},
                            {"value", bar.value.value},
                            {"interval", interval_json(bar.value.interval)},
                            {"confidence", bar.value.interval.confidence},
                            {bar.at_least ? "at_least" : "at_most", bar.bound},
                            {"verdict", name_of(bar.verdict())},
                            {"met", bar.verdict() == Verdict::kMet}});
  }
  for (const SkippedCase& skipped : suite_.skipped()) {
    root["skipped"].push_back({{"name", skipped.name}, {"reason", skipped.reason.message()}});
  }
  return root;
}

}  // namespace dualgemm::bench
