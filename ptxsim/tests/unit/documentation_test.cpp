// docs/instructions.md against the tree: its tables have a row for everything that is decoded, name
// cases that exist and say truly which of them run on an H200. The example of docs/guide.md is a
// file that is compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "insn/registry.hpp"
#include "ptxsim/case/case.hpp"

int twice(uint32_t (&values)[8]);  // documentation_example.cpp

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const fs::path kFolder = PTXSIM_TEST_FOLDER;
const fs::path kDocuments = kFolder / "../docs";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Strings split(const std::string& text, char separator) {
  Strings parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Strings between_backticks(const std::string& cell) {
  Strings names;
  const Strings parts = split(cell, '`');
  for (size_t i = 1; i < parts.size(); i += 2) names.push_back(parts[i]);
  return names;
}

struct CaseFile {
  std::string name;
  bool compared;  // as ptxsim/tests/silicon/main.cpp decides on a GPU of compute capability 9.0
  std::vector<Strings> statements;  // root and modifiers of each
};

bool runs_on_h200(const ptxsim::Module& module, const std::string& text) {
  const bool specific = module.target.back() == 'a' || module.target.back() == 'f';
  const int arch = std::stoi(module.target.substr(3));
  const auto description = ptxsim::parse_case(ptxsim::case_text(text), (kFolder / "insn").string());
  EXPECT_TRUE(description.ok()) << module.name;
  return (specific ? arch == 90 : arch <= 90) && !description.value().expect_error &&
         !description.value().expect_reports;
}

const std::vector<CaseFile>& case_files() {
  static const std::vector<CaseFile> all = [] {
    std::vector<CaseFile> files;
    for (const auto& entry : fs::directory_iterator(kFolder / "insn")) {
      if (entry.path().extension() != ".ptx") continue;
      const std::string text = read(entry.path());
      auto module = ptxsim::load(text, entry.path().filename().string());
      EXPECT_TRUE(module.ok()) << entry.path();
      if (!module.ok()) continue;
      CaseFile file{entry.path().stem().string(), runs_on_h200(**module, text), {}};
      for (const ptxsim::Entry& kernel : (*module)->entries)
        for (const ptxsim::Statement& statement : kernel.statements) {
          Strings words{statement.root};
          words.insert(words.end(), statement.modifiers.begin(), statement.modifiers.end());
          file.statements.push_back(std::move(words));
        }
      files.push_back(std::move(file));
    }
    return files;
  }();
  return all;
}

struct Row {
  Strings name;  // root and modifiers: "tcgen05", "ld"
  Strings cases;
  bool compared;
  std::string text;
};

// Rows begin with "| `"; columns: instruction, forms, known-good, cases, H200, not modelled.
const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> list;
    bool inside = false;
    for (const std::string& line : split(read(kDocuments / "instructions.md"), '\n')) {
      if (line.starts_with("## ")) inside = line == "## Instructions";
      if (!inside || !line.starts_with("| `")) continue;
      const Strings cells = split(line, '|');
      EXPECT_EQ(cells.size(), 7u) << line;
      const Strings names = between_backticks(cells.at(1));
      EXPECT_EQ(names.size(), 1u) << line;
      list.push_back(
          {split(names.at(0), '.'), between_backticks(cells.at(4)), cells.at(5) == " yes ", line});
    }
    return list;
  }();
  return all;
}

// How well a row fits a statement: how many of its modifiers are named, then how early they stand.
// Nothing: not at all.
std::optional<std::pair<size_t, size_t>> fit(const Row& row, const Strings& statement) {
  if (row.name[0] != statement[0]) return std::nullopt;
  std::pair<size_t, size_t> result{row.name.size(), 1'000};
  for (size_t i = 1; i < row.name.size(); ++i) {
    const auto found = std::find(statement.begin() + 1, statement.end(), row.name[i]);
    if (found == statement.end()) return std::nullopt;
    result.second -= static_cast<size_t>(found - statement.begin());
  }
  return result;
}

// The row that a statement belongs to; nullptr: none.
const Row* row_of(const Strings& statement) {
  const Row* best = nullptr;
  for (const Row& row : rows())
    if (const auto here = fit(row, statement); here && (!best || here > fit(*best, statement)))
      best = &row;
  return best;
}

bool fits(const std::string& pattern, const std::string& name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

TEST(Documentation, EveryDecodedInstructionHasARow) {
  std::set<std::string> known;
  for (const Row& row : rows()) known.insert(row.name[0]);
  std::set<std::string> decoded;
  for (const std::string_view root : ptxsim::decoded_roots()) decoded.emplace(root);
  EXPECT_EQ(known, decoded);
}

TEST(Documentation, EveryStatementOfTheCasesHasARow) {
  for (const CaseFile& file : case_files())
    for (const Strings& statement : file.statements) {
      EXPECT_NE(row_of(statement), nullptr)
          << file.name << ": " << testing::PrintToString(statement);
    }
}

TEST(Documentation, CasesOfARowExistAndHoldTheInstruction) {
  for (const Row& row : rows()) {
    bool compared = false;
    for (const std::string& pattern : row.cases) {
      bool holds = false;
      for (const CaseFile& file : case_files()) {
        if (!fits(pattern, file.name)) continue;
        const bool here = std::any_of(file.statements.begin(), file.statements.end(),
                                      [&](const Strings& s) { return row_of(s) == &row; });
        holds |= here;
        compared |= here && file.compared;
      }
      EXPECT_TRUE(holds) << "'" << pattern << "' is no case with this instruction: " << row.text;
    }
    EXPECT_EQ(row.compared, compared) << row.text;
  }
}

TEST(Documentation, EveryCaseIsNamed) {
  for (const CaseFile& file : case_files()) {
    const bool named = std::any_of(rows().begin(), rows().end(), [&](const Row& row) {
      return std::any_of(row.cases.begin(), row.cases.end(),
                         [&](const std::string& pattern) { return fits(pattern, file.name); });
    });
    EXPECT_TRUE(named) << file.name;
  }
}

TEST(Documentation, ExampleIsWhatIsCompiled) {
  const std::string source = read(kFolder / "unit/documentation_example.cpp");
  EXPECT_NE(read(kDocuments / "guide.md")
                .find("```cpp\n" + source.substr(source.find("#include")) + "```"),
            std::string::npos);
  uint32_t values[8] = {1, 2, 3, 4, 5, 6, 7, 0x80000001};
  EXPECT_EQ(twice(values), 0);
  const uint32_t expected[8] = {2, 4, 6, 8, 10, 12, 14, 2};
  EXPECT_TRUE(std::equal(values, values + 8, expected));
}

}  // namespace
