#include "tools/cli/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/bench_ranking.hpp"
#include "tools/cli/check_text.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/report.hpp"
#include "tools/measure/judgement.hpp"

namespace dualgemm::cli {
namespace {

constexpr int kReportWidth = 100;  // of the picture in a file

std::string provenance_line(const BenchReport& report) {
  const Json build = provenance();
  return fmt::format("dualgemm {} revision {} ({}, {}), {}, {} threads, {}, seed {}, {}",
                     build["version"].get<std::string>(), build["revision"].get<std::string>(),
                     build["compiler"].get<std::string>(), build["build_type"].get<std::string>(),
                     report.device, report.threads, report.isa, report.seed, report.timestamp);
}

// "312 GOP/s", or why there is no number.
std::string peak_cell(double value, const char* unit) {
  return value > 0 ? fmt::format("{:.4g} {}", value, unit) : "unknown";
}

// Peaks that limited no strategy were not measured.
std::string peaks_line(const measure::Peaks& peaks, bool from_memory) {
  std::string text;
  const auto add = [&](const char* name, double value, const char* unit, bool always = false) {
    if (value <= 0 && !always) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, peak_cell(value, unit));
  };
  add("read", peaks.read_gbps, "GB/s", from_memory);
  add("VNNI dot", peaks.vnni_zmm_gops, "GOP/s");
  add("AVX2 dot", peaks.avx2_dot_gops, "GOP/s");
  add("fp32 FMA", std::max(peaks.fma_zmm_gflops, peaks.fma_ymm_gflops), "GFLOP/s");
  add("AMX bf16", peaks.amx_bf16_gflops, "GFLOP/s");
  return "peaks measured in the same rounds: " + (text.empty() ? "all unknown" : text);
}

std::string device_peaks_line(const verify::DevicePeaks& peaks) {
  return fmt::format(
      "peaks measured in the same rounds: cuBLASLt fp16 {}, E4M3 {} (8192^3), read {}",
      peak_cell(peaks.f16_gflops * 1e-3, "TFLOP/s"), peak_cell(peaks.e4m3_gflops * 1e-3, "TFLOP/s"),
      peak_cell(peaks.read_gbps, "GB/s"));
}

// What stands below a shape's table, line by line.
std::vector<std::string> notes_of(const BenchShape& shape) {
  std::vector<std::string> notes;
  if (shape.peaks) notes.push_back(peaks_line(*shape.peaks, shape.from_memory));
  if (shape.device_peaks) notes.push_back(device_peaks_line(*shape.device_peaks));
  if (!shape.from_memory && (shape.peaks || shape.device_peaks))
    notes.push_back("the operands lie in a cache: roofline of the arithmetic alone");
  int defects = 0, others = 0, host = 0;
  for (const BenchResult& result : shape.results) {
    defects += measure::is_defect(result.throughput.roofline_share) ? 1 : 0;
    others += result.timing.rejected_others;
    host += result.timing.rejected_host;
  }
  if (defects > 0) {
    notes.push_back(
        fmt::format("> 100 ?: a defect of the measurement ({} of them): the peaks were disturbed "
                    "or are not the limit here; measure again on a quiet machine",
                    defects));
  }
  std::string text =
      fmt::format("{} samples thrown away because other processes were busy", others + host);
  if (shape.operand_sets > 1)
    text += fmt::format("; {} sets of operands in turn", shape.operand_sets);
  notes.push_back(text);
  return notes;
}

std::string speed_up_cell(const BenchShape& shape, const BenchResult& result) {
  const std::optional<double> value = speed_up(shape, result);
  return value ? fmt::format("{:.2f}x", *value) : "-";
}

Table shape_table(const BenchShape& shape, bool on_gpu) {
  Table table({{"strategy", Align::kLeft},
               {on_gpu ? "us" : "ms"},
               {"noise %"},
               {"speed-up"},
               {on_gpu ? "TFLOP/s" : "GOP/s"},
               {"GB/s"},
               {"roofline %"},
               {"intermediates"},
               {"status", Align::kLeft}});
  for (const BenchResult& result : shape.results) {
    if (!result.timed()) {
      table.add_row({result.name(), "-", "-", "-", "-", "-", "-", "-", result.status()});
      continue;
    }
    const measure::Throughput& rate = result.throughput;
    table.add_row({result.name(),
                   on_gpu ? fmt::format("{:.2f}", result.timing.median_seconds * 1e6)
                          : fmt::format("{:.3f}", result.timing.median_seconds * 1e3),
                   measure::noise_text(result.timing), speed_up_cell(shape, result),
                   fmt::format("{:.1f}", on_gpu ? rate.gops * 1e-3 : rate.gops),
                   fmt::format("{:.2f}", rate.gbps), measure::share_text(rate.roofline_share),
                   format_bytes(result.info.intermediate_bytes), result.status()});
  }
  return table;
}

// The bars of the ranking, or of what stands in for one.
std::vector<Bar> bars_of(const BenchReport& report, const Ranking& ranking) {
  std::vector<Bar> bars;
  const auto add = [&](const Ranked& entry, const std::string& place) {
    const std::string note = entry.speed_up ? fmt::format("  {:.2f}x", *entry.speed_up) : "";
    const std::string time = report.on_gpu ? fmt::format("{:.2f} us", entry.milliseconds * 1e3)
                                           : fmt::format("{:.3f} ms", entry.milliseconds);
    bars.push_back({place + " " + entry.result->name(), entry.milliseconds, time + note});
  };
  for (const Ranked& entry : ranking.ranked)
    add(entry, fmt::format("{:>2}{}", entry.place, entry.tied ? '=' : ' '));
  for (const Ranked& entry : ranking.provisional) add(entry, " ? ");
  return bars;
}

// What the ranking rests on, and what it leaves out, line by line.
std::vector<std::string> ranking_notes(const BenchReport& report, const Ranking& ranking) {
  std::vector<std::string> notes;
  if (!ranking.provisional.empty()) {
    notes.push_back("?: of fewer than three quiet samples; a place may be wrong");
  } else if (ranking.ranked.empty()) {
    notes.push_back("no ranking: no strategy has a time and a right result for every shape");
  }
  const bool ties = std::any_of(ranking.ranked.begin(), ranking.ranked.end(),
                                [](const Ranked& entry) { return entry.tied; });
  if (ties) notes.push_back("=: closer to the first of this place than the noise of the two");
  for (const Unranked& entry : ranking.unranked)
    notes.push_back(fmt::format("not ranked: {} ({})", entry.name, entry.why));
  if (!report.monitored)
    notes.push_back("other processes could not be watched: no sample is known to be quiet");
  return notes;
}

std::string picture_title(const BenchReport& report, const Ranking& ranking) {
  return fmt::format(
      "{}: geometric mean over {} shape{}, shorter is better; x: times as fast as two_pass",
      ranking.provisional.empty() ? "Ranking"
                                  : "Provisional order (no ranking: too few quiet samples)",
      report.shapes.size(), report.shapes.size() == 1 ? "" : "s");
}

// A spread of too few samples, and a share that cannot be, are no numbers.
Json noise_json(const measure::QuietResult& timing) {
  return timing.samples < measure::kEnoughSamples ? Json(nullptr) : number(timing.relative_spread);
}
Json roofline_json(double share) {
  return share > 0 && !measure::is_defect(share) ? Json(share) : Json(nullptr);
}

Json result_json(const BenchShape& shape, const BenchResult& result) {
  Json json = {{"strategy", name_of(result.strategy)},
               {"prepared", result.prepared},
               {"status", result.status()},
               {"config", result.config}};
  if (!result.error.ok()) json["reason"] = result.error.message();
  if (result.timed()) {
    json.update(
        Json{{"median_ms", result.timing.median_seconds * 1e3},
             {"min_ms", result.timing.min_seconds * 1e3},
             {"relative_noise", noise_json(result.timing)},
             {"samples", result.timing.samples},
             {"quiet_samples", result.timing.quiet_samples},
             {"settled", measure::is_settled(result.timing)},
             {"runs", result.timing.runs},
             {"rejected_samples", result.timing.rejected_others + result.timing.rejected_host},
             {"disturbed", result.timing.disturbed},
             {"gops", result.throughput.gops},
             {"gbps", result.throughput.gbps},
             {"roofline_ms", result.throughput.roofline_seconds * 1e3},
             {"roofline_share", roofline_json(result.throughput.roofline_share)},
             {"roofline_defect", measure::is_defect(result.throughput.roofline_share)},
             {"intermediate_bytes", result.info.intermediate_bytes},
             {"threads", result.info.threads},
             {"isa", name_of(result.info.isa)}});
    if (const auto value = speed_up(shape, result)) json["speed_up_over_two_pass"] = *value;
  }
  if (result.check) json["check"] = to_json(*result.check), json["sampled"] = result.sampled;
  if (result.check && !result.sampled) json["differing_elements"] = result.differing;
  if (result.fp8) json["rel_l2"] = number(result.fp8->rel_l2);
  return json;
}

Json peaks_json(const BenchShape& shape) {
  if (shape.device_peaks) {
    return {{"f16_gflops", shape.device_peaks->f16_gflops},
            {"e4m3_gflops", shape.device_peaks->e4m3_gflops},
            {"read_gbps", shape.device_peaks->read_gbps}};
  }
  if (!shape.peaks) return nullptr;
  return {{"vnni_zmm_gops", shape.peaks->vnni_zmm_gops},
          {"avx2_dot_gops", shape.peaks->avx2_dot_gops},
          {"fma_zmm_gflops", shape.peaks->fma_zmm_gflops},
          {"fma_ymm_gflops", shape.peaks->fma_ymm_gflops},
          {"amx_bf16_gflops", shape.peaks->amx_bf16_gflops},
          {"read_gbps", shape.peaks->read_gbps}};
}

}  // namespace

bool BenchResult::failed() const {
  if (!error.ok()) return !skipped();
  if (fp8) return !fp8->is_fp8_rounding();
  return !check || !check->passed();
}

std::string BenchResult::name() const {
  return std::string(name_of(strategy)) + (also_unpacked ? " prepared" : "");
}

std::string BenchResult::status() const {
  if (skipped()) return "skipped: " + error.message();
  if (!error.ok()) return "ERROR: " + error.message();
  std::string text;
  if (fp8) {
    text = fmt::format("{}rel L2 error {:.2e}", failed() ? "WRONG: " : "inexact, ", fp8->rel_l2);
  } else if (!check) {
    text = "not checked";
  } else if (failed()) {
    text = fmt::format("WRONG: {} of {} elements", check->failed, check->compared);
  } else {
    text = sampled ? fmt::format("ok, {} elements", check->compared)
                   : (differing == 0 ? "ok, bit-identical"
                                     : fmt::format("ok, {} elements differ in bits", differing));
  }
  if (!timed()) return text + ", no time within the budget";
  if (timing.disturbed) text += ", disturbed";
  const std::string why = measure::why_unsettled(timing);
  return why.empty() ? text : text + ", not ranked: " + why;
}

bool BenchReport::failed() const {
  for (const BenchShape& shape : shapes) {
    for (const BenchResult& result : shape.results) {
      if (result.failed()) return true;
    }
  }
  return false;
}

std::string shape_name(const Problem& p) {
  return fmt::format("M {} N {} K {}{}", p.m, p.n, p.k, p.l == 1 ? "" : fmt::format(" L {}", p.l));
}

std::optional<double> speed_up(const BenchShape& shape, const BenchResult& result) {
  for (const BenchResult& other : shape.results) {
    if (other.strategy != StrategyId::kTwoPass || !measure::is_settled(other.timing)) continue;
    if (!measure::is_settled(result.timing)) continue;
    return other.timing.median_seconds / result.timing.median_seconds;
  }
  return std::nullopt;
}

std::string bench_text(const BenchReport& report, const Style& style) {
  std::string text = with_long_lines_broken(provenance_line(report), style.width);
  for (const BenchShape& shape : report.shapes) {
    text += "\n" + painted(shape_name(shape.problem), Paint::kBold, style.colour) + "\n" +
            shape_table(shape, report.on_gpu).text(style);
    for (const std::string& note : notes_of(shape))
      text += with_long_lines_broken(note, style.width);
  }
  const Ranking ranking = rank(report);
  const std::vector<Bar> bars = bars_of(report, ranking);
  text += "\n" + with_long_lines_broken(picture_title(report, ranking), style.width) +
          bar_picture(bars, bar_width(bars, style.width));
  for (const std::string& note : ranking_notes(report, ranking))
    text += with_long_lines_broken(note, style.width);
  return text;
}

std::string bench_markdown(const BenchReport& report) {
  std::string text = "# dualgemm bench\n\n" + provenance_line(report) + "\n";
  for (const BenchShape& shape : report.shapes) {
    text += fmt::format("\n## {}\n\n{}", shape_name(shape.problem),
                        shape_table(shape, report.on_gpu).markdown());
    for (const std::string& note : notes_of(shape)) text += "\n" + note + "\n";
  }
  const Ranking ranking = rank(report);
  const std::vector<Bar> bars = bars_of(report, ranking);
  text += "\n## Ranking\n\n" + picture_title(report, ranking) + "\n\n```\n" +
          bar_picture(bars, bar_width(bars, kReportWidth)) + "```\n";
  for (const std::string& note : ranking_notes(report, ranking)) text += "\n" + note + "\n";
  return text;
}

std::string bench_csv(const BenchReport& report) {
  std::vector<Column> columns;
  for (const char* title : {"m",
                            "n",
                            "k",
                            "l",
                            "strategy",
                            "config",
                            "median_ms",
                            "min_ms",
                            "relative_noise",
                            "speed_up_over_two_pass",
                            "gops",
                            "gbps",
                            "roofline_share",
                            "intermediate_bytes",
                            "samples",
                            "rejected_samples",
                            "quiet_samples",
                            "status",
                            "revision",
                            "device",
                            "seed",
                            "threads",
                            "version"}) {
    columns.push_back({title});
  }
  Table table(std::move(columns));
  const Json build = provenance();
  const std::string revision = build["revision"], version = build["version"];
  for (const BenchShape& shape : report.shapes) {
    for (const BenchResult& r : shape.results) {
      const Problem& p = shape.problem;
      const auto figure = [&](double value) {
        return r.timed() ? fmt::format("{:.6g}", value) : std::string();
      };
      const std::optional<double> ratio = speed_up(shape, r);
      table.add_row(
          {std::to_string(p.m),
           std::to_string(p.n),
           std::to_string(p.k),
           std::to_string(p.l),
           r.name(),
           r.config,
           figure(r.timing.median_seconds * 1e3),
           figure(r.timing.min_seconds * 1e3),
           r.timing.samples < measure::kEnoughSamples ? "" : figure(r.timing.relative_spread),
           ratio ? figure(*ratio) : "",
           figure(r.throughput.gops),
           figure(r.throughput.gbps),
           measure::is_defect(r.throughput.roofline_share) ? ""
                                                           : figure(r.throughput.roofline_share),
           r.timed() ? std::to_string(r.info.intermediate_bytes) : "",
           std::to_string(r.timing.samples),
           std::to_string(r.timing.rejected_others + r.timing.rejected_host),
           std::to_string(r.timing.quiet_samples),
           r.status(),
           revision,
           report.device,
           std::to_string(report.seed),
           std::to_string(r.info.threads),
           version});
    }
  }
  return table.csv();
}

std::string bench_json(const BenchReport& report) {
  Json json = {{"build", provenance()}, {"timestamp", report.timestamp},
               {"seed", report.seed},   {"threads", report.threads},
               {"isa", report.isa},     {"monitored", report.monitored}};
  json["shapes"] = Json::array();
  for (const BenchShape& shape : report.shapes) {
    Json results = Json::array();
    for (const BenchResult& result : shape.results) results.push_back(result_json(shape, result));
    json["shapes"].push_back({{"problem", to_json(shape.problem)},
                              {"operand_sets", shape.operand_sets},
                              {"from_memory", shape.from_memory},
                              {"peaks", peaks_json(shape)},
                              {"results", std::move(results)}});
  }
  const Ranking ranking = rank(report);
  json["ranking"] = Json::array();
  for (const Ranked& entry : ranking.ranked) {
    Json object = {{"place", entry.place},
                   {"tied", entry.tied},
                   {"strategy", name_of(entry.result->strategy)},
                   {"prepared", entry.result->prepared},
                   {"geometric_mean_ms", entry.milliseconds}};
    if (entry.speed_up) object["geometric_mean_speed_up"] = *entry.speed_up;
    json["ranking"].push_back(std::move(object));
  }
  json["provisional_order"] = Json::array();
  for (const Ranked& entry : ranking.provisional) {
    json["provisional_order"].push_back({{"strategy", name_of(entry.result->strategy)},
                                         {"prepared", entry.result->prepared},
                                         {"geometric_mean_ms", entry.milliseconds}});
  }
  json["not_ranked"] = Json::array();
  for (const Unranked& entry : ranking.unranked)
    json["not_ranked"].push_back({{"name", entry.name}, {"why", entry.why}});
  return dump(json);
}

}  // namespace dualgemm::cli
