#include "cli/run_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/baseline.hpp"
#include "cli/loaded.hpp"
#include "cli/reports_version.hpp"
#include "cli/stop_signal.hpp"
#include "printable.hpp"
#include "trace/folded_reports.hpp"
#include "trace/text_tracer.hpp"

namespace ptxsim::cli {
namespace {

using Json = nlohmann::json;

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::kEager:
      return "eager";
    case Schedule::kLazy:
      return "lazy";
    default:
      return "random";
  }
}

Json to_json(const Stats& s) {
  return Json{{"warp_instructions", s.warp_instructions},
              {"lane_instructions", s.lane_instructions},
              {"by_warp", s.by_warp},
              {"mma_instructions", s.mma_instructions},
              {"mma_multiply_adds", s.mma_multiply_adds},
              {"tma_load_bytes", s.tma_load_bytes},
              {"tma_store_bytes", s.tma_store_bytes},
              {"l2_read_bytes", s.l2_read_bytes},
              {"l2_write_bytes", s.l2_write_bytes},
              {"barrier_waits", s.barrier_waits},
              {"barrier_waits_blocked", s.barrier_waits_blocked},
              {"async_operations", s.async_operations},
              {"clusters_left_out", s.clusters_left_out}};
}

Json to_json(const Place& p) {
  return Json{{"ptx", p.ptx_name},
              {"line", p.ptx_line},
              {"function", p.function},
              {"source", p.source_file},
              {"source_line", p.source_line}};
}

Json to_json(const Printed& printed) {
  Json list = Json::array();
  for (const PrintedText& p : printed.texts)
    list.push_back(Json{{"cta", p.ctaid}, {"thread", p.tid}, {"text", p.text}});
  return list;
}

Json to_json(const CaseResult& result, const Program& program, Schedule schedule, uint64_t seed,
             const std::vector<Suppression>& suppressions) {
  Json j{{"schema", kReportsVersion},
         {"schedule", name_of(schedule)},
         {"seed", seed},
         {"passed", result.mismatches.empty()},
         {"stats", to_json(result.run.stats)},
         {"mismatches", result.mismatches},
         {"reports", Json::array()},
         {"suppressed", Json::array()}};
  if (result.run.error)
    j["error"] = Json{{"kind", name_of(result.run.error->kind)},
                      {"message", result.run.error->message},
                      {"place", to_json(result.run.error->place)}};
  if (!result.run.printed.texts.empty()) j["printed"] = to_json(result.run.printed);
  std::vector<size_t> findings(result.run.reports.list.size());
  const std::vector<FoldedReport> folded = fold(program, result.run.reports);
  for (size_t i = 0; i < folded.size(); ++i)
    for (size_t member : folded[i].members) findings[member] = i;
  for (size_t i = 0; i < findings.size(); ++i) {
    const Report& r = result.run.reports.list[i];
    j["reports"].push_back(Json{{"rule", fmt::format("R{}", r.rule)},
                                {"severity", name_of(r.severity)},
                                {"message", r.message},
                                {"place", to_json(r.place)},
                                {"actor", r.actor},
                                {"other", r.other},
                                {"missing", r.missing},
                                {"fix", r.fix},
                                {"count", r.count},
                                {"finding", findings[i]}});
  }
  for (const auto& [r, index] : result.run.reports.suppressed)
    j["suppressed"].push_back(Json{{"rule", fmt::format("R{}", r.rule)},
                                   {"severity", name_of(r.severity)},
                                   {"message", r.message},
                                   {"place", to_json(r.place)},
                                   {"count", r.count},
                                   {"reason", suppressions[index].reason}});
  return j;
}

void print_stats(const Stats& s) {
  std::cout << fmt::format("  warp instructions {}, lanes {}\n", s.warp_instructions,
                           s.lane_instructions);
  for (size_t i = 0; i < s.by_warp.size(); ++i)
    std::cout << fmt::format("    warp {}: {}\n", i, s.by_warp[i]);
  std::cout << fmt::format(
      "  MMA {} ({} multiply-adds); TMA loads {} B, stores {} B; L2 reads {} B, writes {} B\n",
      s.mma_instructions, s.mma_multiply_adds, s.tma_load_bytes, s.tma_store_bytes, s.l2_read_bytes,
      s.l2_write_bytes);
  std::cout << fmt::format("  barrier waits {}, of them blocked {}; asynchronous operations {}\n",
                           s.barrier_waits, s.barrier_waits_blocked, s.async_operations);
}

bool is_stopped(const CaseResult& result) {
  return result.run.error && result.run.error->kind == ErrorKind::kStopped;
}

// Errors that the case does not expect, and with --verbose the other findings; each of them with
// --verbose, otherwise copies of one statement together.
void print_reports(const RunArgs& args, const CaseResult& result,
                   const std::vector<FoldedReport>& folded) {
  const Reports& reports = result.run.reports;
  const auto is_shown = [&](const Report& report) {
    return report.severity == Severity::kError ? result.unexpected_rules || is_stopped(result)
                                               : args.verbose;
  };
  if (args.verbose) {
    for (const Report& report : reports.list)
      if (is_shown(report)) std::cout << to_string(report) << "\n";
    return;
  }
  for (const FoldedReport& f : folded)
    if (is_shown(reports.list[f.members[0]])) std::cout << to_string(f, reports) << "\n";
}

// As CUDA does, the text alone; with --printf-threads who printed it.
void print_printed(const RunArgs& args, const Printed& printed) {
  if (printed.lost > 0) std::cout << fmt::format("({} earlier texts are lost)\n", printed.lost);
  for (const PrintedText& p : printed.texts) {
    if (args.printf_threads)
      std::cout << fmt::format("CTA ({},{},{}) thread ({},{},{}): ", p.ctaid[0], p.ctaid[1],
                               p.ctaid[2], p.tid[0], p.tid[1], p.tid[2]);
    std::cout << p.text;
    if (args.printf_threads && !p.text.ends_with('\n')) std::cout << '\n';
  }
  if (!printed.texts.empty() && !printed.texts.back().text.ends_with('\n')) std::cout << '\n';
}

void print_result(const RunArgs& args, const CaseResult& result, const Program& program,
                  Schedule schedule, uint64_t seed) {
  const Reports& reports = result.run.reports;
  const std::vector<FoldedReport> folded = fold(program, reports);
  print_printed(args, result.run.printed);
  std::cout << fmt::format("{} {} seed {}: {} errors, {} warnings, {} advisories\n",
                           is_stopped(result)          ? "stopped"
                           : result.mismatches.empty() ? "passed"
                                                       : "FAILED",
                           name_of(schedule), seed, count(folded, reports, Severity::kError),
                           count(folded, reports, Severity::kWarning),
                           count(folded, reports, Severity::kAdvisory));
  if (const uint64_t left_out = result.run.stats.clusters_left_out; left_out != 0)
    std::cout << fmt::format("  {} clusters were left out (--sample {}); no result was compared\n",
                             left_out, args.sample);
  for (const std::string& text : result.mismatches)
    std::cout << "  " << printable_lines(text) << "\n";
  print_reports(args, result, folded);
  if (args.stats) print_stats(result.run.stats);
}

std::vector<Schedule> schedules_of(const std::string& name) {
  if (name == "all") return {Schedule::kEager, Schedule::kLazy, Schedule::kRandom};
  return {name == "eager"  ? Schedule::kEager
          : name == "lazy" ? Schedule::kLazy
                           : Schedule::kRandom};
}

// "<buffer>=<file>" of a buffer of the case.
struct Dump {
  std::string buffer, file;
};

Result<std::vector<Dump>> dumps_of(const RunArgs& args, const Case& description) {
  std::vector<Dump> dumps;
  for (const std::string& text : args.dumps) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    const bool known = std::any_of(description.buffers.begin(), description.buffers.end(),
                                   [&](const CaseBuffer& b) { return b.name == name; });
    if (!known || equals == text.size())
      return Error{
          ErrorKind::kInput,
          fmt::format("--dump: '{}'; must be <buffer>=<file> of a buffer of the case", text),
          {}};
    dumps.push_back({name, text.substr(equals + 1)});
  }
  return dumps;
}

int write_dumps(const std::vector<Dump>& dumps, CaseResult& result) {
  for (const Dump& dump : dumps) {
    const GlobalBuffer* buffer = result.memory.find(dump.buffer);
    if (buffer == nullptr) continue;  // the launch was refused, as the case expects
    std::ofstream file(dump.file, std::ios::binary);
    file.write(reinterpret_cast<const char*>(buffer->data.data()),
               static_cast<std::streamsize>(buffer->data.size()));
    if (!file.flush())
      return print_error(
          {ErrorKind::kInput, fmt::format("--dump: cannot write '{}'", dump.file), {}});
  }
  return 0;
}

// An input that is not valid, or a kernel that does not end, and the case does not expect it.
bool is_refused(const Case& description, const CaseResult& result) {
  if (!result.run.error || description.expect_error) return false;
  const ErrorKind kind = result.run.error->kind;
  return kind == ErrorKind::kInput || kind == ErrorKind::kBudget;
}

// What the case does not expect is an error; its findings are those of the report.
FindingsOfRun findings_of(const CaseResult& result, const Program& program, Schedule schedule,
                          uint64_t seed, const std::vector<Suppression>& suppressions) {
  FindingsOfRun run{fmt::format("{} seed {}", name_of(schedule), seed), program.entry->name, {}};
  for (const Report& report : result.run.reports.list) run.findings.push_back(finding_of(report));
  for (const auto& [report, index] : result.run.reports.suppressed) {
    run.findings.push_back(finding_of(report));
    run.findings.back().suppressed = suppressions[index].reason;
  }
  for (const std::string& mismatch : result.mismatches) {
    const Place place = result.run.error ? result.run.error->place : Place{};
    run.findings.push_back(
        {"run", "error", mismatch, "", program.entry->name, "", place, 1, std::nullopt});
  }
  return run;
}

// What a case expects fails no run, and the run would fail without it.
void drop_expected(const Case& description, std::vector<FindingsOfRun>& runs) {
  for (int rule : description.expect_reports.value_or(std::vector<int>{}))
    for (FindingsOfRun& run : runs)
      std::erase_if(run.findings,
                    [&](const Finding& f) { return f.rule == fmt::format("R{}", rule); });
}

Options options_of(const RunArgs& args, Schedule schedule, uint64_t seed,
                   const std::atomic<bool>* stop) {
  Options options = options_of(static_cast<const InterpreterArgs&>(args));
  options.schedule = schedule;
  options.seed = seed;
  options.check_global = !args.fast;
  options.stop = stop;
  return options;
}

}  // namespace

void add_run_options(CLI::App& app, RunArgs& args) {
  app.add_option("kernel", args.kernel, "PTX file, as `nvcc -ptx -lineinfo` writes it")->required();
  app.add_option("--entry", args.entry, "Kernel; default: the case's, or the only one");
  app.add_option("--case", args.case_file,
                 "JSON: grid, buffers, parameters, expected results; default: the //! lines");
  app.add_option("--schedule", args.schedule, "eager, lazy, random or all")
      ->check(CLI::IsMember({"eager", "lazy", "random", "all"}))
      ->capture_default_str();
  app.add_option("--seed", args.seed, "First seed")->check(kUnsigned)->capture_default_str();
  app.add_option("--seeds", args.seeds, "How many seeds, from --seed on")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1000000}));
  add_interpreter_options(app, args);
  add_findings_options(app, args);
  app.add_flag("--fast", args.fast, "Do not check accesses to global memory (R17 to R22)");
  app.add_flag("--strict", args.strict, "Warnings and advisories count as errors");
  app.add_option("--trace", args.trace, "Write every executed statement to this file");
  app.add_option("--dump", args.dumps,
                 "<buffer>=<file>: write a buffer's contents after the last run");
  app.add_flag("--printf-threads", args.printf_threads,
               "Say which thread printed each text of the kernel's printf");
  app.add_flag("--stats", args.stats, "Print counters");
  app.add_flag("--json", args.json, "Print everything as JSON");
  app.add_flag("--verbose", args.verbose,
               "Print warnings and advisories too, and each copy of a finding");
}

int run_command(const RunArgs& args) {
  Result<Loaded> loaded = load_files(args.kernel, args.case_file, args.entry);
  if (!loaded.ok()) return print_error(loaded.error());
  Result<std::vector<Dump>> dumps = dumps_of(args, loaded->description);
  if (!dumps.ok()) return print_error(dumps.error());
  const std::atomic<bool>& stop = stop_on_interrupt();
  std::ofstream trace_file;
  std::vector<MakeObserver> observers;
  if (!args.trace.empty()) {
    trace_file.open(args.trace);
    observers.push_back([&](Cluster&) { return std::make_unique<TextTracer>(trace_file); });
  }
  Result<std::vector<Suppression>> listed = load_suppressions(args);
  if (!listed.ok()) return print_error(listed.error());
  std::vector<Suppression> suppressions = loaded->description.suppressions;
  suppressions.insert(suppressions.end(), listed->begin(), listed->end());
  std::vector<bool> used(suppressions.size());
  std::vector<FindingsOfRun> findings;
  int code = 0;
  Json all = Json::array();
  CaseResult last;
  for (uint64_t i = 0; i < args.seeds && code != kExitStopped; ++i)
    for (Schedule schedule : schedules_of(args.schedule)) {
      const uint64_t seed = args.seed + i;
      Options options = options_of(args, schedule, seed, &stop);
      if (!listed->empty())
        options.suppressions = std::make_shared<const std::vector<Suppression>>(*listed);
      last = run_case(loaded->description, loaded->program, options, observers);
      for (const auto& [report, index] : last.run.reports.suppressed) used[index] = true;
      if (is_refused(loaded->description, last)) return print_error(*last.run.error);
      if (!last.mismatches.empty()) code = 1;
      findings.push_back(findings_of(last, *loaded->program, schedule, seed, suppressions));
      if (args.json)
        all.push_back(to_json(last, *loaded->program, schedule, seed, suppressions));
      else
        print_result(args, last, *loaded->program, schedule, seed);
      if (stop) {
        code = kExitStopped;
        break;
      }
    }
  // Texts of the kernel's file need not be UTF-8.
  if (args.json) std::cout << all.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  if (!args.trace.empty() && !trace_file.flush())
    return print_error(
        {ErrorKind::kInput, fmt::format("--trace: cannot write '{}'", args.trace), {}});
  const std::vector<std::string> unused = unused_suppressions(suppressions, used);
  for (const std::string& line : unused) std::cerr << line << "\n";
  if (args.strict && !unused.empty() && code == 0) code = 1;
  if (!std::cout.flush()) return print_error({ErrorKind::kInput, "cannot write the results", {}});
  if (const auto failed = write_findings(args, findings)) return print_error(*failed);
  drop_expected(loaded->description, findings);
  if (const auto failed = write_baseline(args, findings, args.strict)) return print_error(*failed);
  const int dumped = write_dumps(*dumps, last);
  return dumped != 0 ? dumped : code;
}

}  // namespace ptxsim::cli
