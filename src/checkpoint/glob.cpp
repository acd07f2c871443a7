#include "checkpoint/glob.hpp"

#include <cstddef>

namespace dualgemm::checkpoint {

bool matches_glob(std::string_view pattern, std::string_view text) {
  // Only the last star needs to be tried again: an earlier one that takes more gains nothing.
  size_t p = 0, t = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace dualgemm::checkpoint
