#include "tools/cli/commands/shape_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tools/cli/commands/bench_limits.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/measure/median.hpp"

namespace dualgemm::cli {
namespace {

constexpr int64_t kSamples = 4096;  // elements that the oracle checks at the least
constexpr int64_t kMostRounds = 1000;
// On a GPU a sample is a CUDA graph of so many runs, replayed so often.
constexpr int kDeviceCalls = 100, kDeviceReplays = 7;

}  // namespace

// All runs of one strategy on one shape: one per set of operands, writing the same D.
struct ShapeBench::Contestant {
  BenchResult result;
  verify::Output output;
  std::vector<ReadyRun> runs;
  size_t next = 0;
};

// What the GPU reached in each round.
struct ShapeBench::DevicePeakRounds {
  std::vector<double> f16, e4m3, read;
  Status error;  // the first one; nothing is measured after it

  // No time: they are rates already.
  double add() {
    if (!error.ok()) return 0.0;
    const Expected<verify::DevicePeaks> peaks = verify::measure_device_peaks();
    error = peaks.status();
    if (!peaks) return 0.0;
    f16.push_back(peaks->f16_gflops);
    e4m3.push_back(peaks->e4m3_gflops);
    read.push_back(peaks->read_gbps);
    return 0.0;
  }
  verify::DevicePeaks medians() const {
    return {measure::median(f16), measure::median(e4m3), measure::median(read)};
  }
};

int64_t last_cache(DeviceKind device) {
  const Expected<DeviceCaps> caps = device_caps(device);
  if (!caps) return 0;
  if (device == DeviceKind::kCuda) return caps->l2_bytes;
  return std::max(caps->l3_bytes, caps->l2_bytes * caps->cores);
}

ShapeBench::ShapeBench(const BenchCommand& command, const Problem& problem)
    : command_(command), problem_(problem) {
  shape_.problem = problem;
  const DeviceKind device = command.execution.device;
  const Expected<OperandSizes> sizes = operand_sizes(problem);
  if (!sizes) return;  // make_operands() says why
  const Rotation rotation =
      rotation_for(problem, *sizes, last_cache(device), device == DeviceKind::kCuda);
  shape_.operand_sets = static_cast<int>(rotation.sets);
  shape_.from_memory = rotation.from_memory;
}

ShapeBench::~ShapeBench() = default;

Status ShapeBench::make_operands() {
  for (int i = 0; i < shape_.operand_sets; ++i) {
    Expected<verify::Operands> operands = verify::random_operands(
        problem_, verify::RandomKind::kUniform, command_.seed + static_cast<uint64_t>(i));
    if (!operands) return operands.status();
    operands_.push_back(*std::move(operands));
  }
  return {};
}

void ShapeBench::enter(StrategyId strategy, bool again) {
  auto contestant = std::make_unique<Contestant>();
  contestant->result.strategy = strategy;
  contestant->result.also_unpacked = again;
  contestant->result.error = prepare_and_check(*contestant);
  contestants_.push_back(std::move(contestant));
}

Status ShapeBench::time(const std::vector<measure::PeakCase>& peaks, double seconds,
                        Progress& progress, int64_t index, int64_t count) {
  const bool on_gpu = command_.execution.device == DeviceKind::kCuda;
  std::vector<measure::PeakCase> limits;
  for (const measure::PeakCase& peak : peaks) {
    if (limits_somebody(peak.field)) limits.push_back(peak);
  }
  DevicePeakRounds device_peaks;
  std::vector<measure::RoundCase> cases;
  for (const measure::PeakCase& peak : limits) cases.push_back({"peak " + peak.name, peak.run});
  if (on_gpu && command_.peaks) cases.push_back({"peaks", {}, [&] { return device_peaks.add(); }});
  const size_t first = cases.size();
  std::vector<Contestant*> timed;
  for (const auto& contestant : contestants_) {
    if (!contestant->result.error.ok()) continue;
    timed.push_back(contestant.get());
    cases.push_back(on_gpu ? device_case(*contestant) : host_case(*contestant));
  }
  measure::RoundOptions options;
  options.min_rounds = static_cast<int>(std::min<int64_t>(command_.min_rounds, kMostRounds));
  options.max_rounds = static_cast<int>(std::min<int64_t>(command_.max_rounds, kMostRounds));
  options.budget_seconds = seconds;
  measure::RoundReport report = measure::measure_in_rounds(
      cases, options, measure::system_world(), [&](const std::string& name, int round) {
        progress.show(index,
                      fmt::format("shape {} of {}, round {}: {}", index + 1, count, round, name));
      });
  for (size_t i = 0; i < timed.size(); ++i) {
    BenchResult& result = timed[i]->result;
    if (!result.error.ok()) continue;
    result.timing = std::move(report.cases[first + i]);
    if (on_gpu) result.timing.runs *= kDeviceCalls * kDeviceReplays;
  }
  if (!limits.empty()) {
    shape_.peaks = measure::peaks_of(limits, std::span(report.cases).first(limits.size()),
                                     command_.execution.threads);
  }
  if (on_gpu && command_.peaks) shape_.device_peaks = device_peaks.medians();
  shape_.rounds = report.rounds;
  shape_.seconds = report.seconds;
  shape_.other_processors = report.other_processors;
  return device_peaks.error;
}

measure::RoundCase ShapeBench::host_case(Contestant& contestant) {
  return {contestant.result.name(), [c = &contestant] {
            if (const Status status = c->runs[c->next].run(); !status.ok())
              c->result.error = status;
            c->next = (c->next + 1) % c->runs.size();
          }};
}

// Seconds on the GPU; the host is not measured.
measure::RoundCase ShapeBench::device_case(Contestant& contestant) {
  return {contestant.result.name(), {}, [c = &contestant] {
            if (!c->result.error.ok()) return 0.0;
            const auto seconds = ReadyRun::time_on_device(c->runs, kDeviceCalls, kDeviceReplays);
            c->result.error = seconds.status();
            return seconds ? measure::median(*seconds) : 0.0;
          }};
}

BenchShape ShapeBench::finish() {
  for (const auto& contestant : contestants_) {
    BenchResult& result = contestant->result;
    if (result.timed()) {
      measure::MachineLimits limits;
      const bool from_memory = shape_.from_memory;
      if (shape_.peaks) limits = limits_of(*shape_.peaks, problem_, result.info.isa, from_memory);
      if (shape_.device_peaks)
        limits = limits_of(*shape_.device_peaks, result.strategy, result.info.isa, from_memory);
      const auto rate = measure::throughput(problem_, result.timing.median_seconds, limits);
      if (rate) result.throughput = *rate;
    }
    shape_.results.push_back(std::move(result));
  }
  std::stable_sort(shape_.results.begin(), shape_.results.end(),
                   [](const BenchResult& x, const BenchResult& y) {
                     if (x.timed() != y.timed()) return x.timed();
                     return x.timed() && x.timing.median_seconds < y.timing.median_seconds;
                   });
  return std::move(shape_);
}

bool ShapeBench::limits_somebody(double measure::Peaks::*field) const {
  return std::any_of(contestants_.begin(), contestants_.end(), [&](const auto& contestant) {
    const BenchResult& result = contestant->result;
    return result.error.ok() && is_limit(field, problem_, result.info.isa, shape_.from_memory);
  });
}

Status ShapeBench::prepare_and_check(Contestant& contestant) {
  BenchResult& result = contestant.result;
  Expected<verify::Output> output = verify::allocate_output(problem_);
  if (!output) return output.status();
  contestant.output = *std::move(output);
  ExecutionOptions execution = command_.execution;
  execution.prepared = execution.prepared || result.also_unpacked;
  for (const verify::Operands& operands : operands_) {
    Buffers buffers = operands.buffers();
    contestant.output.attach_to(buffers);
    Expected<ReadyRun> ready = ReadyRun::make(problem_, buffers, result.strategy, execution);
    if (!ready) return ready.status();
    contestant.runs.push_back(*std::move(ready));
  }
  result.config = contestant.runs.front().plan().config();
  result.prepared = contestant.runs.front().plan().prepared;
  DUALGEMM_TRY(contestant.runs.front().run(&result.info));
  return check(contestant);
}

Status ShapeBench::check(Contestant& contestant) {
  BenchResult& result = contestant.result;
  const Buffers& actual = contestant.runs.front().buffers();
  const bool fp8 = result.strategy == StrategyId::kFp8;
  if (trusted_ == nullptr && fp8) DUALGEMM_TRY(compute_trusted());
  if (trusted_ == nullptr) {
    result.sampled = true;
    const auto report =
        verify::check_result(problem_, actual, result.info.isa, {kSamples, command_.seed});
    if (!report) return report.status();
    result.check = *report;
    return report->passed() ? keep_trusted(contestant) : Status();
  }
  Buffers expected = actual;
  trusted_->attach_to(expected);
  const auto difference = verify::output_difference(problem_, expected, actual);
  if (!difference) return difference.status();
  result.differing = difference->differing;
  if (fp8) {
    result.fp8 = *difference;
    return {};
  }
  const auto report = verify::check_against(problem_, expected, actual, result.info.isa);
  if (!report) return report.status();
  result.check = *report;
  return {};
}

Status ShapeBench::compute_trusted() {
  Contestant fused;
  fused.result.strategy = StrategyId::kFused;
  DUALGEMM_TRY(prepare_and_check(fused));
  if (trusted_ != nullptr) return {};
  return Status::error(StatusCode::kInternal, "fp8", "fused is wrong", "nothing to compare with");
}

Status ShapeBench::keep_trusted(const Contestant& contestant) {
  Expected<verify::Output> copy = verify::allocate_output(problem_);
  if (!copy) return copy.status();
  std::copy_n(contestant.output.d.data(), contestant.output.d.size(), copy->d.data());
  std::copy_n(contestant.output.d_scales.data(), contestant.output.d_scales.size(),
              copy->d_scales.data());
  trusted_ = std::make_unique<verify::Output>(*std::move(copy));
  return {};
}

}  // namespace dualgemm::cli
