#include "bench/cpu/suite.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace dualgemm::bench {
namespace {

constexpr int64_t kColdBytes = int64_t{256} << 20;  // weight sets together: beyond any cache here
constexpr int64_t kLargestColdM = 4;                // above it the weights' origin does not matter

std::string numbered(const std::string& prefix, int64_t m) {
  return prefix + "/m" + std::to_string(m);
}

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string speed_name(int64_t m, bool prepared) {
  return numbered("speed", m) + (prepared ? "/prepared" : "");
}
std::string strategy_name(StrategyId strategy, int64_t m) {
  return numbered(std::string("strategy/") + name_of(strategy), m);
}

std::string RowsSeries::name(int64_t m, bool prepared) const {
  const std::string prefix = std::string("rows/") + name_of(a_type) + "/" + name_of(isa);
  return numbered(prefix, m) + (prepared ? "/prepared" : "");
}

std::vector<RowsSeries> rows_series(const SuiteOptions& options) {
  const std::vector<Isa>& isas = options.rows_isas.empty() ? device_caps().isas : options.rows_isas;
  std::vector<RowsSeries> series;
  for (const DataType type : options.rows_types) {
    const auto has_own_kernels = [type](Isa isa) {
      if (isa == Isa::kScalar) return false;  // seconds a call
      if (isa == Isa::kAmxBf16 || isa == Isa::kNeonI8mm) return type == DataType::kE2M1;
      return isa != Isa::kAvx512Bf16 || type == DataType::kBF16;
    };
    for (const Isa isa : isas) {
      if (has_own_kernels(isa)) series.push_back({type, isa});
    }
  }
  return series;
}

bool Suite::wants(const std::string& part) const {
  return options_.parts.empty() || listed(options_.parts, part);
}

Expected<std::unique_ptr<Suite>> Suite::make(const SuiteOptions& options) {
  auto suite = std::make_unique<Suite>();
  suite->options_ = options;
  if (suite->options_.threads <= 0) suite->options_.threads = device_caps().cores;
  const int64_t set_bytes = 2 * (options.n * options.k / 2 + options.n * options.k / kSfVec);
  const int64_t sets = std::clamp<int64_t>((kColdBytes + set_bytes - 1) / set_bytes, 2, 4096);
  const int64_t max_m = *std::max_element(std::begin(kSpeedM), std::end(kSpeedM));
  suite->operands_ =
      std::make_unique<Operands>(options.n, options.k, max_m, static_cast<int>(sets));

  suite->add_peaks();
  if (suite->wants("speed")) {
    suite->add_baseline();
    suite->add_gemm({.name = speed_name(16, true), .m = 16, .prepared = true});
  }
  if (suite->wants("speed") || suite->wants("strategies") || suite->wants("types")) {
    for (const int64_t m : kSpeedM) {
      suite->add_gemm({.name = speed_name(m, false), .m = m, .cold = m <= kLargestColdM});
    }
  }
  if (suite->wants("isa")) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAmxBf16}) {
      for (const int64_t m : {int64_t{64}, int64_t{512}}) {
        const std::string name = numbered(std::string("isa/") + name_of(isa), m);
        suite->add_gemm({.name = name, .m = m, .isa = isa});
      }
    }
  }
  if (suite->wants("types")) {
    for (const int64_t m : {int64_t{1}, int64_t{16}, int64_t{512}}) {
      const bool cold = m <= kLargestColdM;
      suite->add_gemm(
          {.name = numbered("types/a_f16", m), .m = m, .a_type = DataType::kF16, .cold = cold});
      suite->add_gemm(
          {.name = numbered("types/d_e2m1", m), .m = m, .d_type = DataType::kE2M1, .cold = cold});
    }
  }
  if (suite->wants("strategies")) suite->add_strategies();
  if (suite->wants("quantizer")) suite->add_quantizer();
  if (listed(options.parts, kRowsPart)) suite->add_rows();
  return suite;
}

void Suite::add_peaks() {
  peaks_ = measure::peak_cases(options_.threads, measure::PeakOptions{});
  for (const measure::PeakCase& peak : peaks_) {
    cases_.push_back({"peak/" + peak.name, peak.giga_per_run,
                      [run = peak.run] {
                        run();
                        return Status();
                      },
                      nullptr});
  }
}

void Suite::add_gemm(const GemmSpec& spec) {
  Expected<std::shared_ptr<GemmCase>> gemm = GemmCase::make(*operands_, spec, options_.threads);
  if (!gemm) {
    skipped_.push_back({spec.name, gemm.status()});
    return;
  }
  cases_.push_back({spec.name, (*gemm)->giga_ops(), [item = *gemm] { return item->run(); }, *gemm});
  if (spec.name != speed_name(1, false)) return;
  reads_in_turn_ = ReadsInTurn::make(*operands_, *gemm, options_.threads);
  if (reads_in_turn_ == nullptr) return;
  const double giga = 2e-9 * static_cast<double>(operands_->weight_bytes());
  cases_.push_back(
      {kReadsInTurn, giga, [turns = reads_in_turn_] { return turns->run(); }, nullptr});
}

void Suite::add_rows() {
  std::shared_ptr<const std::vector<PreparedWeights>> prepared;
  for (const RowsSeries& series : rows_series(options_)) {
    for (const int64_t m : kRowsM) {
      GemmSpec spec{.name = series.name(m, false),
                    .m = m,
                    .isa = series.isa,
                    .a_type = series.a_type,
                    .cold = true};
      add_gemm(spec);
      spec.name = series.name(m, true);
      spec.prepared = true;
      if (prepared == nullptr) {
        Expected<Plan> plan = make_plan(
            {.m = m, .n = options_.n, .k = options_.k},
            {.strategy = StrategyId::kFused, .device = DeviceKind::kCpu, .prepared = true});
        Expected<std::vector<PreparedWeights>> sets =
            plan ? prepare_sets(*operands_, *plan, operands_->weight_sets()) : plan.status();
        if (!sets) {
          skipped_.push_back({spec.name, sets.status()});
          return;
        }
        prepared = std::make_shared<const std::vector<PreparedWeights>>(*std::move(sets));
      }
      spec.prepared_sets = prepared;
      add_gemm(spec);
    }
  }
}

void Suite::add_baseline() {
  Expected<std::shared_ptr<SgemmBaseline>> loaded =
      SgemmBaseline::load(*operands_, options_.threads);
  if (!loaded) {
    skipped_.push_back({"sgemm", loaded.status()});
    return;
  }
  baseline_ = *loaded;
  baseline_config_ = baseline_->config();
  for (const int64_t m : kSpeedM) {
    const double ops = 4e-9 * static_cast<double>(m * options_.n) * static_cast<double>(options_.k);
    cases_.push_back({numbered("sgemm", m), ops,
                      [baseline = baseline_, m] {
                        baseline->run(m);
                        return Status();
                      },
                      nullptr});
  }
}

void Suite::add_strategies() {
  for (const int64_t m : kStrategyM) {
    const bool cold = m <= kLargestColdM;
    for (const StrategyId strategy : all_strategies()) {
      const bool fused = strategy == StrategyId::kFused;
      // Row-by-row arithmetic in double: seconds a run from M = 16 on, and known to be slow.
      if (strategy == StrategyId::kReference && m > 1) continue;
      if (fused && m == 16 && wants("speed")) continue;  // speed/m16/prepared
      // fused on prepared weights, to be compared with those that demand them (cached, graph).
      add_gemm({.name = strategy_name(strategy, m),
                .m = m,
                .strategy = strategy,
                .prepared = fused,
                .cold = cold});
    }
  }
}

void Suite::add_quantizer() {
  struct State {
    AlignedArray<float> f32;
    AlignedArray<uint16_t> bf16;
    AlignedArray<uint8_t> codes, scales;
  };
  const int64_t rows = options_.n, cols = options_.k;
  auto state = std::make_shared<State>();
  state->f32 = AlignedArray<float>(rows * cols);
  state->bf16 = AlignedArray<uint16_t>(rows * cols);
  state->codes = AlignedArray<uint8_t>(rows * cols / 2);
  state->scales = AlignedArray<uint8_t>(rows * cols / kSfVec);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    std::mt19937_64 random(static_cast<uint64_t>(row));
    std::normal_distribution<float> normal(0.0f, 0.02f);  // weights of a trained layer look like it
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i) {
      state->f32.data()[i] = normal(random);
      state->bf16.data()[i] = encode_bf16(state->f32.data()[i]);
    }
  }
  const auto add = [&](const char* name, DataType type, int64_t bytes_each) {
    const QuantizeOptions options{.threads = options_.threads};
    const double giga = 1e-9 * static_cast<double>(rows * cols * bytes_each);
    auto run = [state, type, rows, cols, options]() -> Status {
      const void* x =
          type == DataType::kF32 ? static_cast<const void*>(state->f32.data()) : state->bf16.data();
      return quantize_nvfp4(x, type, rows, cols, 0, state->codes.data(), 0, state->scales.data(),
                            options)
          .status();
    };
    const Status status = run();
    if (status.ok()) {
      cases_.push_back({name, giga, std::move(run), nullptr});
    } else {
      skipped_.push_back({name, status});
    }
  };
  add("quantizer/f32", DataType::kF32, 4);
  add("quantizer/bf16", DataType::kBF16, 2);
}

double Suite::difference_to_baseline(GemmCase& gemm) {
  if (!baseline_) return -1;
  const int64_t m = gemm.spec().m;
  baseline_->run(m);
  const float* expected = baseline_->d();
  const auto* actual = reinterpret_cast<const uint16_t*>(gemm.d().data());
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < m * options_.n; ++i) {
    const double error = std::abs(double{decode_f16(actual[i])} - double{expected[i]});
    difference = error <= difference ? difference : error;  // a NaN is taken, not skipped
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

}  // namespace dualgemm::bench
