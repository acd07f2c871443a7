// Test cases as text. A section is a test, "[suite.name] check limit=1"; each line below it stands
// for as many cases as its lists have combinations:
//
//   [Sm100aShapes.Example] within_bound
//   m=1,33 n=tile_n+1 k=16:48:16 a=f16|bf16
//
// Keys are read from left to right. "1,33" is one case each, "16:48:16" first, last and step; each
// combination of the keys to the left takes the next value of "f16|bf16". A value may be an
// expression of + - * / % ( ), keys to the left, words of the key, and `number`: how many
// combinations of the keys to the left came before this one. "every" is all that the key has. "#"
// begins a comment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::test {

struct CaseLine {
  int line = 0;  // in the file
  std::vector<std::pair<std::string, std::string>> keys;
};

struct CaseSection {
  std::string suite, name, check;
  std::map<std::string, int64_t> limits;
  int line = 0;
  std::vector<CaseLine> lines;
};

Expected<std::vector<CaseSection>> parse_case_table(const std::string& text);

using CaseValues = std::map<std::string, int64_t>;

// What the keys may be.
struct CaseVocabulary {
  std::function<bool(const std::string& key)> has;
  std::function<std::optional<int64_t>(const std::string& key, const std::string& word)> word;
  // How many there are of what "every" means, counted from 0; 0: the key does not know the word.
  std::function<int64_t(const std::string& key)> count;
  // What a value of the key sets besides.
  std::function<CaseValues(const std::string& key, int64_t value)> implied;
};

// All cases of a line, the leftmost key varying the slowest.
Expected<std::vector<CaseValues>> expand(const CaseLine& line, const CaseVocabulary& vocabulary);

}  // namespace dualgemm::test
