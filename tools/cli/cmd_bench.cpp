#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

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
constexpr int64_t kRotateBelowM =
    32;  // up to here the weights' traffic matters, and reading them from a cache would flatter
constexpr int64_t kMaxOperandSets = 6;
constexpr int64_t kMaxDeviceOperandSets = 64;
constexpr int kDeviceCalls = 100, kDeviceReplays = 21;  // runs in a CUDA graph, and its replays

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

measure::MachineLimits limits_of(const measure::Peaks& peaks, const Problem& problem, Isa isa) {
  const bool int8 = problem.a.type == DataType::kE2M1;
  switch (isa) {
    case Isa::kAvx2:
      return {int8 ? peaks.avx2_dot_gops : peaks.fma_ymm_gflops, peaks.read_gbps};
    case Isa::kAvx512Vnni:
      return {int8 ? peaks.vnni_zmm_gops : peaks.fma_zmm_gflops, peaks.read_gbps};
    case Isa::kAmxBf16:
      return {peaks.amx_bf16_gflops, peaks.read_gbps};
    default:  // scalar code has no peak of its own, and these are the CPU's
      break;
  }
  return {};
}

// NVFP4 tensor cores have no measured peak.
measure::MachineLimits limits_of(const verify::DevicePeaks& peaks, const BenchResult& result) {
  if (result.info.isa == Isa::kSm100a) return {};
  return {result.strategy == StrategyId::kFp8 ? peaks.e4m3_gflops : peaks.f16_gflops,
          peaks.read_gbps};
}

// How many sets of operands exceed the last cache three times, so that each comes from memory.
int64_t operand_sets(const Problem& problem, DeviceKind device) {
  const Expected<OperandSizes> sizes = operand_sizes(problem);
  const Expected<DeviceCaps> caps = device_caps(device);
  const bool gpu = device == DeviceKind::kCuda;
  if (!sizes || !caps || (problem.m > kRotateBelowM && !gpu)) return 1;
  const int64_t one = sizes->gate + sizes->gate_scales + sizes->up + sizes->up_scales;
  const int64_t cache = gpu ? caps->l2_bytes : caps->l3_bytes;
  return std::clamp<int64_t>(3 * cache / std::max<int64_t>(one, 1) + 1, 1,
                             gpu ? kMaxDeviceOperandSets : kMaxOperandSets);
}

// The median of seconds per run on the GPU, each of a graph of runs; the host is not measured.
Expected<measure::QuietResult> time_on_device(std::vector<ReadyRun>& runs, std::string name) {
  Expected<std::vector<double>> timed =
      ReadyRun::time_on_device(runs, kDeviceCalls, kDeviceReplays);
  if (!timed) return timed.status();
  std::vector<double>& seconds = *timed;
  std::sort(seconds.begin(), seconds.end());
  measure::QuietResult result;
  result.name = std::move(name);
  result.median_seconds = seconds[seconds.size() / 2];
  result.min_seconds = seconds.front();
  result.relative_spread =
      (seconds[seconds.size() * 3 / 4] - seconds[seconds.size() / 4]) / result.median_seconds;
  result.samples = static_cast<int>(seconds.size());
  result.runs = kDeviceCalls * result.samples;
  return result;
}

// All runs of one strategy on one shape: one per set of operands, writing the same d.
struct Contestant {
  BenchResult result;
  verify::Output output;
  std::vector<ReadyRun> runs;
  size_t next = 0;
};

class ShapeBench {
 public:
  ShapeBench(const BenchCommand& command, const Problem& problem)
      : command_(command), problem_(problem) {
    shape_.problem = problem;
    shape_.operand_sets = static_cast<int>(operand_sets(problem, command.execution.device));
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

  // Runs `strategy` once and checks its d. `again`: now with prepared weights.
  void enter(StrategyId strategy, bool again = false) {
    auto contestant = std::make_unique<Contestant>();
    contestant->result.strategy = strategy;
    contestant->result.also_as_they_lie = again;
    contestant->result.error = prepare_and_check(*contestant);
    contestants_.push_back(std::move(contestant));
  }

  void time(Progress& progress, int64_t index, int64_t count, bool& monitored) {
    if (command_.execution.device == DeviceKind::kCuda) return time_on_gpu();
    std::vector<measure::QuietCase> cases;
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
    for (size_t i = 0; i < timed.size(); ++i) timed[i]->result.timing = report.cases[i];
    shape_.quiet_seconds = report.seconds;
    monitored = monitored && report.monitored;
  }

  BenchShape finish(const BenchReport& report) {
    for (const auto& contestant : contestants_) {
      BenchResult& result = contestant->result;
      if (result.timed()) {
        measure::MachineLimits limits;
        if (report.peaks) limits = limits_of(*report.peaks, problem_, result.info.isa);
        if (report.device_peaks) limits = limits_of(*report.device_peaks, result);
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
  void time_on_gpu() {
    for (const auto& contestant : contestants_) {
      BenchResult& result = contestant->result;
      if (!result.error.ok()) continue;
      const auto timing = time_on_device(contestant->runs, result.name());
      if (timing) result.timing = *timing;
      result.error = timing.status();
    }
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

  // A copy, as timing writes the contestant's own d again.
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

Status check_request(BenchCommand& command) {
  const std::vector<Shape> shapes = shapes_of(command);
  const auto problem = [&](const Shape& s) { return command.problem.problem(s.m, s.n, s.k, s.l); };
  for (const Shape& s : shapes) DUALGEMM_TRY(validate(problem(s)));
  return settle_strategy(problem(shapes.front()), command.execution, command.strategies);
}

Status measure(const BenchCommand& command, BenchReport& report) {
  const bool on_cpu = command.execution.device != DeviceKind::kCuda;
  if (command.peaks && on_cpu) {
    talk("measuring peaks");
    report.peaks = measure::measure_peaks(command.execution.threads);
  }
  if (command.peaks && !on_cpu) {
    talk("measuring peaks");
    const Expected<verify::DevicePeaks> peaks = verify::measure_device_peaks();
    if (!peaks) return peaks.status();
    report.device_peaks = *peaks;
  }
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
    shape.time(progress, i, count, report.monitored);
    report.shapes.push_back(shape.finish(report));
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
  if (!stdout_taken) print(bench_text(report));
  return {};
}

}  // namespace

int execute(const BenchCommand& request) {
  BenchCommand command = request;
  if (const Status status = check_device(command.execution); !status.ok())
    return fail_usage(status);
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
