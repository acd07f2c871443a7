#include "cli/exec_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "case/json_text.hpp"
#include "timing/counts_json.hpp"

namespace ptxsim::cli {
namespace {

using Json = nlohmann::json;

std::string extents_text(const Json& extents) {
  return fmt::format("{}x{}x{}", extents.at(0).get<uint64_t>(), extents.at(1).get<uint64_t>(),
                     extents.at(2).get<uint64_t>());
}

// What is equal once; `identity`: what of it, if not all of the text.
void add(std::vector<ExecFinding>& findings, const std::string& text, Finding finding,
         std::string identity = "") {
  if (identity.empty()) identity = text;
  const auto equal = std::find_if(findings.begin(), findings.end(),
                                  [&](const ExecFinding& f) { return f.identity == identity; });
  if (equal != findings.end()) {
    ++equal->launches;
    equal->finding.count += finding.count;
  } else {
    findings.push_back({finding.severity, text, 1, std::move(identity), std::move(finding)});
  }
}

// What has no rule: its text says it all.
void add(ExecReport& report, const char* rule, const std::string& severity, const std::string& text,
         const std::string& kernel = "") {
  add(report.findings, text,
      {rule, severity, text.substr(0, text.find('\n')), "", kernel, "", {}, 1, std::nullopt});
}

Place place_of(const Json& at) {
  return {at.at("ptx"), at.at("line"), 0, at.at("source"), at.at("source_line"), at.at("function")};
}

void add_finding(ExecReport& report, const Json& record, const std::string& kernel,
                 const std::vector<Suppression>& suppressions) {
  Report plain;
  plain.rule = record.at("rule");
  plain.message = record.at("message");
  plain.place = place_of(record.at("at"));
  plain.kernel = record.at("entry");
  plain.count = record.at("count");
  Finding finding = finding_of(plain);
  finding.severity = record.at("severity");
  finding.kernel = kernel;
  std::string text = record.at("text");
  while (text.ends_with('\n')) text.pop_back();
  const size_t second = text.find('\n');
  finding.details = second == std::string::npos ? "" : text.substr(second + 1);
  text += "\n  kernel:  " + kernel;
  std::vector<ExecFinding>* to = &report.findings;
  for (size_t i = 0; i < suppressions.size(); ++i) {
    if (!is_suppressed(suppressions[i], plain)) continue;
    report.used[i] = true;
    finding.suppressed = suppressions[i].reason;
    to = &report.suppressed;
    break;
  }
  add(*to, text, std::move(finding), kernel + " " + record.at("identity").get<std::string>());
}

std::string shape_of(const Json& record) {
  std::string shape = fmt::format("grid {}, block {}", extents_text(record.at("grid")),
                                  extents_text(record.at("block")));
  const std::string cluster = extents_text(record.at("cluster"));
  if (cluster != "1x1x1") shape += ", cluster " + cluster;
  if (record.at("shared") != 0)
    shape += fmt::format(", {} B dynamic shared", record.at("shared").get<uint64_t>());
  return shape;
}

void add_launch(ExecReport& report, const Json& record,
                const std::vector<Suppression>& suppressions) {
  const std::string name = record.at("kernel");
  ExecKernel& kernel = report.kernels[name];
  if (kernel.launches == 0) kernel.shape = shape_of(record);
  ++kernel.launches;
  kernel.warp_instructions += record.at("warp_instructions").get<uint64_t>();
  kernel.clusters_left_out += record.value("clusters_left_out", uint64_t{0});
  if (record.contains("microseconds")) {
    if (kernel.timed++ == 0) {
      for (const Json& share : record.value("critical_path", Json::array()))
        kernel.critical_path.emplace_back(share.at("what"), share.at("us"));
      record.at("instructions").get_to(kernel.instructions);
    }
    kernel.times.all += record.at("microseconds").get<double>();
    kernel.times.gap += record.value("gap_microseconds", 0.0);
    kernel.times.power += record.value("power_microseconds", 0.0);
    kernel.times.low += record.value("low_microseconds", 0.0);
    kernel.times.high += record.value("high_microseconds", 0.0);
  }
  if (record.contains("error")) {
    const Json& error = record.at("error");
    add(report, "run", "error",
        fmt::format("{}: error: {}\n  kernel:  {}\n  launch:  {}",
                    error.at("place").get<std::string>(), error.at("message").get<std::string>(),
                    name, shape_of(record)),
        name);
  }
  if (record.contains("reports"))
    for (const Json& finding : record.at("reports"))
      add_finding(report, finding, name, suppressions);
}

void add_refusal(ExecReport& report, const Json& record) {
  const bool modelled = record.at("modelled");
  add(report, "call", modelled ? "warning" : "error",
      fmt::format("{}: {}: {} ({})", modelled ? "warning" : "error",
                  record.at("call").get<std::string>(), record.at("message").get<std::string>(),
                  record.at("status").get<std::string>()));
}

void note_progress(ExecReport& report, const Json& record) {
  const auto found = report.under_way.find(record.at("process").get<int64_t>());
  if (found == report.under_way.end()) return;
  found->second.place = record.at("place");
  found->second.warp_instructions = record.at("warp_instructions");
}

// What a killed process was at counts as an error: the launch has no result.
void add_launches_under_way(ExecReport& report) {
  for (const auto& [process, launch] : report.under_way)
    add(report, "run", "error",
        fmt::format("{}: error: the process ended while this launch ran; it was here after {} warp "
                    "instructions\n  kernel:  {}\n  launch:  {}",
                    launch.place, launch.warp_instructions, launch.kernel, launch.shape));
}

void add_record(ExecReport& report, const Json& record,
                const std::vector<Suppression>& suppressions) {
  const std::string event = record.at("event");
  if (event == "begin")
    report.under_way[record.at("process")] = {record.at("kernel"), shape_of(record), "", 0};
  if (event == "progress") note_progress(report, record);
  if (event == "launch") {
    report.under_way.erase(record.at("process").get<int64_t>());
    add_launch(report, record, suppressions);
  }
  if (event == "repeated") {
    ExecKernel& kernel = report.kernels[record.at("kernel")];
    ++kernel.launches;
    ++kernel.repeated;
  }
  if (event == "found")
    for (const Json& finding : record.at("reports"))
      add_finding(report, finding, record.at("what"), suppressions);
  if (event == "refused") add_refusal(report, record);
  if (event == "leak")
    add(report, "leak", "warning",
        fmt::format("warning: allocation {}: {} bytes of {} were never freed",
                    record.at("number").get<uint64_t>(), record.at("bytes").get<uint64_t>(),
                    record.at("home").get<std::string>()));
  if (event == "end") {
    report.ended = true;
    report.highest_memory =
        std::max(report.highest_memory, record.at("highest_memory").get<uint64_t>());
  }
}

}  // namespace

uint64_t ExecReport::count(const std::string& severity) const {
  return static_cast<uint64_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const ExecFinding& f) { return f.severity == severity; }));
}

ExecReport read_exec_records(const std::string& records,
                             const std::vector<Suppression>& suppressions) {
  ExecReport report;
  report.used.resize(suppressions.size());
  std::istringstream lines(records);
  for (std::string line; std::getline(lines, line);) {
    // The program may write into the file, too, and end within a line.
    try {
      add_record(report, read_json(line), suppressions);
    } catch (const Fault&) {
      continue;
    } catch (const Json::exception&) {
      continue;
    }
  }
  add_launches_under_way(report);
  return report;
}

}  // namespace ptxsim::cli
