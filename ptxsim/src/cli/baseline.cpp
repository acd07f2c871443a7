#include "cli/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace ptxsim::cli {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr char kReason[] = "known when the baseline was written";

// The end of the path that other machines have as well: below the working directory, or the name.
std::string portable(const std::string& name) {
  fs::path path = fs::path(name).lexically_normal();
  if (path.is_absolute()) {
    std::error_code none;
    path = path.lexically_relative(fs::current_path(none));
    if (path.empty() || *path.begin() == "..") return fs::path(name).filename().string();
  }
  fs::path end;
  for (const fs::path& part : path)
    if (part != "..") end /= part;
  return end.string();
}

// Empty where the finding names nothing that a suppression could.
OrderedJson entry_of(const Finding& finding) {
  OrderedJson entry{{"rule", finding.rule}};
  if (!finding.entry.empty()) entry["kernel"] = kernel_as_cpp(finding.entry);
  const Place& place = finding.place;
  if (!place.source_file.empty() && place.source_line > 0)
    entry["source"] = fmt::format("{}:{}", portable(place.source_file), place.source_line);
  else if (!place.ptx_name.empty() && place.ptx_line > 0)
    entry["source"] = fmt::format("{}:{}", portable(place.ptx_name), place.ptx_line);
  if (entry.size() == 1) return {};
  entry["reason"] = kReason;
  return entry;
}

}  // namespace

std::string to_baseline(const std::vector<FindingsOfRun>& runs, bool strict) {
  OrderedJson entries = OrderedJson::array();
  for (const FindingsOfRun& run : runs)
    for (const Finding& finding : run.findings) {
      const bool fails = finding.severity == "error" || strict;
      if (!fails || finding.suppressed || !finding.rule.starts_with('R')) continue;
      const OrderedJson entry = entry_of(finding);
      if (!entry.empty() && std::find(entries.begin(), entries.end(), entry) == entries.end())
        entries.push_back(entry);
    }
  return entries.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::optional<Error> write_baseline(const FindingsArgs& args,
                                    const std::vector<FindingsOfRun>& runs, bool strict) {
  if (args.new_baseline_file.empty()) return std::nullopt;
  std::ofstream file(args.new_baseline_file, std::ios::binary);
  file << to_baseline(runs, strict);
  if (file.flush()) return std::nullopt;
  return Error{ErrorKind::kInput,
               fmt::format("--write-baseline: cannot write '{}'", args.new_baseline_file),
               {}};
}

}  // namespace ptxsim::cli
