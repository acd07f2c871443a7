// Which statements of those that ptxas 13.0 assembles the interpreter knows: ptxsim/tests/forms.txt
// says it of each, and the table "Refused" of docs/instructions.md names the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "insn/registry.hpp"
#include "ptxsim/ptxsim.hpp"

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const fs::path kFolder = PTXSIM_TEST_FOLDER;

// "sm_100a statement;", with "no " before it when it is refused.
struct Form {
  bool is_known;
  std::string target, statement;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> list;
    std::ifstream file(kFolder / "forms.txt");
    EXPECT_TRUE(file);
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      const bool refused = line.starts_with("no ");
      if (refused) line.erase(0, 3);
      const size_t blank = line.find(' ');
      list.push_back({!refused, line.substr(0, blank), line.substr(blank + 1)});
    }
    return list;
  }();
  return all;
}

// The words of an instruction: "tcgen05", "mma", "sp", ... without a guard.
Strings words_of(const std::string& statement) {
  std::istringstream stream(statement.substr(0, statement.find_first_of(" ;")));
  Strings words;
  for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
  return words;
}

std::string error_of(const Form& form) {
  const std::string text = ".version 9.0\n.target " + form.target + R"(
.address_size 64
.const .align 16 .b8 cc[64];
.global .align 128 .b8 gg[1024];
.visible .entry k(.param .u64 a, .param .align 64 .b8 tm[128])
{
  .reg .pred %p<20>;
  .reg .b8 %c<8>;
  .reg .b16 %h<60>;
  .reg .b32 %r<400>;
  .reg .b64 %rd<40>;
  .reg .b128 %q<8>;
  .reg .f32 %f<40>;
  .reg .f64 %fd<40>;
  .shared .align 1024 .b8 sh[4096];
  .local .align 16 .b8 lo[256];
  )" + form.statement + "\n  ret;\n}\n";
  auto module = ptxsim::load(text, "form.ptx");
  if (!module.ok()) return to_string(module.error());
  const auto program = ptxsim::decode(*module, "k");
  return program.ok() ? "" : to_string(program.error());
}

// Names of the rows of the table "Refused".
const std::vector<Strings>& refused_rows() {
  static const std::vector<Strings> all = [] {
    std::vector<Strings> list;
    std::ifstream file(kFolder / "../docs/instructions.md");
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("#")) inside = line == "## Refused";
      if (!inside || !line.starts_with("| `")) continue;
      const std::string cell = line.substr(0, line.find('|', 1));
      for (size_t at = cell.find('`'); at != std::string::npos;) {
        const size_t end = cell.find('`', at + 1);
        list.push_back(words_of(cell.substr(at + 1, end - at - 1)));
        at = cell.find('`', end + 1);
      }
    }
    return list;
  }();
  return all;
}

bool is_named_by(const Strings& row, const Form& form) {
  const Strings words = words_of(form.statement);
  return row[0] == words[0] && std::all_of(row.begin(), row.end(), [&](const std::string& word) {
           return std::find(words.begin(), words.end(), word) != words.end();
         });
}

TEST(Coverage, FormsAreKnownOrRefusedAsListed) {
  for (const Form& form : forms()) {
    const std::string error = error_of(form);
    EXPECT_EQ(error.empty(), form.is_known) << form.target << " " << form.statement << "\n"
                                            << error;
  }
}

TEST(Coverage, EveryRefusedFormHasARow) {
  for (const Form& form : forms()) {
    const bool named = std::any_of(refused_rows().begin(), refused_rows().end(),
                                   [&](const Strings& row) { return is_named_by(row, form); });
    EXPECT_EQ(named, !form.is_known) << form.statement;
  }
}

TEST(Coverage, EveryRowNamesARefusedForm) {
  EXPECT_FALSE(refused_rows().empty());
  for (const Strings& row : refused_rows()) {
    const bool used = std::any_of(forms().begin(), forms().end(), [&](const Form& form) {
      return !form.is_known && is_named_by(row, form);
    });
    EXPECT_TRUE(used) << testing::PrintToString(row);
  }
}

TEST(Coverage, EveryDecodedRootHasAForm) {
  std::set<std::string> listed;
  for (const Form& form : forms()) listed.insert(words_of(form.statement)[0]);
  // call needs a function beside the kernel; a branch is followed by its label.
  for (const char* root : {"call", "bra", "brx"}) listed.insert(root);
  for (const std::string_view root : ptxsim::decoded_roots())
    EXPECT_TRUE(listed.contains(std::string(root))) << root;
}

}  // namespace
