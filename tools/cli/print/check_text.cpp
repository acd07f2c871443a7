#include "tools/cli/print/check_text.hpp"

#include <fmt/format.h>

namespace dualgemm::cli {

std::string verdict(const verify::CheckReport& report, DataType d_type) {
  if (report.written_elsewhere > 0) {
    return fmt::format("WRONG: {} of {} elements, and {} written in rows that are no expert's",
                       report.failed, report.compared, report.written_elsewhere);
  }
  if (!report.passed())
    return fmt::format("WRONG: {} of {} elements", report.failed, report.compared);
  std::string text = fmt::format("ok, {} elements within the bound", report.compared);
  if (d_type == DataType::kF32)
    text += fmt::format(", the worst at {:.1f} % of it", 100.0 * report.worst_share);
  return text;
}

std::string failure_details(const verify::CheckReport& report) {
  if (report.failed == 0) return {};
  std::string text =
      fmt::format("  worst element: d[{}][{}][{}] (batch, row, column) in tile ({}, {})\n",
                  report.worst_batch, report.worst_row, report.worst_col,
                  report.worst_row / verify::kMapTile, report.worst_col / verify::kMapTile);
  text += fmt::format("  got {:.9g}, exact {:.9g}, accepted {:.9g} .. {:.9g}\n", report.actual,
                      report.expected, report.lowest, report.highest);
  text += "  tiles of 16x16: '.' right, 'X' wrong, ' ' not compared\n";
  std::string line = "    ";
  for (const char c : report.picture()) {
    line += c;
    if (c != '\n') continue;
    text += line;
    line = "    ";
  }
  return text;
}

Json to_json(const verify::CheckReport& report) {
  return {{"passed", report.passed()},
          {"compared", report.compared},
          {"failed", report.failed},
          {"written_elsewhere", report.written_elsewhere},
          {"worst_share_of_bound", number(report.worst_share)},
          {"worst",
           {{"batch", report.worst_batch},
            {"row", report.worst_row},
            {"col", report.worst_col},
            {"actual", number(report.actual)},
            {"expected", number(report.expected)},
            {"lowest", number(report.lowest)},
            {"highest", number(report.highest)}}}};
}

}  // namespace dualgemm::cli
