#include "checkpoint/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "checkpoint/corrupt.hpp"
#include "checkpoint/json_events.hpp"

namespace dualgemm::checkpoint {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the UTF-8 character that `text` starts with; 0: it starts with none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // The second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (first < 0xC2 || first > 0xF4 || second < lowest || second > highest) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_utf8(uint32_t point, std::string& out) {
  const auto put = [&](uint32_t bits) { out += static_cast<char>(bits); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

// Reads forward through one text. It keeps the brackets that are open in a string of its own, so
// that the depth of a file is not the depth of the call stack.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  // The whole text: one value.
  Status scan() {
    do {
      DUALGEMM_TRY(read_value());
      DUALGEMM_TRY(read_ends());
    } while (!open_.empty());
    skip_blanks();
    return at_ == text_.size() ? Status() : invalid();
  }
  std::vector<JsonMember> take_members() { return std::move(members_); }

  // The string that starts here, unescaped.
  Expected<std::string> read_string() {
    std::string out;
    ++at_;  // the quote
    while (true) {
      const char c = peek();
      if (c == '"') break;
      if (c == '\\') {
        DUALGEMM_TRY(read_escape(out));
        continue;
      }
      const size_t length = at_ < text_.size() ? utf8_length(text_.substr(at_)) : 0;
      if (length == 0 || static_cast<unsigned char>(c) < 0x20) return invalid();
      out += text_.substr(at_, length);
      at_ += length;
    }
    ++at_;
    return out;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool accept(char wanted) {
    skip_blanks();
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  Status invalid() const {
    const bool zero = at_ < text_.size() && text_[at_] == '\0';
    return corrupt(
        origin_ + ", JSON",
        fmt::format("byte {} is {}", at_ + (zero ? 0 : 1), zero ? "zero" : "not valid JSON"),
        "must be valid JSON in UTF-8");
  }

  // A scalar or an empty bracket, with all brackets that open before it.
  Status read_value() {
    while (true) {
      skip_blanks();
      if (open_.size() == 1) value_begin_ = at_;
      const char c = peek();
      if (c != '{' && c != '[') return read_scalar();
      if (open_.size() == kMostJsonLevels) {
        return corrupt(
            origin_ + ", JSON", fmt::format("byte {} is nested too deeply", at_ + 1),
            fmt::format("at most {} arrays and objects inside each other", kMostJsonLevels));
      }
      ++at_;
      open_ += c;
      skip_blanks();
      is_empty_ = peek() == (c == '{' ? '}' : ']');
      if (is_empty_) return {};  // read_ends() closes it
      if (c == '{') DUALGEMM_TRY(read_key());
    }
  }

  // Behind a value: what closes here, up to the place where the next value must start.
  Status read_ends() {
    while (!open_.empty()) {
      const bool object = open_.back() == '{';
      if (!is_empty_) {
        if (open_ == "[") members_.emplace_back();
        if (open_.size() == 1)
          members_.back().value = text_.substr(value_begin_, at_ - value_begin_);
        if (accept(',')) return object ? read_key() : Status();
      }
      if (!accept(object ? '}' : ']')) return invalid();
      open_.pop_back();
      is_empty_ = false;
    }
    return {};
  }

  Status read_key() {
    skip_blanks();
    if (peek() != '"') return invalid();
    Expected<std::string> key = read_string();
    if (!key) return key.status();
    if (open_ == "{") members_.push_back({*std::move(key), {}});
    return accept(':') ? Status() : invalid();
  }

  Status read_scalar() {
    if (peek() == '"') return read_string().status();
    for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"}) {
      if (accept_word(word)) return {};
    }
    return read_number();
  }

  bool skip_digits() {
    const size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ != begin;
  }
  Status read_number() {
    if (peek() == '-') ++at_;
    if (!accept_word("0") && !skip_digits()) return invalid();
    if (peek() == '.') {
      ++at_;
      if (!skip_digits()) return invalid();
    }
    if (peek() != 'e' && peek() != 'E') return {};
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    return skip_digits() ? Status() : invalid();
  }

  // -1: no four hexadecimal digits behind "\u".
  int32_t hex_unit() const {
    uint32_t unit = 0;
    const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    return error == std::errc() && digits.size() == 4 && end == digits.data() + 4
               ? static_cast<int32_t>(unit)
               : -1;
  }
  Status read_escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char name = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const size_t found = kNames.find(name); name != '\0' && found != kNames.npos) {
      out += kMeant[found];
      at_ += 2;
      return {};
    }
    const int32_t unit = name == 'u' ? hex_unit() : -1;
    if (unit < 0) return invalid();
    at_ += 6;
    auto point = static_cast<uint32_t>(unit);
    if (point >= 0xD800 && point < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      const int32_t low = hex_unit();
      if (low >= 0xDC00 && low < 0xE000) {
        point = 0x10000 + ((point - 0xD800) << 10) + static_cast<uint32_t>(low - 0xDC00);
        at_ += 6;
      }
    }
    append_utf8(point, out);  // a surrogate that stands alone too: Python writes and reads it
    return {};
  }

  std::string_view text_;
  const std::string& origin_;
  size_t at_ = 0, value_begin_ = 0;
  std::string open_;                 // '{' and '[', outermost first
  bool is_empty_ = false;            // the innermost of them holds nothing
  std::vector<JsonMember> members_;  // of the outermost object; elements of an array have no key
};

}  // namespace

Expected<std::vector<JsonMember>> json_members(std::string_view text, const std::string& origin) {
  Scanner scanner(text, origin);
  DUALGEMM_TRY(scanner.scan());
  const auto first = std::find_if_not(text.begin(), text.end(), is_blank);
  if (*first != '{') return corrupt(origin, "no JSON object", "another value has no place here");
  return scanner.take_members();
}

Expected<std::vector<std::string_view>> json_elements(std::string_view text,
                                                      const std::string& origin) {
  Scanner scanner(text, origin);
  DUALGEMM_TRY(scanner.scan());
  const auto first = std::find_if_not(text.begin(), text.end(), is_blank);
  if (*first != '[') return corrupt(origin, "no JSON array", "another value has no place here");
  std::vector<std::string_view> elements;
  for (const JsonMember& element : scanner.take_members()) elements.push_back(element.value);
  return elements;
}

const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key) {
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const JsonMember& member) { return member.key == key; });
  return found == members.rend() ? nullptr : &*found;
}

Status check_json(std::string_view text, const std::string& origin) {
  return Scanner(text, origin).scan();
}

Expected<std::string> json_string(std::string_view value, const std::string& where) {
  if (value.starts_with('"')) return Scanner(value, where).read_string();
  return corrupt(where, printable(value), "has no place here: must be a string");
}

Expected<int64_t> json_integer(std::string_view value, const std::string& where) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size()) return number;
  return corrupt(where, printable(value), "has no place here: must be an integer of 64 bits");
}

std::string with_json_member(std::string_view text, const std::vector<JsonMember>& members,
                             std::string_view key, std::string_view value) {
  const auto offset_of = [&](std::string_view part) {
    return static_cast<size_t>(part.data() - text.data());
  };
  if (const JsonMember* old = find_member(members, key)) {
    const size_t at = offset_of(old->value);
    return fmt::format("{}{}{}", text.substr(0, at), value, text.substr(at + old->value.size()));
  }
  const size_t at = members.empty() ? text.find('{') + 1
                                    : offset_of(members.back().value) + members.back().value.size();
  const std::string_view rest = text.substr(at);
  return fmt::format("{}{}\n  \"{}\": {}{}{}", text.substr(0, at), members.empty() ? "" : ",", key,
                     value, rest.starts_with('}') ? "\n" : "", rest);
}

}  // namespace dualgemm::checkpoint
