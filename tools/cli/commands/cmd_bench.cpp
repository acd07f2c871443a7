#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "tools/cli/commands/bench_limits.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/commands/shape_bench.hpp"
#include "tools/cli/print/bench_report.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/progress.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

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

// How long a shape takes beside the others: its operations, and what few rows cost all the same.
double work_of(const Shape& shape) {
  constexpr double kRowsOfAnyCall = 16;  // reading and decoding the weights costs as many
  return (static_cast<double>(shape.m) + kRowsOfAnyCall) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k) * static_cast<double>(shape.l);
}

// How much of the time that is left shape `i` may take, so that all shapes come to as many rounds.
double seconds_for(const std::vector<Shape>& shapes, int64_t i, double left) {
  double rest = 0;
  for (size_t j = static_cast<size_t>(i); j < shapes.size(); ++j) rest += work_of(shapes[j]);
  return left * work_of(shapes[static_cast<size_t>(i)]) / rest;
}

// Those of the shapes together.
std::optional<double> mean_of_others(const BenchReport& report) {
  double processor_seconds = 0;
  for (const BenchShape& shape : report.shapes) {
    if (!shape.other_processors) return std::nullopt;
    processor_seconds += *shape.other_processors * shape.seconds;
  }
  return report.seconds > 0 ? processor_seconds / report.seconds : 0;
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
    const double left = command.seconds * static_cast<double>(count) - report.seconds;
    const double seconds = seconds_for(shapes, i, std::max(0.0, left));
    DUALGEMM_TRY(shape.time(peaks, seconds, progress, i, count));
    report.shapes.push_back(shape.finish());
    report.seconds += report.shapes.back().seconds;
  }
  report.other_processors = mean_of_others(report);
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
  checkpoint::OutputSet files;
  std::string on_stdout;
  const auto write = [&](const std::string& path, std::string (*text_of)(const BenchReport&)) {
    if (path == "-") on_stdout = text_of(report);
    return path.empty() || path == "-" ? Status() : files.add(path, text_of(report));
  };
  DUALGEMM_TRY(write(command.json, bench_json));
  DUALGEMM_TRY(write(command.markdown, bench_markdown));
  DUALGEMM_TRY(write(command.csv, bench_csv));
  DUALGEMM_TRY(files.commit());
  print(on_stdout);
  const bool stdout_taken = command.json == "-" || command.markdown == "-" || command.csv == "-";
  if (!stdout_taken) print_styled(bench_text(report, stdout_style()));
  return {};
}

}  // namespace

int execute(const BenchCommand& request) {
  BenchCommand command = request;
  if (const Status status = check_request(command); !status.ok()) return fail_usage(status);
  if (const Status status = check_different_files(
          {{"--json", command.json}, {"--markdown", command.markdown}, {"--csv", command.csv}});
      !status.ok()) {
    return fail_usage(status);
  }
  if (command.dry_run)
    return end_dry_run({command.json, command.markdown, command.csv}, command.json == "-");
  for (const std::string& path : {command.json, command.markdown, command.csv}) {
    if (path.empty()) continue;
    if (const Status status = check_writable(path); !status.ok()) return fail(status);
  }
  BenchReport report;
  describe_run(command, report);
  if (const Status status = measure(command, report); !status.ok()) return fail(status);
  if (const Status status = write_reports(command, report); !status.ok()) return fail(status);
  for (const BenchShape& shape : report.shapes) {
    for (const BenchResult& result : shape.results) {
      if (!result.failed()) continue;
      talk(fmt::format("{}: {}", result.name(), result.status()),
           result.check ? failure_details(*result.check) : std::string());
    }
  }
  return report.failed() ? 1 : 0;
}

}  // namespace dualgemm::cli
