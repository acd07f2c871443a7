#include "tools/cli/print/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/print/bench_ranking.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
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
  add("NEON dot", peaks.sdot_gops, "GOP/s");
  add("NEON matrix", peaks.smmla_gops, "GOP/s");
  add("fp32 FMA", std::max({peaks.fma_zmm_gflops, peaks.fma_ymm_gflops, peaks.fma_neon_gflops}),
      "GFLOP/s");
  add("bf16 pairs", peaks.bf16_zmm_gflops, "GFLOP/s");
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
  int defects = 0;
  for (const BenchResult& result : shape.results)
    defects += measure::is_defect(result.throughput.roofline_share) ? 1 : 0;
  if (defects > 0) {
    notes.push_back(
        fmt::format("> 100 ?: a defect of the measurement ({} of them): the peaks were disturbed "
                    "or are not the limit here; measure again beside less other work",
                    defects));
  }
  std::string text = fmt::format("{} round{}", shape.rounds, shape.rounds == 1 ? "" : "s");
  if (shape.operand_sets > 1)
    text += fmt::format("; {} sets of operands in turn", shape.operand_sets);
  notes.push_back(text);
  return notes;
}

std::string speed_up_cell(const BenchShape& shape, const BenchResult& result) {
  const measure::Estimate value = speed_up(shape, result);
  return value.value > 0 ? fmt::format("{:.2f}x", value.value) : "-";
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

std::vector<Bar> bars_of(const BenchReport& report, const Ranking& ranking) {
  std::vector<Bar> bars;
  for (const Ranked& entry : ranking.ranked) {
    std::string note = report.on_gpu ? fmt::format("{:.2f} us", entry.milliseconds * 1e3)
                                     : fmt::format("{:.3f} ms", entry.milliseconds);
    if (entry.speed_up) note += fmt::format("  {:.2f}x", *entry.speed_up);
    if (entry.over_first.value > 0)
      note += fmt::format("  [{}]", measure::interval_text(entry.over_first.interval));
    const std::string place = fmt::format("{:>2}{}", entry.place, entry.tied.empty() ? ' ' : '=');
    bars.push_back({place + " " + entry.result->name(), entry.milliseconds, note});
  }
  return bars;
}

// Pairs of one place that can be told apart, or of two places that cannot: "a and b, c and d", each
// once, the one in front first.
std::string pairs_text(const Ranking& ranking, bool of_one_place) {
  std::string text;
  for (size_t i = 0; i < ranking.ranked.size(); ++i) {
    const Ranked& first = ranking.ranked[i];
    for (size_t j = i + 1; j < ranking.ranked.size(); ++j) {
      const Ranked& second = ranking.ranked[j];
      const std::string name = second.result->name();
      const bool is_tied =
          std::find(first.tied.begin(), first.tied.end(), name) != first.tied.end();
      if ((first.place == second.place) != of_one_place || is_tied == of_one_place) continue;
      text += fmt::format("{}{} and {}", text.empty() ? "" : ", ", first.result->name(), name);
    }
  }
  return text;
}

// What the ranking rests on, and what it leaves out, line by line.
std::vector<std::string> ranking_notes(const BenchReport& report, const Ranking& ranking) {
  std::vector<std::string> notes;
  if (ranking.ranked.empty())
    notes.push_back("no ranking: no strategy has a time and a right result for every shape");
  if (ranking.ranked.size() > 1 && ranking.confidence <= 0)
    notes.push_back("one round has no intervals, so that nothing is told apart: --min-rounds 2");
  if (ranking.confidence > 0) {
    notes.push_back(
        fmt::format("[ ]: its time over the first's, round by round: the median lies there at {} % "
                    "confidence{}",
                    static_cast<int>(100 * std::min(ranking.confidence, measure::kConfidence)),
                    ranking.confidence < measure::kConfidence ? ", for want of rounds" : ""));
  }
  const bool ties = std::any_of(ranking.ranked.begin(), ranking.ranked.end(),
                                [](const Ranked& entry) { return !entry.tied.empty(); });
  const std::string apart = pairs_text(ranking, /*of_one_place=*/true);
  const std::string others = pairs_text(ranking, /*of_one_place=*/false);
  if (ties) {
    notes.push_back(fmt::format("=: tied: those of one place cannot be told apart{}{}{}{}",
                                apart.empty() ? "" : ", but " + apart,
                                others.empty() ? "" : "; nor can ", others,
                                others.empty() ? "" : ", whose places others decide"));
  }
  for (const Unranked& entry : ranking.unranked)
    notes.push_back(fmt::format("not ranked: {} ({})", entry.name, entry.why));
  notes.push_back(fmt::format(
      "timed for {:.0f} s; {}", report.seconds,
      report.other_processors
          ? fmt::format("others used {:.1f} processors meanwhile", *report.other_processors)
          : "what others used meanwhile is not to be known here"));
  return notes;
}

std::string picture_title(const BenchReport& report) {
  return fmt::format(
      "Ranking: geometric mean over {} shape{}, shorter is better; x: times as fast as two_pass",
      report.shapes.size(), report.shapes.size() == 1 ? "" : "s");
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
  return timed() ? text : text + ", no time";
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

measure::Estimate speed_up(const BenchShape& shape, const BenchResult& result) {
  for (const BenchResult& other : shape.results) {
    if (other.strategy == StrategyId::kTwoPass && other.timed() && result.timed())
      return measure::estimate(measure::round_ratios(other.timing, result.timing));
  }
  return {};
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
  text += "\n" + with_long_lines_broken(picture_title(report), style.width) +
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
  text += "\n## Ranking\n\n" + picture_title(report) + "\n\n```\n" +
          bar_picture(bars, bar_width(bars, kReportWidth)) + "```\n";
  for (const std::string& note : ranking_notes(report, ranking)) text += "\n" + note + "\n";
  return text;
}

}  // namespace dualgemm::cli
