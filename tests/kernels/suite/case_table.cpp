#include "kernels/suite/case_table.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "kernels/suite/case_expression.hpp"

namespace dualgemm::test {
namespace {

std::string line_name(int line) { return "line " + std::to_string(line); }

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Expected<std::pair<std::string, std::string>> read_key(const std::string& text, int line) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    return Status::invalid(line_name(line), text, "must be key=value");
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

// "[suite.name] check limit=1 ..."
Expected<CaseSection> read_header(std::istringstream& words, int line) {
  CaseSection section;
  section.line = line;
  std::string title;
  words >> title >> section.check;
  const size_t dot = title.find('.');
  if (title.back() != ']' || dot == std::string::npos || section.check.empty())
    return Status::invalid(line_name(line), title, "must be [suite.name] and a check");
  section.suite = title.substr(1, dot - 1);
  section.name = title.substr(dot + 1, title.size() - dot - 2);
  for (std::string word; words >> word;) {
    const auto limit = read_key(word, line);
    if (!limit.ok()) return limit.status();
    const auto value = evaluate(limit->second, [](const std::string&) { return std::nullopt; });
    if (!value.ok()) return value.status();
    section.limits[limit->first] = *value;
  }
  return section;
}

// One line as it is expanded: a recursion over its keys, each with a count of how often it was
// reached.
class Expansion {
 public:
  Expansion(const CaseLine& line, const CaseVocabulary& vocabulary)
      : line_(line), vocabulary_(vocabulary), reached_(line.keys.size()) {}

  Expected<std::vector<CaseValues>> all() {
    DUALGEMM_TRY(add_from(0, {}));
    return std::move(cases_);
  }

 private:
  Status add_from(size_t index, const CaseValues& values) {
    if (index == line_.keys.size()) {
      cases_.push_back(values);
      return {};
    }
    const auto& [key, text] = line_.keys[index];
    if (!vocabulary_.has(key)) return Status::invalid(line_name(line_.line), key, "is no key");
    const auto list = values_of(key, text, values, reached_[index]++);
    if (!list.ok()) return list.status();
    for (const int64_t value : *list) {
      CaseValues more = values;
      more[key] = value;
      for (const auto& [name, number] : vocabulary_.implied(key, value)) more[name] = number;
      DUALGEMM_TRY(add_from(index + 1, more));
    }
    return {};
  }

  Expected<std::vector<int64_t>> values_of(const std::string& key, const std::string& text,
                                           const CaseValues& values, int64_t number) const {
    const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
      if (const auto word = vocabulary_.word(key, name)) return word;
      if (name == "number") return number;
      const auto found = values.find(name);
      return found == values.end() ? std::nullopt : std::optional(found->second);
    };
    const std::vector<std::string> turns = split_at(text, '|');
    const bool takes_turns = turns.size() > 1;
    std::vector<int64_t> list;
    for (const std::string& item :
         split_at(turns[static_cast<size_t>(number) % turns.size()], ',')) {
      if (item == "every" && vocabulary_.count(key) > 0) {
        for (int64_t i = 0; i < vocabulary_.count(key); ++i) list.push_back(i);
        continue;
      }
      std::vector<int64_t> range;  // first, last, step; or one value
      for (const std::string& part : split_at(item, ':')) {
        const auto value = evaluate(part, lookup);
        if (!value.ok())
          return Status::invalid(line_name(line_.line) + ", " + key, value.status().observed(),
                                 value.status().rule());
        range.push_back(*value);
      }
      if (range.size() == 1) {
        list.push_back(range[0]);
      } else if (range.size() == 3 && range[2] > 0 && range[0] <= range[1]) {
        for (int64_t value = range[0]; value <= range[1]; value += range[2]) list.push_back(value);
      } else {
        return Status::invalid(line_name(line_.line) + ", " + key, item,
                               "must be a value, or first:last:step that ascend");
      }
    }
    if (takes_turns && list.size() != 1)
      return Status::invalid(line_name(line_.line) + ", " + key, text,
                             "must have single values between the |");
    return list;
  }

  const CaseLine& line_;
  const CaseVocabulary& vocabulary_;
  std::vector<int64_t> reached_;
  std::vector<CaseValues> cases_;
};

}  // namespace

Expected<std::vector<CaseSection>> parse_case_table(const std::string& text) {
  std::vector<CaseSection> sections;
  std::set<std::string> names;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    if ((words >> std::ws).eof()) continue;
    if (words.peek() == '[') {
      auto section = read_header(words, number);
      if (!section.ok()) return section.status();
      if (!names.insert(section->suite + "." + section->name).second)
        return Status::invalid(line_name(number), section->name, "stands there twice");
      sections.push_back(std::move(*section));
      continue;
    }
    if (sections.empty())
      return Status::invalid(line_name(number), line, "must stand below a [suite.name]");
    CaseLine cases{.line = number, .keys = {}};
    std::set<std::string> keys;
    for (std::string word; words >> word;) {
      auto key = read_key(word, number);
      if (!key.ok()) return key.status();
      if (!keys.insert(key->first).second)
        return Status::invalid(line_name(number), key->first, "stands there twice");
      cases.keys.push_back(std::move(*key));
    }
    sections.back().lines.push_back(std::move(cases));
  }
  for (const CaseSection& section : sections) {
    if (section.lines.empty())
      return Status::invalid(line_name(section.line), section.name, "must have a case");
  }
  return sections;
}

Expected<std::vector<CaseValues>> expand(const CaseLine& line, const CaseVocabulary& vocabulary) {
  return Expansion(line, vocabulary).all();
}

}  // namespace dualgemm::test
