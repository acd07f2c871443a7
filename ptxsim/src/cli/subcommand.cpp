#include "cli/subcommand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "printable.hpp"

namespace ptxsim::cli {
namespace {

// Letters that are to be put in, left out, replaced, or exchanged with the next.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    const std::vector<size_t> before = std::exchange(last, row);  // of two letters less
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
  constexpr size_t kLongestWord = 32;  // no name is as long
  std::string nearest;
  size_t least = std::min<size_t>(2, (word.size() + 2) / 3) + 1;
  if (word.size() > kLongestWord) return nearest;
  for (const std::string& name : names) {
    const size_t d = distance(word, name);
    if (d >= least) continue;
    least = d;
    nearest = name;
  }
  return nearest;
}

std::optional<Error> check_subcommand(CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (argc < 2)
    return Error{ErrorKind::kInput,
                 fmt::format("a subcommand is required: one of {}; see --help", list),
                 {}};
  const std::string word = argv[1];
  if (word.starts_with('-') || std::find(names.begin(), names.end(), word) != names.end())
    return std::nullopt;
  const std::string nearest = nearest_name(word, names);
  return Error{
      ErrorKind::kInput,
      fmt::format("unknown subcommand '{}'{}; must be one of {}; see --help",
                  printable(word, kLongestName),
                  nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest), list),
      {}};
}

}  // namespace ptxsim::cli
