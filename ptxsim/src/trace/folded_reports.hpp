// Findings that are one for a person: the copies of a statement that unrolling makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxsim/ir/program.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim {

struct FoldedReport {
  std::vector<size_t> members;  // indices into Reports::list, ascending; the first stands for all
  uint64_t count = 0;           // how often they were seen, together
};

// Reports are one when rule and severity are equal and both their statements, the reported one and
// the earlier one, are copies of the same. Statements are copies
//  - when both have a source line (.loc): opcode, source line and all lines it was inlined at are
//    equal;
//  - when neither has: their texts are equal but for numbers (registers, offsets; not those of the
//    opcode), and control reaches the later only through the earlier and what lies between: no
//    branch enters or leaves the statements between them but at their ends.
// Without a statement (statement < 0): that of the report's place.
// In the order of their first members; every report is in one of them.
std::vector<FoldedReport> fold(const Program& program, const Reports& reports);

uint64_t count(const std::vector<FoldedReport>& folded, const Reports& reports, Severity severity);

// As to_string(Report), with the number of statements that it stands for.
std::string to_string(const FoldedReport& folded, const Reports& reports);

}  // namespace ptxsim
