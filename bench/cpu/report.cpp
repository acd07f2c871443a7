#include "bench/cpu/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "bench_build_info.hpp"  // written by CMake: revision, compiler, flags

namespace dualgemm::bench {
namespace {

// The bars of the speed table: share of the VNNI peak; M = 1: share of the read bandwidth.
struct SpeedBar {
  int64_t m;
  bool prepared;
  double share;
};
constexpr SpeedBar kSpeedBars[] = {{1, false, 0.80},   {16, true, 0.30},   {16, false, 0.20},
                                   {64, false, 0.38},  {256, false, 0.46}, {512, false, 0.50},
                                   {2048, false, 0.50}};
constexpr double kOverOpenblasAt512 = 2.8;
constexpr double kAvx2ShareOfCeiling = 0.70;
constexpr double kSlowerThanStrategy = 1.05;
constexpr double kQuantizerGbps = 1.0;

const std::string kNone = "-";

std::string percent(double part, double whole) {
  if (!(part > 0 && whole > 0)) return kNone;
  const std::string share = measure::share_text(part / whole);
  return measure::is_defect(part / whole) ? share : share + " %";
}
std::string number(double value, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : kNone;
}
std::string times(double ratio) { return ratio > 0 ? fmt::format("{:.2f}", ratio) : kNone; }

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
    if (peak.field == &measure::Peaks::read_gbps) read_peak_ = name;
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

void Report::add_peak_table() {
  Table table{"Peaks of this machine, measured in this run", {"loop", "what", "peak"}, {}, {}};
  for (const measure::PeakCase& peak : suite_.peaks()) {
    const bool bytes = peak.field == &measure::Peaks::read_gbps;
    table.rows.push_back({peak.name, peak.what,
                          number(rate("peak/" + peak.name), 1) + (bytes ? " GB/s" : " GOP/s")});
  }
  // A block does more than its dot products: on any machine, a quiet measurement finds it slower.
  if (peaks_.vnni_block_gops > peaks_.vnni_zmm_gops ||
      peaks_.avx2_block_gops > peaks_.avx2_dot_gops)
    table.notes.push_back("A loop over blocks is above its dot products alone: disturbed peaks.");
  tables_.push_back(std::move(table));
}

void Report::add_speed_table() {
  Table table{
      "Fused, whole operation including packing",
      {"M", "weights", "time ms (spread)", "GOP/s", "of VNNI peak", "of block ceiling", "GB/s",
       "of read bandwidth", "OpenBLAS ms (spread)", "times OpenBLAS", "bar", "met", "differs by"},
      {},
      {}};
  const double weights = 1e-9 * static_cast<double>(suite_.weight_bytes());
  for (const SpeedBar& bar : kSpeedBars) {
    const std::string name = speed_name(bar.m, bar.prepared);
    const double time = seconds(name);
    if (time <= 0) continue;
    const bool by_bandwidth = bar.m == 1;
    const std::string baseline = fmt::format("sgemm/m{}", bar.m);
    const double peak = by_bandwidth ? peaks_.read_gbps : peaks_.vnni_zmm_gops;
    const std::string peak_name = by_bandwidth ? read_peak_ : "peak/vnni_zmm";
    const double reached = by_bandwidth ? weights / time : rate(name);
    const std::string what =
        fmt::format("M={}{}: share of {}", bar.m, bar.prepared ? " prepared" : "",
                    by_bandwidth ? "read bandwidth" : "VNNI peak");
    const double difference = suite_.difference_to_baseline(*gemms_.at(name));
    table.rows.push_back({std::to_string(bar.m), bar.prepared ? "prepared" : "raw", time_cell(name),
                          number(rate(name), 0), percent(rate(name), peaks_.vnni_zmm_gops),
                          percent(rate(name), peaks_.vnni_block_gops), number(weights / time, 1),
                          percent(weights / time, peaks_.read_gbps), time_cell(baseline),
                          times(seconds(baseline) / time), fmt::format("{:.0f} %", 100 * bar.share),
                          peak > 0
                              ? add_bar({what, reached / peak, bar.share, true, /*is_share=*/true},
                                        {name, peak_name})
                              : kNone,
                          difference < 0 ? kNone : fmt::format("{:.1e}", difference)});
  }
  if (table.rows.empty()) return;
  const double over_openblas = seconds("sgemm/m512") / std::max(1e-12, seconds("speed/m512"));
  if (seconds("speed/m512") > 0 && over_openblas > 0) {
    const std::string met =
        add_bar({"M=512: times OpenBLAS", over_openblas, kOverOpenblasAt512, true},
                {"speed/m512", "sgemm/m512"});
    table.notes.push_back(fmt::format("M=512: {:.2f} times OpenBLAS sgemm; bar {}; met: {}.",
                                      over_openblas, kOverOpenblasAt512, met));
  }
  table.notes.push_back(
      "The bar is a share of the VNNI peak, at M=1 of the read bandwidth; there the runs take "
      "turns "
      "through more than 200 MB of weights, so that no cache helps. OpenBLAS: two sgemm on weights "
      "and activations decoded to FP32 before the clock starts, then the activation. \"Differs "
      "by\": "
      "largest difference between the two outputs over the largest output (FP16 rounding: 5e-4).");
  tables_.push_back(std::move(table));
}

void Report::add_isa_table() {
  Table table{"Forced instruction sets",
              {"ISA", "M", "time ms (spread)", "GOP/s", "ceiling", "of its ceiling", "bar", "met"},
              {},
              {}};
  for (const Isa isa : {Isa::kAvx2, Isa::kAmxBf16}) {
    const bool avx2 = isa == Isa::kAvx2;
    const double ceiling = avx2 ? peaks_.avx2_block_gops : peaks_.amx_bf16_gflops;
    for (const int64_t m : {int64_t{64}, int64_t{512}}) {
      const std::string name = fmt::format("isa/{}/m{}", name_of(isa), m);
      if (seconds(name) <= 0) continue;
      const bool has_bar = avx2 && m == 512 && ceiling > 0;
      const std::string what = fmt::format("{} M={}: share of its own ceiling", name_of(isa), m);
      table.rows.push_back({name_of(isa), std::to_string(m), time_cell(name), number(rate(name), 0),
                            number(ceiling, 0), percent(rate(name), ceiling),
                            has_bar ? fmt::format("{:.0f} %", 100 * kAvx2ShareOfCeiling) : kNone,
                            has_bar ? add_bar({what, rate(name) / ceiling, kAvx2ShareOfCeiling,
                                               true, /*is_share=*/true},
                                              {name, "peak/avx2_block"})
                                    : kNone});
    }
  }
  if (table.rows.empty()) return;
  table.notes.push_back(
      "Ceiling of AVX2: the register-only block sequence; of AMX: tdpbf16ps without loads.");
  tables_.push_back(std::move(table));
}

void Report::add_type_table() {
  Table table{
      "Other operand types, fused, raw weights",
      {"a", "d", "M", "time ms (spread)", "GOP/s", "of VNNI peak", "time over NVFP4 -> FP16"},
      {},
      {}};
  for (const int64_t m : {int64_t{1}, int64_t{16}, int64_t{512}}) {
    for (const bool wide_a : {true, false}) {
      const std::string name = fmt::format("types/{}/m{}", wide_a ? "a_f16" : "d_e2m1", m);
      const double plain = seconds(speed_name(m, false));
      if (seconds(name) <= 0) continue;
      table.rows.push_back({wide_a ? "f16" : "e2m1", wide_a ? "f16" : "e2m1", std::to_string(m),
                            time_cell(name), number(rate(name), 0),
                            percent(rate(name), peaks_.vnni_zmm_gops),
                            plain > 0 ? times(seconds(name) / plain) : kNone});
    }
  }
  if (!table.rows.empty()) tables_.push_back(std::move(table));
}

void Report::add_strategy_table(int64_t m) {
  Table table{fmt::format("Strategies at M={}", m),
              {"strategy", "weights", "time ms (spread)", "speed-up over two_pass", "fused / this",
               "intermediate bytes", "config", "fused not slower"},
              {},
              {}};
  const double two_pass = seconds(strategy_name(StrategyId::kTwoPass, m));
  std::string fused_prepared = strategy_name(StrategyId::kFused, m);
  if (seconds(fused_prepared) <= 0) fused_prepared = speed_name(m, true);
  std::vector<std::string> names;
  for (const StrategyId strategy : all_strategies()) {
    if (strategy == StrategyId::kFused) names.push_back(speed_name(m, false));
    names.push_back(strategy == StrategyId::kFused ? fused_prepared : strategy_name(strategy, m));
  }
  bool has_others = false;
  for (const std::string& name : names) {
    const double time = seconds(name);
    if (time <= 0) continue;
    const GemmSpec& spec = gemms_.at(name)->spec();
    const std::string fused_name = spec.prepared ? fused_prepared : speed_name(m, false);
    const double fused = seconds(fused_name);
    const bool fused_itself = spec.strategy == StrategyId::kFused;
    // fp8 computes something else (its operands are rounded again), so it sets no bar.
    const bool judged = !fused_itself && spec.strategy != StrategyId::kFp8 && fused > 0;
    has_others = has_others || !fused_itself;
    const std::string what = fmt::format("M={}: fused over {}", m, name_of(spec.strategy));
    table.rows.push_back(
        {name_of(spec.strategy), spec.prepared ? "prepared" : "raw", time_cell(name),
         times(two_pass / time), fused > 0 ? fmt::format("{:.3f}", fused / time) : kNone,
         std::to_string(gemms_.at(name)->info().intermediate_bytes),
         gemms_.at(name)->plan().config(),
         judged ? add_bar({what, fused / time, kSlowerThanStrategy, /*at_least=*/false},
                          {name, fused_name})
                : kNone});
  }
  if (has_others) tables_.push_back(std::move(table));
}

void Report::add_quantizer_table() {
  Table table{"Quantiser, input bytes a second",
              {"input", "time ms (spread)", "GB/s", "bar", "met"},
              {},
              {}};
  for (const char* type : {"f32", "bf16"}) {
    const std::string name = fmt::format("quantizer/{}", type);
    if (seconds(name) <= 0) continue;
    const bool has_bar = std::string(type) == "f32";
    table.rows.push_back(
        {type, time_cell(name), number(rate(name), 2),
         has_bar ? fmt::format("{:.0f} GB/s", kQuantizerGbps) : kNone,
         has_bar
             ? add_bar({"quantiser, GB/s of fp32 input", rate(name), kQuantizerGbps, true}, {name})
             : kNone});
  }
  if (!table.rows.empty()) tables_.push_back(std::move(table));
}

void Report::add_skipped_table() {
  Table table{"Not run", {"case", "reason"}, {}, {}};
  for (const SkippedCase& skipped : suite_.skipped()) {
    table.rows.push_back({skipped.name, skipped.reason.message()});
  }
  for (const measure::QuietResult& result : measured_.cases) {
    if (result.samples == 0) table.rows.push_back({result.name, "the time budget was spent"});
  }
  if (!table.rows.empty()) tables_.push_back(std::move(table));
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
