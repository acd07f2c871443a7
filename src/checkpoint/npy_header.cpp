#include "checkpoint/npy_header.hpp"

#include <fmt/format.h>

#include "checkpoint/json_events.hpp"
#include "checkpoint/tensor.hpp"

namespace dualgemm::checkpoint {
namespace {

// Grammar:  { 'descr': STRING, 'fortran_order': True|False, 'shape': (INT, ..) [,] }  in any order,
// blanks anywhere between tokens.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Expected<NpyHeader> read() {
    DUALGEMM_TRY(expect('{'));
    while (!accept('}')) {
      DUALGEMM_TRY(read_item());
      if (accept(',')) continue;
      DUALGEMM_TRY(expect('}'));
      break;
    }
    skip_blanks();
    if (at_ != text_.size()) return corrupt("text after the dict", "the header is one dict");
    if (!has_descr_ || !has_order_ || !has_shape_) {
      return corrupt("a key is missing", "needs descr, fortran_order and shape");
    }
    return std::move(header_);
  }

 private:
  Status corrupt(const std::string& observed, const std::string& rule) const {
    return Status::error(StatusCode::kCorruptFile, fmt::format("{}, header byte {}", origin_, at_),
                         observed, rule);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool accept(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  Status expect(char wanted) {
    if (accept(wanted)) return {};
    return corrupt(at_ < text_.size() ? printable(text_.substr(at_, 1)) : "the end",
                   fmt::format("must be '{}'", wanted));
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Expected<std::string> read_string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) return corrupt("no string", "must be a quoted string");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != inside.npos || has_control_characters(inside)) {
      return corrupt("an escape or control character", "strings here are plain");
    }
    at_ = end + 1;
    return std::string(inside);
  }

  Status read_item() {
    const Expected<std::string> key = read_string();
    if (!key) return key.status();
    bool* seen = *key == "descr"           ? &has_descr_
                 : *key == "fortran_order" ? &has_order_
                 : *key == "shape"         ? &has_shape_
                                           : nullptr;
    if (seen == nullptr) {
      return corrupt("key " + printable(*key), "must be descr, fortran_order or shape");
    }
    if (*seen) return corrupt("key " + printable(*key) + " twice", "keys must be unique");
    *seen = true;
    DUALGEMM_TRY(expect(':'));
    if (seen == &has_descr_) return read_descr();
    if (seen == &has_shape_) return read_shape();
    header_.fortran_order = accept_word("True");
    if (header_.fortran_order || accept_word("False")) return {};
    return corrupt("fortran_order", "must be True or False");
  }

  Status read_descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') {
      return Status::unsupported(origin_, "a structured dtype", "must be one plain numeric type");
    }
    Expected<std::string> descr = read_string();
    if (!descr) return descr.status();
    header_.descr = *std::move(descr);
    return {};
  }

  Status read_shape() {
    DUALGEMM_TRY(expect('('));
    bool comma = true;
    while (!accept(')')) {
      if (!comma) return corrupt("no comma between extents", "must be a tuple of integers");
      if (header_.shape.size() == kMaxRank) {
        return corrupt(fmt::format("more than {} extents", kMaxRank), "the rank is limited");
      }
      DUALGEMM_TRY(read_extent());
      comma = accept(',');
    }
    if (header_.shape.size() == 1 && !comma) {  // Python reads (3) as a number
      return corrupt("one extent without a comma", "must be a tuple: (3,)");
    }
    return {};
  }

  Status read_extent() {
    skip_blanks();
    const size_t begin = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        return corrupt("an extent beyond 63 bits", "must be below 2^63");
      }
    }
    if (at_ == begin) return corrupt("no digit", "extents must be non-negative integers");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    header_.shape.push_back(value);
    return {};
  }

  std::string_view text_;
  const std::string& origin_;
  size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

Expected<NpyHeader> parse_npy_header(std::string_view text, const std::string& origin) {
  return LiteralReader(text, origin).read();
}

}  // namespace dualgemm::checkpoint
