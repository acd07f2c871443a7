#include "tools/cli/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/check_text.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

constexpr int kBarWidth = 50;

std::string shape_name(const Problem& p) {
  return fmt::format("M {} N {} K {}{}", p.m, p.n, p.k, p.l == 1 ? "" : fmt::format(" L {}", p.l));
}

std::string provenance_line(const BenchReport& report) {
  const Json build = provenance();
  return fmt::format("dualgemm {} revision {} ({}, {}), {}, {} threads, {}, seed {}, {}",
                     build["version"].get<std::string>(), build["revision"].get<std::string>(),
                     build["compiler"].get<std::string>(), build["build_type"].get<std::string>(),
                     report.device, report.threads, report.isa, report.seed, report.timestamp);
}

std::string peaks_line(const measure::Peaks& peaks) {
  return fmt::format(
      "peaks measured in this run: VNNI dot {:.0f} GOP/s, AVX2 dot {:.0f} GOP/s, fp32 FMA {:.0f} "
      "GFLOP/s, "
      "read {:.1f} GB/s",
      peaks.vnni_zmm_gops, peaks.avx2_dot_gops,
      std::max(peaks.fma_zmm_gflops, peaks.fma_ymm_gflops), peaks.read_gbps);
}

std::string device_peaks_line(const verify::DevicePeaks& peaks) {
  return fmt::format(
      "peaks measured in this run: cuBLASLt fp16 {:.0f} TFLOP/s, E4M3 {:.0f} TFLOP/s (8192^3), "
      "read "
      "{:.0f} GB/s",
      peaks.f16_gflops * 1e-3, peaks.e4m3_gflops * 1e-3, peaks.read_gbps);
}

// The line about peaks, or nothing.
std::string any_peaks_line(const BenchReport& report) {
  if (report.peaks) return peaks_line(*report.peaks) + "\n";
  return report.device_peaks ? device_peaks_line(*report.device_peaks) + "\n" : "";
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
    table.add_row(
        {result.name(),
         on_gpu ? fmt::format("{:.2f}", result.timing.median_seconds * 1e6)
                : fmt::format("{:.3f}", result.timing.median_seconds * 1e3),
         fmt::format("{:.1f}", result.timing.relative_spread * 100.0), speed_up_cell(shape, result),
         fmt::format("{:.1f}", on_gpu ? rate.gops * 1e-3 : rate.gops),
         fmt::format("{:.2f}", rate.gbps),
         rate.roofline_share > 0.0 ? fmt::format("{:.1f}", rate.roofline_share * 100.0) : "-",
         format_bytes(result.info.intermediate_bytes), result.status()});
  }
  return table;
}

struct Ranked {
  const BenchResult* result;  // for the first shape
  double milliseconds;        // geometric mean over the shapes
  std::optional<double> speed_up;
};

// Strategies that have a time for every shape, fastest first.
std::vector<Ranked> ranking(const BenchReport& report) {
  std::vector<Ranked> ranked;
  for (const BenchResult& candidate : report.shapes.front().results) {
    std::vector<double> milliseconds, speed_ups;
    for (const BenchShape& shape : report.shapes) {
      for (const BenchResult& result : shape.results) {
        if (result.name() != candidate.name() || !result.timed()) continue;
        milliseconds.push_back(result.timing.median_seconds * 1e3);
        if (const auto value = speed_up(shape, result)) speed_ups.push_back(*value);
      }
    }
    if (milliseconds.size() != report.shapes.size()) continue;
    Ranked entry{&candidate, measure::geometric_mean(milliseconds), std::nullopt};
    if (speed_ups.size() == report.shapes.size())
      entry.speed_up = measure::geometric_mean(speed_ups);
    ranked.push_back(entry);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& x, const Ranked& y) { return x.milliseconds < y.milliseconds; });
  return ranked;
}

std::string picture(const BenchReport& report) {
  std::vector<Bar> bars;
  for (const Ranked& entry : ranking(report)) {
    const std::string note = entry.speed_up ? fmt::format("  {:.2f}x", *entry.speed_up) : "";
    const std::string time = report.on_gpu ? fmt::format("{:.2f} us", entry.milliseconds * 1e3)
                                           : fmt::format("{:.3f} ms", entry.milliseconds);
    bars.push_back({entry.result->name(), entry.milliseconds, time + note});
  }
  return bar_picture(bars, kBarWidth);
}

std::string picture_title(const BenchReport& report) {
  return fmt::format(
      "Ranking: geometric mean over {} shape{}, shorter is better; x: times as fast as two_pass",
      report.shapes.size(), report.shapes.size() == 1 ? "" : "s");
}

std::string disturbance_line(const BenchShape& shape) {
  int others = 0, host = 0;
  for (const BenchResult& result : shape.results) {
    others += result.timing.rejected_others;
    host += result.timing.rejected_host;
  }
  std::string text =
      fmt::format("{} samples thrown away because other processes were busy", others + host);
  if (shape.operand_sets > 1)
    text += fmt::format("; {} sets of operands in turn", shape.operand_sets);
  return text;
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
             {"relative_noise", number(result.timing.relative_spread)},
             {"samples", result.timing.samples},
             {"runs", result.timing.runs},
             {"rejected_samples", result.timing.rejected_others + result.timing.rejected_host},
             {"disturbed", result.timing.disturbed},
             {"gops", result.throughput.gops},
             {"gbps", result.throughput.gbps},
             {"roofline_ms", result.throughput.roofline_seconds * 1e3},
             {"roofline_share", result.throughput.roofline_share},
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

}  // namespace

bool BenchResult::failed() const {
  if (!error.ok()) return !skipped();
  if (fp8) return !fp8->is_fp8_rounding();
  return !check || !check->passed();
}

std::string BenchResult::name() const {
  return std::string(name_of(strategy)) + (also_as_they_lie ? " prepared" : "");
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
  return timing.disturbed ? text + ", disturbed" : text;
}

bool BenchReport::failed() const {
  for (const BenchShape& shape : shapes) {
    for (const BenchResult& result : shape.results) {
      if (result.failed()) return true;
    }
  }
  return false;
}

std::optional<double> speed_up(const BenchShape& shape, const BenchResult& result) {
  for (const BenchResult& other : shape.results) {
    if (other.strategy != StrategyId::kTwoPass || !other.timed() || !result.timed()) continue;
    return other.timing.median_seconds / result.timing.median_seconds;
  }
  return std::nullopt;
}

std::string bench_text(const BenchReport& report) {
  std::string text = provenance_line(report) + "\n";
  text += any_peaks_line(report);
  for (const BenchShape& shape : report.shapes) {
    text += fmt::format("\n{}\n{}{}\n", shape_name(shape.problem),
                        shape_table(shape, report.on_gpu).text(), disturbance_line(shape));
  }
  return text + "\n" + picture_title(report) + "\n" + picture(report);
}

std::string bench_markdown(const BenchReport& report) {
  std::string text = "# dualgemm bench\n\n" + provenance_line(report) + "\n";
  if (const std::string peaks = any_peaks_line(report); !peaks.empty()) text += "\n" + peaks;
  for (const BenchShape& shape : report.shapes) {
    text += fmt::format("\n## {}\n\n{}\n{}\n", shape_name(shape.problem),
                        shape_table(shape, report.on_gpu).markdown(), disturbance_line(shape));
  }
  return text + "\n## Ranking\n\n" + picture_title(report) + "\n\n```\n" + picture(report) +
         "```\n";
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
                            "status",
                            "revision",
                            "device",
                            "seed"}) {
    columns.push_back({title});
  }
  Table table(std::move(columns));
  const std::string revision = provenance()["revision"];
  for (const BenchShape& shape : report.shapes) {
    for (const BenchResult& r : shape.results) {
      const Problem& p = shape.problem;
      const auto figure = [&](double value) {
        return r.timed() ? fmt::format("{:.6g}", value) : std::string();
      };
      const std::optional<double> ratio = speed_up(shape, r);
      table.add_row({std::to_string(p.m),
                     std::to_string(p.n),
                     std::to_string(p.k),
                     std::to_string(p.l),
                     r.name(),
                     r.config,
                     figure(r.timing.median_seconds * 1e3),
                     figure(r.timing.min_seconds * 1e3),
                     figure(r.timing.relative_spread),
                     ratio ? figure(*ratio) : "",
                     figure(r.throughput.gops),
                     figure(r.throughput.gbps),
                     figure(r.throughput.roofline_share),
                     r.timed() ? std::to_string(r.info.intermediate_bytes) : "",
                     std::to_string(r.timing.samples),
                     std::to_string(r.timing.rejected_others + r.timing.rejected_host),
                     r.status(),
                     revision,
                     report.device,
                     std::to_string(report.seed)});
    }
  }
  return table.csv();
}

std::string bench_json(const BenchReport& report) {
  Json json = {{"build", provenance()}, {"timestamp", report.timestamp},
               {"seed", report.seed},   {"threads", report.threads},
               {"isa", report.isa},     {"monitored", report.monitored}};
  if (report.peaks) {
    json["peaks"] = {{"vnni_zmm_gops", report.peaks->vnni_zmm_gops},
                     {"avx2_dot_gops", report.peaks->avx2_dot_gops},
                     {"fma_zmm_gflops", report.peaks->fma_zmm_gflops},
                     {"fma_ymm_gflops", report.peaks->fma_ymm_gflops},
                     {"amx_bf16_gflops", report.peaks->amx_bf16_gflops},
                     {"read_gbps", report.peaks->read_gbps}};
  }
  if (report.device_peaks) {
    json["device_peaks"] = {{"f16_gflops", report.device_peaks->f16_gflops},
                            {"e4m3_gflops", report.device_peaks->e4m3_gflops},
                            {"read_gbps", report.device_peaks->read_gbps}};
  }
  json["shapes"] = Json::array();
  for (const BenchShape& shape : report.shapes) {
    Json results = Json::array();
    for (const BenchResult& result : shape.results) results.push_back(result_json(shape, result));
    json["shapes"].push_back({{"problem", to_json(shape.problem)},
                              {"operand_sets", shape.operand_sets},
                              {"results", std::move(results)}});
  }
  json["ranking"] = Json::array();
  for (const Ranked& entry : ranking(report)) {
    Json object = {{"strategy", name_of(entry.result->strategy)},
                   {"prepared", entry.result->prepared},
                   {"geometric_mean_ms", entry.milliseconds}};
    if (entry.speed_up) object["geometric_mean_speed_up"] = *entry.speed_up;
    json["ranking"].push_back(std::move(object));
  }
  return dump(json);
}

}  // namespace dualgemm::cli
