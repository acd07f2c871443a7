// vprintf(format, arguments): what printf in a kernel becomes (CUDA C++ Programming Guide,
// "Formatted Output"). The arguments lie one after the other, each at a multiple of its size: 4
// bytes for int and what is promoted to it, 8 for long, pointers and double.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>
#include <string_view>

#include "insn/call/extern_function.hpp"

namespace ptxsim {
namespace {

constexpr int kWidest = 4096;      // of one value
constexpr int kMaxArguments = 32;  // CUDA C++ Programming Guide, "Limitations"

// As the host's printf writes it. `spec` was put together below.
template <class... T>
std::string written(const std::string& spec, T... values) {
  const int length = std::snprintf(nullptr, 0, spec.c_str(), values...);
  std::string text(static_cast<size_t>(std::max(length, 0)), '\0');
  std::snprintf(text.data(), text.size() + 1, spec.c_str(), values...);
  return text;
}

class Formatter {
 public:
  Formatter(const ExternCall& call, std::string format, uint64_t arguments)
      : call_(call), format_(std::move(format)), next_(arguments) {}

  std::string run() {
    std::string text;
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      text.append(format_, at_, percent - at_);
      at_ = percent;
      if (at_ < format_.size()) text += conversion();
    }
    return text;
  }
  int count() const { return count_; }

 private:
  char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  uint64_t take(uint32_t bytes) {
    if (++count_ > kMaxArguments)
      call_.x.fault(fmt::format("printf with more than {} arguments", kMaxArguments), call_.lane);
    next_ = (next_ + bytes - 1) / bytes * bytes;
    const uint64_t value = call_.load(next_, bytes);
    next_ += bytes;
    return value;
  }

  // A number or '*', for width and precision; nothing when there is none.
  std::string number() {
    int64_t value = 0;
    if (peek() == '*') {
      ++at_;
      value = static_cast<int32_t>(take(4));
    } else {
      const size_t begin = at_;
      for (; peek() >= '0' && peek() <= '9'; ++at_)
        value = std::min<int64_t>(10 * value + (peek() - '0'), kWidest + 1);
      if (at_ == begin) return {};
    }
    if (value < -kWidest || value > kWidest)
      call_.x.fault(fmt::format("printf of a value {} wide; at most {}", value, kWidest),
                    call_.lane);
    return std::to_string(value);
  }

  // %[flags][width][.precision][size]type; text that is none is written as it is.
  std::string conversion() {
    const size_t begin = at_++;
    if (peek() == '%') {
      ++at_;
      return "%";
    }
    std::string spec = "%";
    while (peek() != '\0' && std::string_view("#0- +").find(peek()) != std::string_view::npos)
      spec += format_[at_++];
    spec += number();
    if (peek() == '.') {
      ++at_;
      const std::string precision = number();
      if (!precision.starts_with('-')) spec += "." + precision;  // negative: as if there were none
    }
    std::string size;
    while (peek() == 'h' || peek() == 'l' || peek() == 'z' || peek() == 'j' || peek() == 't')
      size += format_[at_++];
    const char type = peek();
    if (type != '\0') ++at_;
    return value_of(type, size, spec, begin);
  }

  std::string value_of(char type, const std::string& size, const std::string& spec, size_t begin) {
    const bool wide = !size.empty() && size[0] != 'h';
    switch (type) {
      case 'd':
      case 'i':
        return written(spec + "lld", signed_value(size, wide));
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return written(spec + "ll" + type, unsigned_value(size, wide));
      case 'c':
        return written(spec + "c", static_cast<int>(take(4)));
      case 's': {
        const std::string text = call_.text(take(8));
        return written(spec + "s", text.c_str());
      }
      case 'p':
        return written(spec + "p", reinterpret_cast<const void*>(take(8)));
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        return written(spec + type, std::bit_cast<double>(take(8)));
      default:
        return format_.substr(begin, at_ - begin);
    }
  }

  long long signed_value(const std::string& size, bool wide) {
    if (wide) return static_cast<long long>(take(8));
    const auto value = static_cast<int32_t>(take(4));
    return size == "hh"  ? static_cast<int8_t>(value)
           : size == "h" ? static_cast<int16_t>(value)
                         : value;
  }
  unsigned long long unsigned_value(const std::string& size, bool wide) {
    if (wide) return take(8);
    const auto value = static_cast<uint32_t>(take(4));
    return size == "hh" ? value & 0xff : size == "h" ? value & 0xffff : value;
  }

  const ExternCall& call_;
  std::string format_;
  uint64_t next_;
  size_t at_ = 0;
  int count_ = 0;
};

}  // namespace

void run_vprintf(const ExternCall& call) {
  const uint64_t format = call.argument(0);
  if (format == 0) return call.give(static_cast<uint32_t>(-1));
  Formatter formatter(call, call.text(format), call.argument(1));
  Execution& x = call.x;
  x.machine.printed().add(
      {x.cta.ctaid, thread_index(x.machine.launch(), x.thread_of(call.lane)), formatter.run()});
  call.give(static_cast<uint64_t>(formatter.count()));
}

}  // namespace ptxsim
