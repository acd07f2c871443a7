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

}  // namespace

Report::Report(Suite& suite, const measure::QuietReport& measured)
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
  add_peak_table();
  add_skipped_table();
}

const measure::QuietResult* Report::find(const std::string& name) const {
  const auto found = results_.find(name);
  return found == results_.end() || found->second->samples == 0 ? nullptr : found->second;
}

double Report::seconds(const std::string& name) const {
  const measure::QuietResult* result = find(name);
  return result == nullptr ? 0 : result->median_seconds;
}

double Report::rate(const std::string& name) const {
  const double time = seconds(name);
  return time > 0 ? giga_.at(name) / time : 0;
}

std::string Report::time_cell(const std::string& name) const {
  const measure::QuietResult* result = find(name);
  if (result == nullptr) return kNone;
  const double ms = 1e3 * result->median_seconds;
  const int digits = ms < 10 ? 3 : ms < 100 ? 2 : 1;
  const bool has_spread = result->samples >= measure::kEnoughSamples;
  return fmt::format("{:.{}f} ({}{}){}", ms, digits, measure::noise_text(*result),
                     has_spread ? " %" : "", measure::is_settled(*result) ? "" : " *");
}

bool Report::is_settled(const std::string& name) const {
  const measure::QuietResult* result = find(name);
  return result != nullptr && measure::is_settled(*result);
}

std::string Report::add_bar(Bar bar, const std::vector<std::string>& names) {
  const SuiteOptions reference;  // the bars were set for its shape
  const SuiteOptions& options = suite_.options();
  if (bar.value <= 0 || options.n != reference.n || options.k != reference.k) return kNone;
  for (const std::string& name : names) bar.settled = bar.settled && is_settled(name);
  bars_.push_back(bar);
  return name_of(bar.verdict());
}

void Report::read_peaks() {
  peaks_.threads = suite_.options().threads;
  for (const measure::PeakCase& peak : suite_.peaks()) {
    const std::string name = "peak/" + peak.name;
    if (!is_settled(name) || rate(name) <= peaks_.*peak.field) continue;
    peaks_.*peak.field = rate(name);
  }
}

void Report::add_environment() {
  const DeviceCaps& caps = device_caps();
  std::string isas;
  for (const Isa isa : caps.isas) isas += (isas.empty() ? "" : " ") + std::string(name_of(isa));
  const SuiteOptions& options = suite_.options();
  int rejected_others = 0, rejected_host = 0, disturbed = 0;
  for (const measure::QuietResult& result : measured_.cases) {
    rejected_others += result.rejected_others;
    rejected_host += result.rejected_host;
    disturbed += result.disturbed ? 1 : 0;
  }
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
      {"seconds_waited_for_idle", measured_.waited_seconds},
      {"samples_rejected_others", rejected_others},
      {"samples_rejected_host", rejected_host},
      {"cases_disturbed", disturbed},
      {"budget_spent", measured_.budget_spent},
      {"monitored", measured_.monitored},
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
    const std::string figure = bar.verdict() == Verdict::kNotJudged
                                   ? bar.why()
                                   : fmt::format("{:.3f}, {} {:.3f}", bar.value,
                                                 bar.at_least ? "at least" : "at most", bar.bound);
    text += fmt::format("- {}: {}: {}\n",
                        bar.verdict() == Verdict::kNotJudged ? "not judged" : "not met", bar.what,
                        figure);
  }
  text +=
      "\nSpread: interquartile range over the median; n/a: too few samples for one, with their "
      "number.\n"
      "\\* fewer than three quiet samples; with disturbed ones, the least disturbed stand in.\n"
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
    const measure::QuietResult& result = *results_.at(item.name);
    nlohmann::ordered_json entry{
        {"name", item.name},
        {"median_seconds", result.median_seconds},
        {"min_seconds", result.min_seconds},
        {"relative_spread", result.samples < measure::kEnoughSamples
                                ? nlohmann::ordered_json(nullptr)
                                : nlohmann::ordered_json(result.relative_spread)},
        {"giga_per_second", rate(item.name)},
        {"samples", result.samples},
        {"runs", result.runs},
        {"rejected_others", result.rejected_others},
        {"rejected_host", result.rejected_host},
        {"quiet_samples", result.quiet_samples},
        {"settled", measure::is_settled(result)},
        {"disturbed", result.disturbed}};
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
                            {"value", bar.value},
                            {bar.at_least ? "at_least" : "at_most", bar.bound},
                            {"verdict", name_of(bar.verdict())},
                            {"met", bar.verdict() == Verdict::kMet},
                            {"settled", bar.settled}});
  }
  for (const SkippedCase& skipped : suite_.skipped()) {
    root["skipped"].push_back({{"name", skipped.name}, {"reason", skipped.reason.message()}});
  }
  return root;
}

}  // namespace dualgemm::bench
