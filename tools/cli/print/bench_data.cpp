// What `bench` measured, for programs: CSV and JSON. docs/cli.md has the fields.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tools/cli/print/bench_ranking.hpp"
#include "tools/cli/print/bench_report.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/measure/judgement.hpp"

namespace dualgemm::cli {
namespace {

// A spread of too few samples, and a share that cannot be, are no numbers.
Json noise_json(const measure::CaseTimes& timing) {
  return timing.samples < measure::kSamplesOfASpread ? Json(nullptr)
                                                     : number(timing.relative_spread);
}
// [low, high], times `unit`; null: not known.
Json interval_json(const measure::Interval& interval, double unit = 1) {
  if (!interval.known()) return nullptr;
  return Json::array({interval.low * unit, interval.high * unit});
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
    json.update(Json{{"median_ms", result.timing.median_seconds * 1e3},
                     {"min_ms", result.timing.min_seconds * 1e3},
                     {"relative_noise", noise_json(result.timing)},
                     {"interval_ms", interval_json(result.timing.interval, 1e3)},
                     {"confidence", result.timing.interval.confidence},
                     {"samples", result.timing.samples},
                     {"runs", result.timing.runs},
                     {"gops", result.throughput.gops},
                     {"gbps", result.throughput.gbps},
                     {"roofline_ms", result.throughput.roofline_seconds * 1e3},
                     {"roofline_share", roofline_json(result.throughput.roofline_share)},
                     {"roofline_defect", measure::is_defect(result.throughput.roofline_share)},
                     {"intermediate_bytes", result.info.intermediate_bytes},
                     {"threads", result.info.threads},
                     {"isa", name_of(result.info.isa)}});
    const measure::Estimate ratio = speed_up(shape, result);
    if (ratio.value > 0) {
      json["speed_up_over_two_pass"] = ratio.value;
      json["speed_up_interval"] = interval_json(ratio.interval);
    }
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
          {"bf16_zmm_gflops", shape.peaks->bf16_zmm_gflops},
          {"amx_bf16_gflops", shape.peaks->amx_bf16_gflops},
          {"sdot_gops", shape.peaks->sdot_gops},
          {"smmla_gops", shape.peaks->smmla_gops},
          {"fma_neon_gflops", shape.peaks->fma_neon_gflops},
          {"read_gbps", shape.peaks->read_gbps}};
}

}  // namespace

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
                            "interval_low_ms",
                            "interval_high_ms",
                            "confidence",
                            "speed_up_over_two_pass",
                            "gops",
                            "gbps",
                            "roofline_share",
                            "intermediate_bytes",
                            "samples",
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
      const measure::Estimate ratio = speed_up(shape, r);
      const measure::Interval& interval = r.timing.interval;
      table.add_row(
          {std::to_string(p.m),
           std::to_string(p.n),
           std::to_string(p.k),
           std::to_string(p.l),
           r.name(),
           r.config,
           figure(r.timing.median_seconds * 1e3),
           figure(r.timing.min_seconds * 1e3),
           r.timing.samples < measure::kSamplesOfASpread ? "" : figure(r.timing.relative_spread),
           interval.known() ? figure(interval.low * 1e3) : "",
           interval.known() ? figure(interval.high * 1e3) : "",
           figure(interval.confidence),
           ratio.value > 0 ? figure(ratio.value) : "",
           figure(r.throughput.gops),
           figure(r.throughput.gbps),
           measure::is_defect(r.throughput.roofline_share) ? ""
                                                           : figure(r.throughput.roofline_share),
           r.timed() ? std::to_string(r.info.intermediate_bytes) : "",
           std::to_string(r.timing.samples),
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
  Json json = {
      {"build", provenance()},
      {"timestamp", report.timestamp},
      {"seed", report.seed},
      {"threads", report.threads},
      {"isa", report.isa},
      {"monitored", report.other_processors.has_value()},
      {"other_processors", report.other_processors ? Json(*report.other_processors) : Json()},
      {"seconds", report.seconds}};
  json["shapes"] = Json::array();
  for (const BenchShape& shape : report.shapes) {
    Json results = Json::array();
    for (const BenchResult& result : shape.results) results.push_back(result_json(shape, result));
    json["shapes"].push_back({{"problem", to_json(shape.problem)},
                              {"operand_sets", shape.operand_sets},
                              {"from_memory", shape.from_memory},
                              {"rounds", shape.rounds},
                              {"peaks", peaks_json(shape)},
                              {"results", std::move(results)}});
  }
  const Ranking ranking = rank(report);
  json["ranking"] = Json::array();
  for (const Ranked& entry : ranking.ranked) {
    Json object = {{"place", entry.place},
                   {"tied", !entry.tied.empty()},
                   {"tied_with", entry.tied},
                   {"strategy", name_of(entry.result->strategy)},
                   {"prepared", entry.result->prepared},
                   {"geometric_mean_ms", entry.milliseconds}};
    if (entry.speed_up) object["geometric_mean_speed_up"] = *entry.speed_up;
    if (entry.over_first.value > 0) {
      object["time_over_first"] = entry.over_first.value;
      object["interval"] = interval_json(entry.over_first.interval);
      object["confidence"] = entry.over_first.interval.confidence;
    }
    json["ranking"].push_back(std::move(object));
  }
  json["not_ranked"] = Json::array();
  for (const Unranked& entry : ranking.unranked)
    json["not_ranked"].push_back({{"name", entry.name}, {"why", entry.why}});
  return dump(json);
}

}  // namespace dualgemm::cli
