// What `bench` measured, as text, Markdown, CSV and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/options.hpp"
#include "tools/cli/print/terminal.hpp"
#include "tools/measure/peaks.hpp"
#include "tools/measure/rounds.hpp"
#include "tools/measure/throughput.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/device_run.hpp"

namespace dualgemm::cli {

struct BenchResult {
  StrategyId strategy = StrategyId::kAuto;
  bool prepared = false;       // the weights were
  bool also_unpacked = false;  // the strategy takes part without prepared weights, too
  Status error;                // why it did not run; kUnsupported = skipped
  std::string config;
  RunInfo info;
  measure::CaseTimes timing;
  measure::Throughput throughput;
  std::optional<verify::CheckReport> check;
  bool sampled = false;   // `check` is of a sample against the oracle; else of all elements against
                          // a sampled result
  int64_t differing = 0;  // elements whose bits differ from the sampled result's
  std::optional<verify::OutputDifference> fp8;  // not exact: its distance from that result instead

  bool timed() const { return error.ok() && timing.median_seconds > 0.0; }
  bool skipped() const { return error.code() == StatusCode::kUnsupported; }
  bool failed() const;
  std::string name() const;  // of the strategy; "fused prepared" where there are two of it
  std::string status() const;
};

struct BenchShape {
  Problem problem;
  int operand_sets = 1;  // that the runs rotate through, so that no cache holds the weights
  std::vector<BenchResult> results;  // shortest median first, then those without a time
  int rounds = 0;
  double seconds = 0.0;                    // spent timing
  std::optional<double> other_processors;  // that others used meanwhile; nothing: not to be known
  bool from_memory = true;                 // else the operands lay in a cache
  // Measured in the same rounds as the strategies; 0 in a peak: not here.
  std::optional<measure::Peaks> peaks;
  std::optional<verify::DevicePeaks> device_peaks;
};

struct BenchReport {
  std::vector<BenchShape> shapes;
  bool on_gpu = false;  // times in microseconds, rates in TFLOP/s
  uint64_t seed = 1;
  int threads = 0;
  std::string isa;                         // in use
  std::string device;                      // its name
  std::string timestamp;                   // UTC, ISO 8601
  double seconds = 0.0;                    // spent timing
  std::optional<double> other_processors;  // that others used meanwhile; nothing: not to be known

  bool failed() const;
};

// "M 4 N 64 K 128"
std::string shape_name(const Problem& problem);

// The time of two_pass over this one's, round by round; no value where one of them has no time.
measure::Estimate speed_up(const BenchShape& shape, const BenchResult& result);

std::string bench_text(const BenchReport& report, const Style& style);
std::string bench_markdown(const BenchReport& report);
std::string bench_csv(const BenchReport& report);
std::string bench_json(const BenchReport& report);

}  // namespace dualgemm::cli
