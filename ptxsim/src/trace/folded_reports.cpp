#include "trace/folded_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ptxsim {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// "[%r12+64], %f3" and "[%r7], %f18" become equal; names such as "tile2" keep their digits.
std::string without_numbers(std::string_view text) {
  std::string shape;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool is_signed = (c == '+' || c == '-') && i + 1 < text.size() && is_digit(text[i + 1]);
    if (is_digit(c) || is_signed) {
      const bool is_offset = is_signed && i > 0 && is_in_name(text[i - 1]);
      for (++i; i < text.size() && (is_in_name(text[i]) || text[i] == '.');) ++i;
      if (!is_offset) shape += '#';
    } else if (c == '%') {
      for (shape += text[i++]; i < text.size() && is_in_name(text[i]) && !is_digit(text[i]);)
        shape += text[i++];
    } else if (is_in_name(c)) {
      while (i < text.size() && is_in_name(text[i])) shape += text[i++];
    } else {
      shape += text[i++];
    }
  }
  return shape;
}

std::string opcode_of(const Statement& statement) {
  std::string text = statement.root;
  for (const std::string& modifier : statement.modifiers) text += "." + modifier;
  return text;
}

void collect_labels(const Operand& operand, std::vector<uint32_t>& labels) {
  if (operand.kind == Operand::Kind::kLabel) labels.push_back(operand.label);
  for (const Operand& part : operand.parts) collect_labels(part, labels);
}

constexpr size_t kMostGroups = 64;  // of equal shapes: so many are looked through, from the last

struct Branch {
  uint32_t from, to;
};

class Folding {
 public:
  Folding(const Program& program, const Reports& reports) : entry_(*program.entry) {
    module_ = program.module.get();
    for (uint32_t i = 0; i < entry_.statements.size(); ++i) {
      std::vector<uint32_t> labels;
      for (const Operand& operand : entry_.statements[i].operands) collect_labels(operand, labels);
      for (uint32_t to : labels) branches_.push_back({i, to});
      at_line_.emplace(entry_.statements[i].line, static_cast<int>(i));
    }
    for (size_t i = 0; i < reports.list.size(); ++i) add(reports.list[i], i);
    std::sort(folded_.begin(), folded_.end(), [](const FoldedReport& a, const FoldedReport& b) {
      return a.members[0] < b.members[0];
    });
  }
  std::vector<FoldedReport> take() { return std::move(folded_); }

 private:
  struct Key {
    int rule;
    Severity severity;
    std::string statement, other;
    bool operator<(const Key& other_key) const {
      return std::tie(rule, severity, statement, other) <
             std::tie(other_key.rule, other_key.severity, other_key.statement, other_key.other);
    }
  };
  struct Group {
    size_t index;          // into folded_
    int statement, other;  // of the first member
  };

  int statement_of(const Report& report) const {
    if (report.statement >= 0) return report.statement;
    if (report.place.ptx_name != module_->name) return -1;  // of another launch of the case
    const auto found = at_line_.find(report.place.ptx_line);
    return found == at_line_.end() ? -1 : found->second;
  }

  bool has_source(int statement) const {
    return statement >= 0 && entry_.statements[static_cast<size_t>(statement)].loc >= 0;
  }

  // Equal for statements that may be copies of each other.
  std::string shape_of(int index) const {
    if (index < 0) return "";
    const Statement& statement = entry_.statements[static_cast<size_t>(index)];
    if (statement.loc < 0) {
      const std::string_view text = statement.text;
      const size_t operands = text.find(' ', text.find(statement.root));
      return opcode_of(statement) + without_numbers(text.substr(std::min(operands, text.size())));
    }
    std::string text = opcode_of(statement);
    for (int loc = statement.loc; loc >= 0; loc = module_->locations[loc].inlined_at) {
      const Location& location = module_->locations[static_cast<size_t>(loc)];
      text += fmt::format(" {}:{}", location.file, location.line);
    }
    return text;
  }

  // Control comes from `first` to `last` through what lies between, and in no other way.
  bool is_straight(int first, int last) const {
    if (first > last) std::swap(first, last);
    const auto begin = static_cast<uint32_t>(first), end = static_cast<uint32_t>(last);
    return std::none_of(branches_.begin(), branches_.end(), [&](const Branch& branch) {
      const bool from_inside = branch.from >= begin && branch.from < end;
      const bool to_inside = branch.to > begin && branch.to <= end;
      const bool stays = from_inside && branch.to >= begin && branch.to <= end;
      return (from_inside && !stays) || (to_inside && !from_inside);
    });
  }

  bool is_copy(int statement, int known) const {
    if (statement < 0 || has_source(statement)) return true;  // the shapes say it all
    return is_straight(statement, known);
  }

  void add(const Report& report, size_t index) {
    const int statement = statement_of(report);
    Key key{report.rule, report.severity, shape_of(statement), shape_of(report.other_statement)};
    if (statement < 0) key.statement = report.message;
    if (report.other_statement < 0) key.other = without_numbers(report.other);
    std::vector<Group>& groups = groups_[key];
    const size_t first = groups.size() - std::min(groups.size(), kMostGroups);
    for (size_t i = first; i < groups.size(); ++i) {
      const Group& group = groups[i];
      if (!is_copy(statement, group.statement) || !is_copy(report.other_statement, group.other))
        continue;
      folded_[group.index].members.push_back(index);
      folded_[group.index].count += report.count;
      return;
    }
    groups.push_back({folded_.size(), statement, report.other_statement});
    folded_.push_back({{index}, report.count});
  }

  const Entry& entry_;
  const Module* module_;
  std::vector<Branch> branches_;
  std::map<int, int> at_line_;  // PTX line -> the first statement of it
  std::map<Key, std::vector<Group>> groups_;
  std::vector<FoldedReport> folded_;
};

}  // namespace

std::vector<FoldedReport> fold(const Program& program, const Reports& reports) {
  return Folding(program, reports).take();
}

uint64_t count(const std::vector<FoldedReport>& folded, const Reports& reports, Severity severity) {
  return static_cast<uint64_t>(std::count_if(
      folded.begin(), folded.end(),
      [&](const FoldedReport& f) { return reports.list[f.members[0]].severity == severity; }));
}

std::string to_string(const FoldedReport& folded, const Reports& reports) {
  Report report = reports.list[folded.members[0]];
  report.count = folded.count;
  std::string text = to_string(report);
  if (folded.members.size() == 1) return text;
  std::set<int> lines;
  for (size_t i : folded.members) lines.insert(reports.list[i].place.ptx_line);
  const std::string where = lines.size() == 1 ? fmt::format("line {}", *lines.begin())
                                              : fmt::format("{} lines from {} to {}", lines.size(),
                                                            *lines.begin(), *lines.rbegin());
  return text + fmt::format(
                    "  as:      {} findings at {} of the PTX, copies of one; --verbose "
                    "lists them\n",
                    folded.members.size(), where);
}

}  // namespace ptxsim
