#include "cli/findings_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "case/suppression_list.hpp"
#include "cli/loaded.hpp"
#include "printable.hpp"

namespace ptxsim::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kSchema[] =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

std::string details_of(const Report& report) {
  std::string text;
  const auto line = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : "\n") + std::string(label) + value;
  };
  line("by: ", report.actor);
  line("earlier: ", report.other);
  line("missing: ", report.missing);
  line("fix: ", report.fix);
  return text;
}

// Braces hold the places of arguments in SARIF's messages; those that are meant are doubled.
std::string message_of(const Finding& finding) {
  const std::string text =
      finding.details.empty() ? finding.message : finding.message + "\n" + finding.details;
  std::string doubled;
  for (const char c : text) {
    doubled += c;
    if (c == '{' || c == '}') doubled += c;
  }
  return doubled;
}

// A path as a URI reference (RFC 3986): what is not unreserved is given in hexadecimal.
std::string uri_of(const std::string& path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80 &&
        (std::isalnum(code) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos))
      uri += c;
    else
      uri += fmt::format("%{:02X}", code);
  }
  return uri;
}

const char* level_of(const std::string& severity) {
  return severity == "error" ? "error" : severity == "warning" ? "warning" : "note";
}

// The source line where there is one, and the line of the PTX.
OrderedJson locations_of(const Finding& finding) {
  const auto physical = [](const std::string& file, int line) {
    return OrderedJson{{"artifactLocation", {{"uri", uri_of(file)}}},
                       {"region", {{"startLine", line}}}};
  };
  const Place& place = finding.place;
  OrderedJson location = OrderedJson::object();
  if (!place.source_file.empty() && place.source_line > 0)
    location["physicalLocation"] = physical(place.source_file, place.source_line);
  else if (place.ptx_line > 0)
    location["physicalLocation"] = physical(place.ptx_name, place.ptx_line);
  if (!finding.kernel.empty())
    location["logicalLocations"] =
        OrderedJson::array({{{"name", finding.kernel}, {"kind", "function"}}});
  return location.empty() ? OrderedJson::array() : OrderedJson::array({location});
}

OrderedJson result_of(const Finding& finding, const std::string& run, size_t rule) {
  OrderedJson result{{"ruleId", finding.rule},
                     {"ruleIndex", rule},
                     {"level", level_of(finding.severity)},
                     {"message", {{"text", message_of(finding)}}},
                     {"locations", locations_of(finding)},
                     {"occurrenceCount", std::max<uint64_t>(finding.count, 1)},
                     {"properties", {{"run", run}, {"severity", finding.severity}}}};
  if (finding.place.ptx_line > 0)
    result["properties"]["ptx"] =
        fmt::format("{}:{}", finding.place.ptx_name, finding.place.ptx_line);
  if (finding.suppressed)
    result["suppressions"] =
        OrderedJson::array({{{"kind", "external"}, {"justification", *finding.suppressed}}});
  return result;
}

// Control characters and what is not UTF-8 have no place in XML 1.0 but for tab and line ends.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable_lines(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n')
      out += "&#10;";
    else
      out += c;
  }
  return out;
}

std::string test_of(const FindingsOfRun& run, const Finding& finding) {
  std::string name = finding.rule + " " + to_string(finding.place);
  if (finding.place.ptx_line == 0) name = finding.rule + " " + finding.message;
  std::string test = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\">\n",
                                 escaped(finding.kernel.empty() ? run.kernel : finding.kernel),
                                 escaped(run.name + ": " + name));
  if (finding.suppressed)
    test += "      <skipped/>\n";
  else if (finding.severity == "error")
    test += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                        escaped(finding.rule), escaped(finding.message), escaped(finding.details));
  return test + "    </testcase>\n";
}

}  // namespace

void add_findings_options(CLI::App& app, FindingsArgs& args) {
  app.add_option("--suppress", args.suppress_file,
                 "JSON: findings that are known, by rule, kernel, source line and reason");
  CLI::Option* known =
      app.add_option("--baseline", args.baseline_file,
                     "What --write-baseline wrote: only findings that are not in it fail");
  app.add_option("--write-baseline", args.new_baseline_file,
                 "Write the findings that fail to this file, for --baseline")
      ->excludes(known);
  app.add_option("--sarif", args.sarif_file, "Write findings to this file as SARIF 2.1.0");
  app.add_option("--junit", args.junit_file, "Write findings to this file as JUnit's XML");
}

Finding finding_of(const Report& report) {
  return {fmt::format("R{}", report.rule),
          name_of(report.severity),
          report.message,
          details_of(report),
          report.kernel,
          report.kernel,
          report.place,
          report.count,
          std::nullopt};
}

Result<std::vector<Suppression>> load_suppressions(const FindingsArgs& args) {
  std::vector<Suppression> all;
  for (const std::string* file : {&args.suppress_file, &args.baseline_file}) {
    if (file->empty()) continue;
    Result<std::string> text = read_text(*file);
    if (!text.ok()) return text.error();
    Result<std::vector<Suppression>> listed = parse_suppressions(*text, *file);
    if (!listed.ok()) return listed.error();
    for (Suppression& suppression : *listed) {
      suppression.is_of_baseline = file == &args.baseline_file;
      all.push_back(std::move(suppression));
    }
  }
  return all;
}

std::vector<std::string> unused_suppressions(const std::vector<Suppression>& all,
                                             const std::vector<bool>& used) {
  std::vector<std::string> lines;
  size_t first_of_baseline = 0;
  while (first_of_baseline < all.size() && !all[first_of_baseline].is_of_baseline)
    ++first_of_baseline;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i < used.size() && used[i]) continue;
    std::string line = all[i].is_of_baseline
                           ? fmt::format("warning: stale baseline entry [{}]: R{}",
                                         i - first_of_baseline, all[i].rule)
                           : fmt::format("warning: unused suppression [{}]: R{}", i, all[i].rule);
    if (!all[i].kernel.empty()) line += ", kernel " + printable(all[i].kernel, kLongestName);
    if (!all[i].file.empty())
      line += fmt::format(", {}:{}", printable(all[i].file, kLongestPath), all[i].line);
    lines.push_back(line + fmt::format(" ({})", printable(all[i].reason, kLongestName)));
  }
  return lines;
}

std::string to_sarif(const std::vector<FindingsOfRun>& runs) {
  std::vector<std::string> rules;
  OrderedJson results = OrderedJson::array();
  for (const FindingsOfRun& run : runs)
    for (const Finding& finding : run.findings) {
      const auto known = std::find(rules.begin(), rules.end(), finding.rule);
      const auto index = static_cast<size_t>(known - rules.begin());
      if (known == rules.end()) rules.push_back(finding.rule);
      results.push_back(result_of(finding, run.name, index));
    }
  OrderedJson descriptions = OrderedJson::array();
  for (const std::string& rule : rules) descriptions.push_back({{"id", rule}});
  const OrderedJson sarif{
      {"$schema", kSchema},
      {"version", "2.1.0"},
      {"runs",
       OrderedJson::array({{{"tool", {{"driver", {{"name", "ptxsim"}, {"rules", descriptions}}}}},
                            {"results", results}}})}};
  return sarif.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

// A suite for each run: a test that it ends, and one for each finding; warnings and advisories
// pass.
std::string to_junit(const std::vector<FindingsOfRun>& runs) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    const FindingsOfRun& run = runs[i];
    const auto failures = std::count_if(
        run.findings.begin(), run.findings.end(),
        [](const Finding& finding) { return !finding.suppressed && finding.severity == "error"; });
    xml += fmt::format(
        "  <testsuite id=\"{}\" package=\"ptxsim\" name=\"{}\" timestamp=\"1970-01-01T00:00:00\" "
        "hostname=\"localhost\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"0\">\n"
        "    <properties/>\n    <testcase classname=\"{}\" name=\"{}: ends\" time=\"0\"/>\n",
        i, escaped(run.name), run.findings.size() + 1, failures, escaped(run.kernel),
        escaped(run.name));
    for (const Finding& finding : run.findings) xml += test_of(run, finding);
    xml += "    <system-out/>\n    <system-err/>\n  </testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

std::optional<Error> write_findings(const FindingsArgs& args,
                                    const std::vector<FindingsOfRun>& runs) {
  const auto write = [](const char* option, const std::string& path,
                        const std::string& text) -> std::optional<Error> {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (file.flush()) return std::nullopt;
    return Error{ErrorKind::kInput, fmt::format("{}: cannot write '{}'", option, path), {}};
  };
  std::optional<Error> failed;
  if (!args.sarif_file.empty()) failed = write("--sarif", args.sarif_file, to_sarif(runs));
  if (!failed && !args.junit_file.empty())
    failed = write("--junit", args.junit_file, to_junit(runs));
  return failed;
}

}  // namespace ptxsim::cli
