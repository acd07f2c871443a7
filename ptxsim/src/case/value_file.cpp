#include "case/value_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "case/case_parts.hpp"
#include "case/json_text.hpp"
#include "printable.hpp"

namespace ptxsim {
namespace {

constexpr std::string_view kRule =
    "an array begins with 'name: type count' or 'name: type count hex'";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty();) {
    const size_t end = std::min(text.find_first_of(" \t\r"), text.size());
    words.push_back(text.substr(0, end));
    text = trimmed(text.substr(end));
  }
  return words;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  ValueFile read() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      std::string_view line = text_.substr(begin, end - begin);
      line = trimmed(line.substr(0, line.find('#')));
      if (line.find(':') != line.npos)
        read_heading(line);
      else if (!line.empty())
        read_values(line);
      begin = end + 1;
    }
    end_array();
    return std::move(file_);
  }

 private:
  // `part`: of the text, where the mistake is.
  [[noreturn]] void fail(std::string_view part, const std::string& reason) const {
    Place place = place_in(text_, static_cast<size_t>(part.data() - text_.data()));
    place.ptx_name = path_;
    throw Fault(Error{ErrorKind::kInput, "values: " + printable(reason, kLongestLine), place});
  }

  void read_heading(std::string_view line) {
    end_array();
    const size_t colon = line.find(':');
    const std::string_view name = trimmed(line.substr(0, colon));
    const std::vector<std::string_view> words = words_of(line.substr(colon + 1));
    const bool has_name =
        !name.empty() && name.find_first_of(" \t\"") == name.npos && name == printable(name);
    const bool is_heading =
        has_name && (words.size() == 2 || (words.size() == 3 && words[2] == "hex"));
    if (!is_heading) fail(line, fmt::format("'{}'; {}", printable(line, kLongestName), kRule));
    if (file_.contains(name))
      fail(name, fmt::format("'{}' is there already; a name stands for one array", name));
    heading_ = line;
    format_.hex = words.size() == 3;
    NamedValues array;
    array.type_name = words[0];
    const auto type = element_type_named(words[0]);
    if (!type) fail(words[0], fmt::format("type '{}' is unknown; {}", words[0], kElementTypes));
    array.type = format_.type = *type;
    array.count = read_count(words[1]);
    format_.most = array.count;
    array_ = &file_.emplace(std::string(name), std::move(array)).first->second;
  }

  uint64_t read_count(std::string_view word) {
    uint64_t count = 0;
    const char* end = word.data() + word.size();
    const auto [last, error] = std::from_chars(word.data(), end, count);
    if (error != std::errc() || last != end || count > values_left_)
      fail(word,
           fmt::format("count '{}'; must be an integer, and at most {} for all arrays of a file",
                       word, kMostPackedValues));
    values_left_ -= count;
    return count;
  }

  void read_values(std::string_view line) {
    if (array_ == nullptr)
      fail(line, fmt::format("'{}' stands before the first array; {}",
                             printable(line, kLongestName), kRule));
    if (const auto error = read_packed(line, format_, array_->patterns))
      fail(error->word, error->reason);
  }

  void end_array() const {
    if (array_ == nullptr || array_->patterns.size() == array_->count) return;
    fail(heading_, fmt::format("{} values follow; the count says {}", array_->patterns.size(),
                               array_->count));
  }

  std::string_view text_;
  const std::string& path_;
  ValueFile file_;
  NamedValues* array_ = nullptr;
  std::string_view heading_;
  PackedFormat format_;
  uint64_t values_left_ = kMostPackedValues;
};

}  // namespace

ValueFile read_value_file(std::string_view text, const std::string& path) {
  return Reader(text, path).read();
}

}  // namespace ptxsim
