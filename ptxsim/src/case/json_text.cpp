#include "case/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "printable.hpp"

namespace ptxsim {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string_view text, size_t offset, const std::string& reason) {
  throw Fault(Error{ErrorKind::kInput, reason, place_in(text, offset)});
}

// The JSON library's message without its own name and place: "[json.exception...] parse error at
// line 1, column 2: what".
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  if (text.starts_with('[')) text.erase(0, std::min(text.find("] ") + 2, text.size()));
  if (text.starts_with("parse error at "))
    text.erase(0, std::min(text.find(": ") + 2, text.size()));
  return printable(text, kLongestLine);
}

// Behind the string that begins at `at`.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

// Refuses too many levels in any text, which the parser has not seen yet.
void check_depth(std::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      i = end_of_string(text, i) - 1;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostJsonDepth)
        refuse(text, i, fmt::format("more than {} levels of lists and objects", kMostJsonDepth));
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
}

// Refuses JSON text in which an object has a key twice.
void check_keys(std::string_view text) {
  struct Level {
    bool has_keys;
    std::set<std::string> keys;
  };
  std::vector<Level> levels;
  bool comes_key = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') levels.push_back({c == '{', {}});
    if (c == '}' || c == ']') levels.pop_back();
    if (c == '{' || c == ',') comes_key = levels.back().has_keys;
    if (c != '"') continue;
    const size_t end = end_of_string(text, i);
    if (comes_key) {
      const auto key = Json::parse(text.substr(i, end - i)).get<std::string>();
      if (!levels.back().keys.insert(key).second)
        refuse(text, i,
               fmt::format("the key '{}' is given twice; an object has each key once",
                           printable(key, kLongestName)));
      comes_key = false;
    }
    i = end - 1;
  }
}

}  // namespace

Place place_in(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {"", static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(before.size() - line_begin) + 1, "", 0};
}

Json read_json(std::string_view text) {
  check_depth(text);
  try {
    Json json = Json::parse(text);
    check_keys(text);
    return json;
  } catch (const Json::parse_error& error) {
    refuse(text, error.byte > 0 ? error.byte - 1 : 0, reason_of(error));
  } catch (const Json::exception& error) {
    refuse(text, 0, reason_of(error));
  }
}

}  // namespace ptxsim
