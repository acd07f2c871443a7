// Every case of the CPU benchmark, by name: peaks, the bars of the speed table, the baseline,
// forced instruction sets, other operand types, strategies, the quantiser.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/cpu/gemm_case.hpp"
#include "bench/cpu/reads_in_turn.hpp"
#include "bench/cpu/sgemm_baseline.hpp"
#include "tools/measure/peaks.hpp"
#include "tools/measure/rounds.hpp"

namespace dualgemm::bench {

struct SuiteOptions {
  int64_t n = 4096, k = 7168;
  int threads = 0;                 // 0 = all of this process
  std::vector<std::string> parts;  // of kParts or kRowsPart; empty = all of kParts
  std::vector<DataType> rows_types = {DataType::kE2M1, DataType::kBF16, DataType::kF16};
  std::vector<Isa> rows_isas;  // empty = all of this machine
};
inline constexpr const char* kParts[] = {"speed", "isa", "types", "strategies", "quantizer"};
// Every M beside its neighbour: only where it is named.
inline constexpr const char* kRowsPart = "rows";

struct SuiteCase {
  std::string name;     // "speed/m512", "speed/m16/prepared", "sgemm/m16", "peak/vnni_zmm", ...
  double giga_per_run;  // 10^9 operations, or bytes for peak/read_* and quantizer/*
  std::function<Status()> run;
  std::shared_ptr<GemmCase> gemm;  // null for peaks, baseline and quantiser
};

struct SkippedCase {
  std::string name;
  Status reason;
};

class Suite {
 public:
  // Builds the operands and runs every case once. A case that this machine or build cannot run is
  // skipped with its reason.
  static Expected<std::unique_ptr<Suite>> make(const SuiteOptions& options);

  const SuiteOptions& options() const { return options_; }
  const std::vector<SuiteCase>& cases() const { return cases_; }
  const std::vector<SkippedCase>& skipped() const { return skipped_; }
  const std::vector<measure::PeakCase>& peaks() const {
    return peaks_;
  }  // the first cases, same order
  const std::string& baseline_config() const { return baseline_config_; }
  // The calls and plain reads in turn of speed/m1 (kReadsInTurn); null where that case is not run
  // or the machine cannot read so.
  const ReadsInTurn* reads_in_turn() const { return reads_in_turn_.get(); }
  int64_t weight_bytes() const { return operands_->weight_bytes(); }
  // Largest difference between `gemm` (FP16 output) and the baseline on m rows, relative to the
  // largest output: two implementations that share nothing. Negative: no baseline.
  double difference_to_baseline(GemmCase& gemm);

 private:
  bool wants(const std::string& part) const;
  void add_peaks();
  void add_baseline();
  void add_quantizer();
  void add_strategies();
  void add_rows();
  void add_gemm(const GemmSpec& spec);

  SuiteOptions options_;
  std::unique_ptr<Operands> operands_;
  std::vector<measure::PeakCase> peaks_;
  std::shared_ptr<SgemmBaseline> baseline_;
  std::shared_ptr<ReadsInTurn> reads_in_turn_;
  std::string baseline_config_;
  std::vector<SuiteCase> cases_;
  std::vector<SkippedCase> skipped_;
};

// One kind of A on one instruction set, and M one after the other.
struct RowsSeries {
  DataType a_type;
  Isa isa;
  std::string name(int64_t m, bool prepared) const;  // "rows/bf16/avx512_vnni/m5/prepared"
};
inline constexpr int64_t kRowsM[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,  14,
                                     15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 512};
// The instruction sets of this machine whose kernels for A of that type are their own.
std::vector<RowsSeries> rows_series(const SuiteOptions& options);

// The shapes of the speed table and of the strategy table.
inline constexpr int64_t kSpeedM[] = {1, 16, 64, 256, 512, 2048};
inline constexpr int64_t kStrategyM[] = {1, 16, 64, 256, 512};

std::string speed_name(int64_t m, bool prepared);             // "speed/m16/prepared"
inline constexpr const char* kReadsInTurn = "speed/m1/read";  // a call and a read of as many bytes
std::string strategy_name(StrategyId strategy, int64_t m);    // "strategy/two_pass/m16"

}  // namespace dualgemm::bench
