// What the measured times mean: tables for people, JSON for machines, and the bars with their
// verdicts.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cpu/bar.hpp"
#include "bench/cpu/suite.hpp"

namespace dualgemm::bench {

inline constexpr const char* kNone = "-";  // the cell of what was not measured

struct Table {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;
};

class Report {
 public:
  Report(Suite& suite, const measure::RoundReport& measured);

  std::string markdown() const;
  nlohmann::ordered_json json() const;
  const std::vector<Bar>& bars() const { return bars_; }

 private:
  const measure::CaseTimes* find(const std::string& name) const;  // null: skipped or no sample
  double seconds(const std::string& name) const;                  // 0 when not measured
  double rate(const std::string& name) const;  // 10^9 a second; 0 when not measured
  std::string time_cell(const std::string& name) const;
  // x's time over y's, round by round; no value: they share no round.
  measure::Estimate time_ratio(const std::string& x, const std::string& y) const;
  // The same of their rates.
  measure::Estimate rate_ratio(const std::string& x, const std::string& y) const;
  measure::Estimate rate_estimate(const std::string& name) const;
  // Returns the verdict's cell.
  std::string add_bar(const Bar& bar);

  void read_peaks();
  void add_environment();
  void add_peak_table();
  void add_speed_table();
  void add_isa_table();
  void add_type_table();
  void add_strategy_table(int64_t m);
  void add_rows_table(const RowsSeries& series);
  void add_quantizer_table();
  void add_skipped_table();

  Suite& suite_;
  const measure::RoundReport& measured_;
  std::map<std::string, const measure::CaseTimes*> results_;
  std::map<std::string, double> giga_;
  std::map<std::string, GemmCase*> gemms_;
  measure::Peaks peaks_;
  nlohmann::ordered_json environment_;
  std::vector<Table> tables_;
  std::vector<Bar> bars_;
};

}  // namespace dualgemm::bench
