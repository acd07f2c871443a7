// What `verify` found, as a table, as JSON, and as a line that repeats a failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/options.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/terminal.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::cli {

struct VerifyResult {
  StrategyId strategy;
  Status error;                              // of planning or running; kUnsupported = skipped
  std::string config;                        // empty: there was no plan
  std::optional<verify::CheckReport> check;  // against the oracle
  std::optional<verify::OutputDifference>
      fp8;  // not exact: its distance from a checked result instead

  bool skipped() const { return error.code() == StatusCode::kUnsupported; }
  bool failed() const;
};

struct VerifyCase {
  Problem problem;
  uint64_t seed = 0;                                      // of random operands
  verify::ExpertRows rows = verify::ExpertRows::kRagged;  // of groups
  std::vector<VerifyResult> results;
};

std::string verify_table(const std::vector<VerifyCase>& cases,
                         const std::vector<StrategyId>& strategies, const Style& style);
// "40 x 64 x 128 x 1"; with groups, how rows fall to experts, too.
std::string name_of(const VerifyCase& item);
Json verify_json(const std::vector<VerifyCase>& cases);

// A command that computes and compares the same again.
std::string reproduction(const VerifyCommand& command, const VerifyCase& item, StrategyId strategy);

}  // namespace dualgemm::cli
