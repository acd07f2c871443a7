#include "bench/cuda/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "bench/cuda/targets.hpp"
#include "bench_build_info.hpp"  // written by CMake: revision, compiler, flags

namespace dualgemm::bench {
namespace {

using Json = nlohmann::ordered_json;

double operations(const ShapeResult& shape, int64_t m) {
  return 4.0 * static_cast<double>(m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

// part / whole; 0: one of them was not measured.
double ratio(const Timing& part, const Timing& whole) {
  return whole.rounds > 0 && part.rounds > 0 ? part.median / whole.median : 0.0;
}

Json in_json(const Timing& timing) {
  return {{"median_us", timing.median * 1e6},
          {"p90_us", timing.p90 * 1e6},
          {"min_us", timing.min * 1e6},
          {"rounds", timing.rounds}};
}

Json in_json(const GpuState& state) {
  if (!state.known) return nullptr;
  return {{"sm_clock_mhz", state.sm_clock_mhz},
          {"power_watts", state.power_watts},
          {"temperature_c", state.temperature},
          {"clock_reasons", state.reason_names()}};
}

Json in_json(const BaselineResult& result) {
  if (!result.status.ok()) return {{"error", result.status.message()}};
  Json json = in_json(result.timing);
  json["path"] = result.best_path;
  json["algorithm"] = result.best_algorithm;
  json["worst_tile_difference"] = result.differs;
  for (const BaselinePath& path : result.paths) {
    Json one = {{"algorithms_timed", path.algorithms_timed}, {"kept", path.best}};
    const auto timing = result.path_timings.find(path.name);
    if (timing != result.path_timings.end()) one.update(in_json(timing->second));
    json["paths"][path.name] = one;
  }
  return json;
}

Json in_json(const OurResult& result, const ShapeResult& shape, const Point& point) {
  Json json = {{"strategy", name_of(result.strategy)},
               {"a", name_of(result.a)},
               {"prepared", result.prepared}};
  if (!result.status.ok()) {
    json["error"] = result.status.message();
    return json;
  }
  json["config"] = result.config;
  json.update(in_json(result.timing));
  json["tflops"] = operations(shape, point.m) / result.timing.median * 1e-12;
  json["share_of_bound"] = result.share;
  json["worst_tile_difference"] = result.differs;
  json["right"] = result.right();
  const double to_cublas = ratio(result.timing, point.f16.timing);
  if (to_cublas > 0) json["ratio_to_cublas"] = to_cublas;
  json["ratio_to_floor"] = ratio(result.timing, point.floor);
  const bool fused = result.strategy == StrategyId::kFused;
  if (fused && to_cublas > 0) {
    const double target = ratio_target(point.m, shape.n, result.prepared);
    json["target_ratio"] = target;
    json["met_ratio"] = to_cublas <= target;
  }
  if (const auto target = floor_target(point.m); target && fused) {
    json["target_floor"] = *target;
    json["met_floor"] = ratio(result.timing, point.floor) <= *target;
  }
  return json;
}

Json in_json(const ShapeResult& shape, const Point& point) {
  Json json = {{"m", point.m}};
  for (const OurResult& result : point.ours) json["ours"].push_back(in_json(result, shape, point));
  json["cublas_f16"] = in_json(point.f16);
  json["cublas_e4m3"] = in_json(point.e4m3);
  json["floor"] = in_json(point.floor);
  json["floor"]["bytes"] = point.floor_bytes;
  json["floor"]["threads"] = point.floor_shape.threads;
  json["floor"]["ctas_per_sm"] = point.floor_shape.ctas_per_sm;
  json["floor"]["loads"] = point.floor_shape.loads;
  json["gpu_before"] = in_json(point.before);
  json["gpu_after"] = in_json(point.after);
  return json;
}

std::string version(int number) {  // 13020 is 13.2
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string cell(double value, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-";
}

// One without a time where the GPU's kernels take no prepared weights.
OurResult fused_of(const Point& point, DataType a, bool prepared) {
  for (const OurResult& result : point.ours) {
    if (result.strategy == StrategyId::kFused && result.a == a && result.prepared == prepared)
      return result;
  }
  return {};
}

std::string verdict(const OurResult& result, const ShapeResult& shape, const Point& point) {
  const double target = ratio_target(point.m, shape.n, result.prepared);
  const auto to_floor = floor_target(point.m);
  std::string text;
  if (result.timing.rounds == 0) return "-";
  if (point.f16.timing.rounds > 0) {
    const bool met = ratio(result.timing, point.f16.timing) <= target;
    text += fmt::format("{:.2f} {}", target, met ? "met" : "NOT MET");
  }
  if (to_floor) {
    const bool met = ratio(result.timing, point.floor) <= *to_floor;
    text += fmt::format("{}floor {}", text.empty() ? "" : ", ", met ? "met" : "NOT MET");
  }
  return text.empty() ? "-" : text;
}

}  // namespace

Json to_json(const Environment& e, const std::vector<ShapeResult>& shapes) {
  Json json = {{"program", "bench_cuda"},
               {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
               {"revision", kBuildRevision},
               {"compiler", kBuildCompiler}};
  json["device"] = {{"name", e.caps.name},
                    {"compute_capability", e.caps.compute_capability},
                    {"num_sms", e.caps.num_sms},
                    {"l2_bytes", e.caps.l2_bytes},
                    {"max_sm_clock_mhz", e.max_sm_clock_mhz},
                    {"power_limit_watts", e.power_limit_watts},
                    {"driver", e.driver},
                    {"cuda_of_driver", version(e.cuda_driver)},
                    {"cuda_runtime", version(e.cuda_runtime)},
                    {"cublaslt", e.cublaslt}};
  json["method"] = {{"cold_bytes", kColdBytes},
                    {"act", "silu"},
                    {"d", "f16"},
                    {"scale_layout", "linear"},
                    {"target_floor_up_to_m", kFloorTargetMaxM}};
  json["shapes"] = Json::array();
  for (const ShapeResult& shape : shapes) {
    Json one = {{"n", shape.n}, {"k", shape.k}, {"points", Json::array()}};
    for (const Point& point : shape.points) one["points"].push_back(in_json(shape, point));
    json["shapes"].push_back(one);
  }
  return json;
}

std::string table_head(int64_t n, int64_t k) {
  return fmt::format(
      "\n### (N, K) = ({}, {})\n\n"
      "| M | config | us | TFLOP/s | cuBLAS us | ratio | target | fp8 us | floor us | /floor | "
      "A fp16 us | ratio | target | prepared us | ratio | target | /floor | "
      "prepared A fp16 us | ratio | target | others us | MHz | W |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---"
      "|\n",
      n, k);
}

std::string table_row(const ShapeResult& shape, const Point& point) {
  const OurResult packed = fused_of(point, DataType::kE2M1, false);
  const auto columns = [&](const OurResult& result) {
    return fmt::format("{} | {} | {}", cell(result.timing.median * 1e6, 2),
                       cell(ratio(result.timing, point.f16.timing), 3),
                       verdict(result, shape, point));
  };
  const OurResult prepared = fused_of(point, DataType::kE2M1, true);
  std::string others;
  for (const OurResult& result : point.ours) {
    if (result.strategy == StrategyId::kFused) continue;
    others += fmt::format("{}{} {}", others.empty() ? "" : ", ", name_of(result.strategy),
                          cell(result.timing.median * 1e6, 1));
  }
  const double tflops =
      packed.timing.rounds > 0 ? operations(shape, point.m) / packed.timing.median * 1e-12 : 0.0;
  return fmt::format(
      "| {} | {} | {} | {} | {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} "
      "|\n",
      point.m, packed.config, cell(packed.timing.median * 1e6, 2), cell(tflops, 0),
      cell(point.f16.timing.median * 1e6, 2), point.f16.best_path,
      cell(ratio(packed.timing, point.f16.timing), 3), verdict(packed, shape, point),
      cell(point.e4m3.timing.median * 1e6, 2), cell(point.floor.median * 1e6, 2),
      cell(ratio(packed.timing, point.floor), 2), columns(fused_of(point, DataType::kF16, false)),
      columns(prepared), cell(ratio(prepared.timing, point.floor), 2),
      columns(fused_of(point, DataType::kF16, true)), others.empty() ? "-" : others,
      point.after.sm_clock_mhz, point.after.power_watts);
}

std::vector<std::string> faults_of(const Point& point) {
  std::vector<std::string> faults;
  for (const OurResult& result : point.ours) {
    const std::string name =
        fmt::format("m {}, {} on {}{}", point.m, name_of(result.strategy), name_of(result.a),
                    result.prepared ? ", prepared weights" : "");
    if (!result.status.ok()) {
      faults.push_back(name + ": " + result.status.message());
    } else if (!result.right()) {
      faults.push_back(
          fmt::format("{}: WRONG; share of the oracle's bound {:.3g}, worst tile "
                      "differs from cuBLASLt's by {:.3g}",
                      name, result.share, result.differs));
    }
  }
  for (const auto& [name, result] : {std::pair{"fp16", &point.f16}, {"E4M3", &point.e4m3}}) {
    if (!result->status.ok()) {
      faults.push_back(
          fmt::format("m {}, cuBLASLt {}: {}", point.m, name, result->status.message()));
    }
  }
  return faults;
}

}  // namespace dualgemm::bench
