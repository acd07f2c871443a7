#include <fmt/format.h>

#include <algorithm>

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

Modifiers::Modifiers(const Statement& statement)
    : statement_(statement), taken_(statement.modifiers.size(), false) {}

bool Modifiers::take(std::string_view name) {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && statement_.modifiers[i] == name) {
      taken_[i] = true;
      return true;
    }
  }
  return false;
}

int Modifiers::take_one_of(std::initializer_list<std::string_view> names) {
  int found = -1, index = 0;
  for (std::string_view name : names) {
    if (take(name)) {
      if (found >= 0)
        throw Fault(
            fmt::format("modifiers .{} and .{} exclude each other", *(names.begin() + found), name),
            ErrorKind::kInput);
      found = index;
    }
    ++index;
  }
  return found;
}

Type Modifiers::take_type() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    const Type type = type_from_name(statement_.modifiers[i]);
    if (type == Type::kNone) continue;
    taken_[i] = true;
    return type;
  }
  return Type::kNone;
}

std::optional<std::string> Modifiers::take_prefix(std::string_view prefix) {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && statement_.modifiers[i].starts_with(prefix)) {
      taken_[i] = true;
      return statement_.modifiers[i].substr(prefix.size());
    }
  }
  return std::nullopt;
}

bool Modifiers::has(std::string_view name) const {
  return std::find(statement_.modifiers.begin(), statement_.modifiers.end(), name) !=
         statement_.modifiers.end();
}

std::string_view Modifiers::at(size_t index) const {
  return index < statement_.modifiers.size() ? std::string_view(statement_.modifiers[index])
                                             : std::string_view();
}

const std::string* Modifiers::first_left() const {
  for (size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i]) return &statement_.modifiers[i];
  return nullptr;
}

void Modifiers::take_performance_hints() {
  static constexpr std::string_view kHints[] = {"ca",
                                                "cg",
                                                "cs",
                                                "lu",
                                                "cv",
                                                "wb",
                                                "wt",
                                                "L1::evict_normal",
                                                "L1::evict_unchanged",
                                                "L1::evict_first",
                                                "L1::evict_last",
                                                "L1::no_allocate",
                                                "L2::evict_first",
                                                "L2::evict_last",
                                                "L2::evict_normal",
                                                "L2::64B",
                                                "L2::128B",
                                                "L2::256B",
                                                "level::eviction_priority"};
  for (std::string_view hint : kHints) take(hint);
}

}  // namespace ptxsim
