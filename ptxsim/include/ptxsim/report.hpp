// What was found to be wrong or doubtful while a kernel ran. Equal findings (rule and the two
// statements) are counted, not repeated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim {

enum class Severity : uint8_t { kError, kWarning, kAdvisory };
const char* name_of(Severity severity);  // "error"

struct Report {
  int rule = 0;  // 1..23: R1..R23 of docs/rules.md
  Severity severity = Severity::kError;
  std::string message;  // what happened, in one line
  Place place;          // of the access at which it was noticed
  std::string actor;    // "CTA 0 (rank 0), warp 2, lane 5"
  std::string other;    // the earlier access: statement, place, actor; empty when there is none
  std::string missing;  // which ordering is missing
  std::string fix;      // how to mend it
  uint64_t count = 1;
  int statement = -1;        // of the program: the access at which it was noticed
  int other_statement = -1;  // the earlier one
  std::string kernel = {};   // the entry, when the run has ended
};
std::string to_string(const Report& report);  // several lines, as a compiler writes them

struct Reports {
  std::vector<Report> list;
  // What the run was told to leave out, each with the index of the entry that says so
  // (suppressions.hpp).
  std::vector<std::pair<Report, size_t>> suppressed;
  bool strict = false;      // warnings and advisories count as errors
  void add(Report report);  // counts an equal one up; the more severe one stays
  // The equal one, counted up, when there is one as severe as this: the report then need not be
  // written.
  bool count_up(int rule, Severity severity, int statement, int other_statement);
  uint64_t count(Severity severity) const;  // distinct ones
};

}  // namespace ptxsim
