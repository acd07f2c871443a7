#include "tools/cli/parse/suggest.hpp"

#include <algorithm>
#include <cctype>

namespace dualgemm::cli {
namespace {

constexpr size_t kLongest = 64;  // no name of ours is longer; bounds the work on hostile input

std::string plain(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool begins(std::string_view text, std::string_view with) {
  constexpr size_t kTelling = 3;  // letters
  return with.size() >= kTelling && text.substr(0, with.size()) == with;
}

// What others call a thing: no misspelling, but what was meant.
constexpr struct {
  std::string_view said, ours;
} kOtherWords[] = {{"gpu", "cuda"},    {"nvfp4", "e2m1"},    {"fp4", "e2m1"},
                   {"half", "f16"},    {"float32", "f32"},   {"swish", "silu"},
                   {"swiglu", "silu"}, {"geglu", "gelu_erf"}};

std::string by_another_word(std::string_view text, const std::vector<std::string>& names) {
  const std::string said = plain(text);
  for (const auto& word : kOtherWords) {
    if (said == word.said && std::find(names.begin(), names.end(), word.ours) != names.end())
      return std::string(word.ours);
  }
  return {};
}

// To the name, or to what it begins with up to a '_'.
int least_distance(std::string_view text, const std::string& name) {
  int least = edit_distance(text, name);
  for (size_t end = name.find('_'); end != std::string::npos; end = name.find('_', end + 1)) {
    // One edit more than it takes: whole names come first.
    least = std::min(least, 1 + edit_distance(text, std::string_view(name).substr(0, end)));
  }
  return least;
}

}  // namespace

int edit_distance(std::string_view first, std::string_view second) {
  const std::string x = plain(first), y = plain(second);
  std::vector<int> before(y.size() + 1), last(y.size() + 1), current(y.size() + 1);
  for (size_t j = 0; j <= y.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= x.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= y.size(); ++j) {
      const int replaced = last[j - 1] + (x[i - 1] == y[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(current);
  }
  return last[y.size()];
}

std::string nearest(std::string_view text, const std::vector<std::string>& names) {
  if (text.empty() || text.size() > kLongest) return {};
  if (std::string ours = by_another_word(text, names); !ours.empty()) return ours;
  std::string best;
  int best_distance = 0;
  for (const std::string& name : names) {
    // What is only left off at the end is no mistake.
    const bool abbreviated = begins(plain(name), plain(text));
    const int distance = abbreviated ? 0 : least_distance(text, name);
    const int allowed = std::max<int>(1, static_cast<int>(std::max(text.size(), name.size()) / 3));
    const bool near =
        distance <= allowed || begins(plain(name), plain(text)) || begins(plain(text), plain(name));
    if (!near || (!best.empty() && distance >= best_distance)) continue;
    // One letter for another is no misspelling of it.
    if (std::max(text.size(), name.size()) == 1) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  const bool is_one = std::find(names.begin(), names.end(), text) != names.end();
  const std::string name = is_one ? std::string() : nearest(text, names);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace dualgemm::cli
