#include "kernels/suite/case_expression.hpp"

#include <cctype>
#include <string_view>

namespace dualgemm::test {
namespace {

using Lookup = std::function<std::optional<int64_t>(const std::string&)>;

class Expression {
 public:
  Expression(const std::string& text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  Expected<int64_t> value() {
    Expected<int64_t> result = sum();
    if (result.ok() && at_ != text_.size()) return unexpected("must end here");
    return result;
  }

 private:
  Status unexpected(const char* rule) const {
    return Status::invalid(text_, at_ == text_.size() ? "its end" : text_.substr(at_), rule);
  }
  // The next character if it is among these, else 0.
  char take(std::string_view characters) {
    if (at_ == text_.size() || characters.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }
  Expected<int64_t> sum() {
    Expected<int64_t> left = product();
    while (left.ok()) {
      const char sign = take("+-");
      if (sign == 0) return left;
      const Expected<int64_t> right = product();
      if (!right.ok()) return right;
      left = sign == '+' ? *left + *right : *left - *right;
    }
    return left;
  }
  Expected<int64_t> product() {
    Expected<int64_t> left = factor();
    while (left.ok()) {
      const char sign = take("*/%");
      if (sign == 0) return left;
      const Expected<int64_t> right = factor();
      if (!right.ok()) return right;
      if (sign != '*' && *right == 0)
        return Status::invalid(text_, "a division by 0", "is no number");
      left = sign == '*' ? *left * *right : sign == '/' ? *left / *right : *left % *right;
    }
    return left;
  }
  Expected<int64_t> factor() {
    if (take("(") != 0) {
      Expected<int64_t> inner = sum();
      if (inner.ok() && take(")") == 0) return unexpected("must be )");
      return inner;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    const std::string token = text_.substr(begin, at_ - begin);
    if (token.empty()) return unexpected("must be a number, a name or (");
    if (token.size() <= 12 && token.find_first_not_of("0123456789") == std::string::npos)
      return std::stoll(token);
    const std::optional<int64_t> named = lookup_(token);
    if (!named)
      return Status::invalid(text_, token, "must be a number, a word or a key to the left");
    return *named;
  }
  static bool is_of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  }

  const std::string& text_;
  const Lookup& lookup_;
  size_t at_ = 0;
};

}  // namespace

Expected<int64_t> evaluate(const std::string& text, const Lookup& lookup) {
  return Expression(text, lookup).value();
}

}  // namespace dualgemm::test
