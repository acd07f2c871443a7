#include <fmt/format.h>

#include <algorithm>

#include "bench/cpu/report.hpp"

namespace dualgemm::bench {
namespace {

// The bars of the speed table: share of the VNNI peak; for M = 1 share of what a plain read of the
// same bytes reaches, in turn with the calls.
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
constexpr double kLargestStep = 1.35;  // from any M to M + 1

std::string percent(double part, double whole) {
  if (!(part > 0 && whole > 0)) return kNone;
  const std::string share = measure::share_text(part / whole);
  return measure::is_defect(part / whole) ? share : share + " %";
}
std::string number(double value, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : kNone;
}
std::string with_interval(const measure::Estimate& ratio) {
  if (ratio.value <= 0) return kNone;
  return fmt::format("{:.3f} [{}]", ratio.value, measure::interval_text(ratio.interval));
}
std::string times(double ratio) { return ratio > 0 ? fmt::format("{:.2f}", ratio) : kNone; }

// What bounds many rows: of NVFP4 the sequence of a block where it is measured.
double measure::Peaks::*ceiling_of(const RowsSeries& series) {
  using measure::Peaks;
  const bool blocks = series.a_type == DataType::kE2M1;
  switch (series.isa) {
    case Isa::kAmxBf16:
      return &Peaks::amx_bf16_gflops;
    case Isa::kAvx512Bf16:
      return &Peaks::bf16_zmm_gflops;
    case Isa::kAvx512Vnni:
      return blocks ? &Peaks::vnni_block_gops : &Peaks::fma_zmm_gflops;
    case Isa::kAvx2:
      return blocks ? &Peaks::avx2_block_gops : &Peaks::fma_ymm_gflops;
    case Isa::kNeonI8mm:
      return &Peaks::smmla_gops;
    default:
      return blocks ? &Peaks::sdot_gops : &Peaks::fma_neon_gflops;
  }
}

}  // namespace

void Report::add_peak_table() {
  Table table{"Peaks of this machine, measured in this run", {"loop", "what", "peak"}, {}, {}};
  for (const measure::PeakCase& peak : suite_.peaks()) {
    const bool bytes = peak.field == &measure::Peaks::read_gbps;
    table.rows.push_back({peak.name, peak.what,
                          number(rate("peak/" + peak.name), 1) + (bytes ? " GB/s" : " GOP/s")});
  }
  // A block does more than its dot products: an undisturbed measurement finds it slower.
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
    const ReadsInTurn* const reads = by_bandwidth ? suite_.reads_in_turn() : nullptr;
    const measure::Estimate share = by_bandwidth
                                        ? (reads != nullptr ? reads->share() : measure::Estimate())
                                        : rate_ratio(name, "peak/vnni_zmm");
    const std::string what =
        fmt::format("M={}{}: share of {}", bar.m, bar.prepared ? " prepared" : "",
                    by_bandwidth ? "the same bytes read in turn" : "VNNI peak");
    const double difference = suite_.difference_to_baseline(*gemms_.at(name));
    table.rows.push_back({std::to_string(bar.m), bar.prepared ? "prepared" : "raw", time_cell(name),
                          number(rate(name), 0), percent(rate(name), peaks_.vnni_zmm_gops),
                          percent(rate(name), peaks_.vnni_block_gops), number(weights / time, 1),
                          percent(weights / time, peaks_.read_gbps), time_cell(baseline),
                          times(time_ratio(baseline, name).value),
                          fmt::format("{:.0f} %", 100 * bar.share),
                          add_bar({what, share, bar.share, true, /*is_share=*/true}),
                          difference < 0 ? kNone : fmt::format("{:.1e}", difference)});
  }
  if (table.rows.empty()) return;
  const measure::Estimate over_openblas = time_ratio("sgemm/m512", "speed/m512");
  if (over_openblas.value > 0) {
    const std::string met =
        add_bar({"M=512: times OpenBLAS", over_openblas, kOverOpenblasAt512, true});
    table.notes.push_back(fmt::format(
        "M=512: {:.2f} [{}] times OpenBLAS sgemm; bar {}; met: {}.", over_openblas.value,
        measure::interval_text(over_openblas.interval), kOverOpenblasAt512, met));
  }
  if (const ReadsInTurn* const reads = suite_.reads_in_turn(); reads != nullptr)
    table.notes.push_back(
        fmt::format("M=1: a plain read of the same bytes takes {:.1f} % of the call's time, each "
                    "call beside its own read (median of "
                    "{}).",
                    100 * reads->share().value, reads->runs()));
  table.notes.push_back(
      "The bar is a share of the VNNI peak, at M=1 of that read; there the runs take turns through "
      "more than 200 MB of weights, so that no cache helps. OpenBLAS: two sgemm on weights and "
      "activations decoded to FP32 before the clock starts, then the activation. \"Differs by\": "
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
                            has_bar ? add_bar({what, rate_ratio(name, "peak/avx2_block"),
                                               kAvx2ShareOfCeiling, true, /*is_share=*/true})
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
      if (seconds(name) <= 0) continue;
      table.rows.push_back({wide_a ? "f16" : "e2m1", wide_a ? "f16" : "e2m1", std::to_string(m),
                            time_cell(name), number(rate(name), 0),
                            percent(rate(name), peaks_.vnni_zmm_gops),
                            times(time_ratio(name, speed_name(m, false)).value)});
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
  const std::string two_pass = strategy_name(StrategyId::kTwoPass, m);
  std::string fused_prepared = strategy_name(StrategyId::kFused, m);
  if (seconds(fused_prepared) <= 0) fused_prepared = speed_name(m, true);
  std::vector<std::string> names;
  for (const StrategyId strategy : all_strategies()) {
    if (strategy == StrategyId::kFused) names.push_back(speed_name(m, false));
    names.push_back(strategy == StrategyId::kFused ? fused_prepared : strategy_name(strategy, m));
  }
  bool has_others = false;
  for (const std::string& name : names) {
    if (seconds(name) <= 0) continue;
    const GemmSpec& spec = gemms_.at(name)->spec();
    const std::string fused_name = spec.prepared ? fused_prepared : speed_name(m, false);
    const measure::Estimate fused = time_ratio(fused_name, name);
    const bool fused_itself = spec.strategy == StrategyId::kFused;
    // fp8 computes something else (its operands are rounded again), so it sets no bar.
    const bool judged = !fused_itself && spec.strategy != StrategyId::kFp8;
    has_others = has_others || !fused_itself;
    const std::string what = fmt::format("M={}: fused over {}", m, name_of(spec.strategy));
    table.rows.push_back(
        {name_of(spec.strategy), spec.prepared ? "prepared" : "raw", time_cell(name),
         times(time_ratio(two_pass, name).value), with_interval(fused),
         std::to_string(gemms_.at(name)->info().intermediate_bytes),
         gemms_.at(name)->plan().config(),
         judged ? add_bar({what, fused, kSlowerThanStrategy, /*at_least=*/false}) : kNone});
  }
  if (has_others) tables_.push_back(std::move(table));
}

void Report::add_rows_table(const RowsSeries& series) {
  const std::string kind = fmt::format("A in {}, {}", name_of(series.a_type), name_of(series.isa));
  Table table{fmt::format("Rows one by one: {}, fused, weights cold", kind),
              {"M", "raw ms (spread)", "over M - 1", "prepared ms (spread)", "over M - 1",
               "prepared GOP/s", "of the ceiling"},
              {},
              {}};
  const double ceiling = peaks_.*ceiling_of(series);
  for (size_t i = 0; i < std::size(kRowsM); ++i) {
    const int64_t m = kRowsM[i];
    std::vector<std::string> row = {std::to_string(m)};
    double giga = 0;
    for (const bool prepared : {false, true}) {
      const std::string name = series.name(m, prepared);
      row.push_back(time_cell(name));
      giga = rate(name);
      const bool has_neighbour = i > 0 && kRowsM[i - 1] == m - 1;
      const measure::Estimate step =
          has_neighbour ? time_ratio(name, series.name(m - 1, prepared)) : measure::Estimate();
      row.push_back(times(step.value));
      add_bar({fmt::format("{}, {}: M={} over M={}", kind, prepared ? "prepared" : "raw", m, m - 1),
               step, kLargestStep, /*at_least=*/false});
    }
    if (giga <= 0) continue;
    row.push_back(number(giga, 0));
    row.push_back(percent(giga, ceiling));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return;
  table.notes.push_back(fmt::format("Ceiling: {} GOP/s.", number(ceiling, 0)));
  tables_.push_back(std::move(table));
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
    table.rows.push_back({type, time_cell(name), number(rate(name), 2),
                          has_bar ? fmt::format("{:.0f} GB/s", kQuantizerGbps) : kNone,
                          has_bar ? add_bar({"quantiser, GB/s of fp32 input", rate_estimate(name),
                                             kQuantizerGbps, true})
                                  : kNone});
  }
  if (!table.rows.empty()) tables_.push_back(std::move(table));
}

void Report::add_skipped_table() {
  Table table{"Not run", {"case", "reason"}, {}, {}};
  for (const SkippedCase& skipped : suite_.skipped()) {
    table.rows.push_back({skipped.name, skipped.reason.message()});
  }
  if (!table.rows.empty()) tables_.push_back(std::move(table));
}

}  // namespace dualgemm::bench
