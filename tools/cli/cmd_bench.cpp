#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <span>

#include "tools/cli/bench_limits.hpp"
#include "tools/cli/bench_report.hpp"
#include "tools/cli/check_text.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/ready_run.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

constexpr int64_t kSamples = 4096;  // elements that the oracle checks at the least
// On a GPU: rounds of all contestants, each a CUDA graph of so many runs, replayed so often.
constexpr int kDeviceRounds = 3, kDeviceCalls = 100, kDeviceReplays = 7;

std::vector<Shape> shapes_of(const BenchCommand& command) {
  if (command.shapes.empty())
    return {{256, 4096, 7168, 1}, {512, 4096, 7168, 1}, {256, 3072, 4096, 1}, {512, 3072, 7168, 1}};
  return command.shapes.combinations({512, 4096, 7168, 1});
}

// fused first: it is what the others are compared with.
std::vector<StrategyId> strategies_of(const BenchCommand& command) {
  std::vector<StrategyId> list = command.strategies;
  if (list.empty()) {
    list = all_strategies(command.execution.device);
    std::erase(list, StrategyId::kReference);
  }
  std::stable_partition(list.begin(), list.end(),
                        [](StrategyId id) { return id == StrategyId::kFused; });
  std::stable_partition(list.begin(), list.end(),
                        [](StrategyId id) { return id != StrategyId::kFp8; });
  return list;
}

// On a GPU fused takes part twice where it can: prepared weights are another order in memory, which
// costs a caller one pass over them.
bool enters_twice(const BenchCommand& command, const Problem& problem, StrategyId strategy) {
  const ExecutionOptions& execution = command.execution;
  if (execution.device != DeviceKind::kCuda || execution.prepared || !execution.config.empty() ||
      strategy != StrategyId::kFused) {
    return false;
  }
  PlanOptions options = execution.plan_options(strategy);
  options.prepared = true;
  return make_plan(problem, options).ok();
}

// The last cache of the device, in bytes; 0 = unknown.
int64_t last_cache(DeviceKind device) {
  const Expected<DeviceCaps> caps = device_caps(device);
  if (!caps) return 0;
  if (device == DeviceKind::kCuda) return caps->l2_bytes;
  return std::max(caps->l3_bytes, caps->l2_bytes * caps->cores);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

// Of seconds per run on the GPU, each of a graph of runs; the host is not measured.
measure::QuietResult summary_of(std::vector<double> seconds, std::string name) {
  measure::QuietResult result;
  result.name = std::move(name);
  std::sort(seconds.begin(), seconds.end());
  result.samples = result.quiet_samples = static_cast<int>(seconds.size());
  result.runs = kDeviceCalls * result.samples;
  if (seconds.empty()) return result;
  result.median_seconds = seconds[seconds.size() / 2];
  result.min_seconds = seconds.front();
  result.relative_spread =
      (seconds[seconds.size() * 3 / 4] - seconds[seconds.size() / 4]) / result.median_seconds;
  return result;
}

// All runs of one strategy on one shape: one per set of operands, writing the same D.
struct Contestant {
  BenchResult result;
  verify::Output output;
  std::vector<ReadyRun> runs;
  size_t next = 0;
  std::vector<double> seconds;  // on a GPU
};

class ShapeBench {
 public:
  ShapeBench(const BenchCommand& command, const Problem& problem)
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

  Status make_operands() {
    for (int i = 0; i < shape_.operand_sets; ++i) {
      Expected<verify::Operands> operands = verify::random_operands(
          problem_, verify::RandomKind::kUniform, command_.seed + static_cast<uint64_t>(i));
      if (!operands) return operands.status();
      operands_.push_back(*std::move(operands));
    }
    return {};
  }

  // Runs `strategy` once and checks its D. `again`: now with prepared weights.
  void enter(StrategyId strategy, bool again = false) {
    auto contestant = std::make_unique<Contestant>();
    contestant->result.strategy = strategy;
    contestant->result.also_as_they_lie = again;
    contestant->result.error = prepare_and_check(*contestant);
    contestants_.push_back(std::move(contestant));
  }

  // `peaks`: those of this machine; the ones that limit a contestant take part in every round.
  Status time(const std::vector<measure::PeakCase>& peaks, Progress& progress, int64_t index,
              int64_t count, bool& monitored) {
    if (command_.execution.device == DeviceKind::kCuda) return time_on_gpu(progress, index, count);
    std::vector<measure::PeakCase> limits;
    for (const measure::PeakCase& peak : peaks) {
      if (peak.field == &measure::Peaks::read_gbps || limits_somebody(peak.field))
        limits.push_back(peak);
    }
    std::vector<measure::QuietCase> cases;
    for (const measure::PeakCase& peak : limits) cases.push_back({"peak " + peak.name, peak.run});
    std::vector<Contestant*> timed;
    for (const auto& contestant : contestants_) {
      if (!contestant->result.error.ok()) continue;
      timed.push_back(contestant.get());
      cases.push_back({contestant->result.name(), [c = contestant.get()] {
                         if (const Status status = c->runs[c->next].run(); !status.ok())
                           c->result.error = status;
                         c->next = (c->next + 1) % c->runs.size();
                       }});
    }
    measure::QuietOptions options;
    options.min_samples = static_cast<int>(std::min<int64_t>(command_.min_rounds, 1000));
    options.max_samples = static_cast<int>(std::min<int64_t>(command_.max_rounds, 1000));
    options.budget_seconds = command_.seconds;
    const measure::QuietReport report = measure::run_quietly(
        cases, options, measure::system_world(), [&](const std::string& name, int round) {
          progress.show(index,
                        fmt::format("shape {} of {}, round {}: {}", index + 1, count, round, name));
        });
    for (size_t i = 0; i < timed.size(); ++i)
      timed[i]->result.timing = report.cases[limits.size() + i];
    if (!limits.empty()) {
      shape_.peaks = measure::settled_peaks(limits, std::span(report.cases).first(limits.size()),
                                            command_.execution.threads);
    }
    shape_.quiet_seconds = report.seconds;
    monitored = monitored && report.monitored;
    return {};
  }

  BenchShape finish() {
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

 private:
  bool limits_somebody(double measure::Peaks::*field) const {
    return std::any_of(contestants_.begin(), contestants_.end(), [&](const auto& contestant) {
      const Isa isa = contestant->result.info.isa;
      return contestant->result.error.ok() && arithmetic_peak(isa, problem_.a.type) == field;
    });
  }

  // Peaks and contestants take turns, as on the CPU.
  Status time_on_gpu(Progress& progress, int64_t index, int64_t count) {
    std::vector<double> f16, e4m3, read;
    for (int round = 0; round < kDeviceRounds; ++round) {
      const auto show = [&](const std::string& name) {
        progress.show(
            index, fmt::format("shape {} of {}, round {}: {}", index + 1, count, round + 1, name));
      };
      if (command_.peaks) {
        show("peaks");
        const Expected<verify::DevicePeaks> peaks = verify::measure_device_peaks();
        if (!peaks) return peaks.status();
        f16.push_back(peaks->f16_gflops);
        e4m3.push_back(peaks->e4m3_gflops);
        read.push_back(peaks->read_gbps);
      }
      for (const auto& contestant : contestants_) {
        if (!contestant->result.error.ok()) continue;
        show(contestant->result.name());
        const auto seconds =
            ReadyRun::time_on_device(contestant->runs, kDeviceCalls, kDeviceReplays);
        contestant->result.error = seconds.status();
        if (!seconds) continue;
        contestant->seconds.insert(contestant->seconds.end(), seconds->begin(), seconds->end());
      }
    }
    if (command_.peaks)
      shape_.device_peaks = verify::DevicePeaks{median_of(f16), median_of(e4m3), median_of(read)};
    for (const auto& contestant : contestants_) {
      BenchResult& result = contestant->result;
      if (result.error.ok()) result.timing = summary_of(contestant->seconds, result.name());
    }
    return {};
  }

  Status prepare_and_check(Contestant& contestant) {
    BenchResult& result = contestant.result;
    Expected<verify::Output> output = verify::allocate_output(problem_);
    if (!output) return output.status();
    contestant.output = *std::move(output);
    ExecutionOptions execution = command_.execution;
    execution.prepared = execution.prepared || result.also_as_they_lie;
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

  Status check(Contestant& contestant) {
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

  // For fp8, which is compared with a checked result, when nothing else was asked for.
  Status compute_trusted() {
    Contestant fused;
    fused.result.strategy = StrategyId::kFused;
    DUALGEMM_TRY(prepare_and_check(fused));
    if (trusted_ != nullptr) return {};
    return Status::error(StatusCode::kInternal, "fp8", "fused is wrong", "nothing to compare with");
  }

  // A copy, as timing writes the contestant's own D again.
  Status keep_trusted(const Contestant& contestant) {
    Expected<verify::Output> copy = verify::allocate_output(problem_);
    if (!copy) return copy.status();
    std::copy_n(contestant.output.d.data(), contestant.output.d.size(), copy->d.data());
    std::copy_n(contestant.output.d_scales.data(), contestant.output.d_scales.size(),
                copy->d_scales.data());
    trusted_ = std::make_unique<verify::Output>(*std::move(copy));
    return {};
  }

  const BenchCommand& command_;
  Problem problem_;
  BenchShape shape_;
  std::vector<verify::Operands> operands_;
  std::vector<std::unique_ptr<Contestant>> contestants_;
  std::unique_ptr<verify::Output> trusted_;
};

// Before the first minute is spent: everything that makes the whole request hopeless.
Status check_request(BenchCommand& command) {
  const std::vector<Shape> shapes = shapes_of(command);
  const auto problem = [&](const Shape& s) { return command.problem.problem(s.m, s.n, s.k, s.l); };
  for (const Shape& s : shapes) DUALGEMM_TRY(validate(problem(s)));
  DUALGEMM_TRY(check_device(command.execution));
  DUALGEMM_TRY(settle_strategy(problem(shapes.front()), command.execution, command.strategies));
  const std::vector<StrategyId> strategies = strategies_of(command);
  for (const Shape& s : shapes) {
    DUALGEMM_TRY(check_some_plan(problem(s), strategies, command.execution));
    const Expected<OperandSizes> sizes = operand_sizes(problem(s));
    if (!sizes) return sizes.status();
    const DeviceKind device = command.execution.device;
    const Rotation rotation =
        rotation_for(problem(s), *sizes, last_cache(device), device == DeviceKind::kCuda);
    DUALGEMM_TRY(check_memory(*sizes, rotation.sets, static_cast<int64_t>(strategies.size())));
  }
  return {};
}

Status measure(const BenchCommand& command, BenchReport& report) {
  const bool on_cpu = command.execution.device != DeviceKind::kCuda;
  std::vector<measure::PeakCase> peaks;
  if (command.peaks && on_cpu)
    peaks = measure::peak_cases(command.execution.threads, measure::PeakOptions{});
  report.on_gpu = !on_cpu;
  const std::vector<Shape> shapes = shapes_of(command);
  const auto count = static_cast<int64_t>(shapes.size());
  Progress progress(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto [m, n, k, l] = shapes[static_cast<size_t>(i)];
    progress.clear();
    talk(fmt::format("{} x {} x {} x {}: checking, then timing", m, n, k, l));
    const Problem problem = command.problem.problem(m, n, k, l);
    ShapeBench shape(command, problem);
    DUALGEMM_TRY(shape.make_operands());
    for (const StrategyId strategy : strategies_of(command)) {
      progress.show(i, fmt::format("shape {} of {}, checking {}", i + 1, count, name_of(strategy)));
      shape.enter(strategy);
      if (enters_twice(command, problem, strategy)) shape.enter(strategy, true);
    }
    DUALGEMM_TRY(shape.time(peaks, progress, i, count, report.monitored));
    report.shapes.push_back(shape.finish());
  }
  return {};
}

void describe_run(const BenchCommand& command, BenchReport& report) {
  report.seed = command.seed;
  report.timestamp = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  const Shape shape = shapes_of(command).front();
  const auto plan = make_plan(command.problem.problem(shape.m, shape.n, shape.k, shape.l),
                              command.execution.plan_options(StrategyId::kAuto));
  const Expected<DeviceCaps> caps = device_caps(command.execution.device);
  report.device = caps ? caps->name : "";
  if (!plan) return;
  report.threads = plan->threads;
  report.isa = name_of(plan->isa);
}

Status write_reports(const BenchCommand& command, const BenchReport& report) {
  if (!command.json.empty()) DUALGEMM_TRY(write_text(command.json, bench_json(report)));
  if (!command.markdown.empty()) DUALGEMM_TRY(write_text(command.markdown, bench_markdown(report)));
  if (!command.csv.empty()) DUALGEMM_TRY(write_text(command.csv, bench_csv(report)));
  const bool stdout_taken = command.json == "-" || command.markdown == "-" || command.csv == "-";
  if (!stdout_taken) print(bench_text(report, stdout_style()));
  return {};
}

}  // namespace

int execute(const BenchCommand& request) {
  BenchCommand command = request;
  if (const Status status = check_request(command); !status.ok()) return fail_usage(status);
  for (const std::string& path : {command.json, command.markdown, command.csv}) {
    if (path.empty()) continue;
    if (const Status status = check_writable(path); !status.ok()) return fail(status);
  }
  BenchReport report;
  describe_run(command, report);
  if (const Status status = measure(command, report); !status.ok()) return fail(status);
  if (!report.monitored) talk("other processes could not be watched: no sample was rejected");
  if (const Status status = write_reports(command, report); !status.ok()) return fail(status);
  for (const BenchShape& shape : report.shapes) {
    for (const BenchResult& result : shape.results) {
      if (!result.failed()) continue;
      talk(fmt::format("{}: {}", result.name(), result.status()));
      if (result.check) talk("\n" + failure_details(*result.check));
    }
  }
  return report.failed() ? 1 : 0;
}

}  // namespace dualgemm::cli
