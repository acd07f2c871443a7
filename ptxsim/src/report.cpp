#include "ptxsim/report.hpp"

#include <algorithm>
#include <utility>

#include "printable.hpp"

namespace ptxsim {

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kAdvisory:
      return "advisory";
  }
  return "";
}

std::string to_string(const Report& report) {
  std::string text = to_string(report.place) + ": " + name_of(report.severity) + ": " +
                     printable(report.message, kLongestLine) + " [R" + std::to_string(report.rule) +
                     "]\n";
  auto line = [&text](const char* label, const std::string& value) {
    if (!value.empty()) text += std::string("  ") + label + printable(value, kLongestLine) + "\n";
  };
  line("by:      ", report.actor);
  line("earlier: ", report.other);
  line("missing: ", report.missing);
  line("fix:     ", report.fix);
  if (report.count > 1) line("seen:    ", std::to_string(report.count) + " times");
  return text;
}

bool Reports::count_up(int rule, Severity severity, int statement, int other_statement) {
  for (Report& known : list) {
    if (known.rule == rule && known.severity <= severity && known.statement == statement &&
        known.other_statement == other_statement) {
      ++known.count;
      return true;
    }
  }
  return false;
}

void Reports::add(Report report) {
  if (strict) report.severity = Severity::kError;
  for (Report& known : list) {
    const bool equal = known.rule == report.rule && known.statement == report.statement &&
                       known.other_statement == report.other_statement &&
                       (report.statement >= 0 || known.message == report.message);
    if (equal) {
      const uint64_t count = known.count + report.count;
      if (report.severity < known.severity) known = std::move(report);
      known.count = count;
      return;
    }
  }
  list.push_back(std::move(report));
}

uint64_t Reports::count(Severity severity) const {
  return static_cast<uint64_t>(std::ranges::count(list, severity, &Report::severity));
}

}  // namespace ptxsim
