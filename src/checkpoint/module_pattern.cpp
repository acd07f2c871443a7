#include "checkpoint/module_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/corrupt.hpp"
#include "checkpoint/glob.hpp"
#include "checkpoint/json_events.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr std::string_view kRegexMark = "re:";

// Breadth first: no expression, however hostile, takes more than (its states x the name) steps.
// libstdc++ has it as an extension.
#ifdef __GLIBCXX__
constexpr auto kSyntax = std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex::ECMAScript;
#endif

// What Python's syntax has and ECMAScript's has not, or means otherwise; null: nothing.
const char* only_python_has(std::string_view regex) {
  constexpr std::string_view kCommonEscapes = "dDwWsSbBntrfv";
  for (size_t i = 0; i + 1 < regex.size(); ++i) {
    if (regex[i] == '\\') {
      const char escaped = regex[++i];
      const bool letter = (escaped >= 'a' && escaped <= 'z') || (escaped >= 'A' && escaped <= 'Z');
      if (letter && kCommonEscapes.find(escaped) == kCommonEscapes.npos) return "an escape";
      if (escaped >= '0' && escaped <= '9') return "a reference to a group";
    } else if (regex[i] == '(' && regex[i + 1] == '?') {
      const char kind = i + 2 < regex.size() ? regex[i + 2] : '\0';
      if (kind != ':' && kind != '=' && kind != '!') return "a group";
    }
  }
  return nullptr;
}

size_t depth_of(std::string_view regex) {
  size_t depth = 0, deepest = 0;
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\') {
      ++i;
    } else if (regex[i] == '(') {
      deepest = std::max(deepest, ++depth);
    } else if (regex[i] == ')' && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

// Whether a repetition, {n} or {n,m}, has a number of more digits than kMostRepeats. libstdc++ 12
// reads such numbers into a long without a look at what fits.
bool repeats_too_often(std::string_view regex) {
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\') {
      ++i;
    } else if (regex[i] == '{') {
      size_t digits = 0;
      for (++i; i < regex.size() && regex[i] != '}'; ++i) {
        digits = regex[i] >= '0' && regex[i] <= '9' ? digits + 1 : 0;
        if (digits > 3) return true;
      }
    }
  }
  return false;
}

// "Linear" and what engines call theirs. Every other word without a dot may be a name, too, as
// "lm_head" is.
bool is_class_of_linear_layers(std::string_view text) {
  return text == "Linear" || text == "LinearBase" || text == "torch.nn.Linear" ||
         text == "torch.nn.modules.linear.Linear";
}

}  // namespace

Expected<ModulePattern> ModulePattern::of_target(std::string_view text, const std::string& where) {
  ModulePattern pattern;
  pattern.text_ = text;
  if (!text.starts_with(kRegexMark)) {
    pattern.kind_ = is_class_of_linear_layers(text)                 ? Kind::kClass
                    : text.find_first_of("*?") != std::string::npos ? Kind::kHolder  // ModelOpt's
                                                                    : Kind::kName;
    return pattern;
  }
  pattern.kind_ = Kind::kRegex;
  const std::string_view regex = text.substr(kRegexMark.size());
  if (regex.size() > kMostBytes || depth_of(regex) > kMostGroups) {
    return corrupt(where, printable(text),
                   fmt::format("an expression has at most {} bytes and {} groups inside each other",
                               kMostBytes, kMostGroups));
  }
  if (repeats_too_often(regex)) {
    return corrupt(where, printable(text),
                   fmt::format("an expression repeats at most {} times", kMostRepeats));
  }
  if (const char* what = only_python_has(regex)) {
    return Status::error(StatusCode::kUnsupported, where, printable(text),
                         fmt::format("holds {} that only Python's expressions have", what));
  }
  try {
    pattern.regex_ = std::make_shared<const std::regex>(regex.begin(), regex.end(), kSyntax);
  } catch (const std::regex_error&) {
    return corrupt(where, printable(text), "must be a regular expression");
  }
  return pattern;
}

ModulePattern ModulePattern::of_holder(std::string_view text) {
  ModulePattern pattern;
  pattern.kind_ = Kind::kHolder;
  pattern.text_ = text;
  return pattern;
}

ModulePattern ModulePattern::of_exclusion(std::string_view text) {
  ModulePattern pattern;
  pattern.kind_ = Kind::kExclusion;
  pattern.text_ = text;
  return pattern;
}

ModuleMatch ModulePattern::match(std::string_view module) const {
  switch (kind_) {
    case Kind::kClass:
      return ModuleMatch::kClass;
    case Kind::kName:
      return module == text_ ? ModuleMatch::kName : ModuleMatch::kNone;
    case Kind::kRegex: {
      const bool found = std::regex_search(module.begin(), module.end(), *regex_,
                                           std::regex_constants::match_continuous);
      return found ? ModuleMatch::kPattern : ModuleMatch::kNone;
    }
    case Kind::kHolder:
    case Kind::kExclusion: {
      if (text_.empty()) return ModuleMatch::kNone;
      const bool found = matches_glob(text_, module) || matches_glob(text_ + ".*", module) ||
                         (kind_ == Kind::kExclusion && matches_glob("*." + text_, module));
      return !found                                           ? ModuleMatch::kNone
             : text_.find_first_of("*?") == std::string::npos ? ModuleMatch::kName
                                                              : ModuleMatch::kPattern;
    }
  }
  return ModuleMatch::kNone;
}

bool ModulePattern::is_plain_name() const {
  return kind_ == Kind::kName || ((kind_ == Kind::kHolder || kind_ == Kind::kExclusion) &&
                                  text_.find_first_of("*?") == std::string::npos);
}

void ModulePatterns::add(ModulePattern pattern) {
  if (!pattern.is_plain_name()) {
    patterns_.push_back(std::move(pattern));
    return;
  }
  if (pattern.text_.empty()) return;
  // Kinds stand from what matches least to what matches most.
  ModulePattern::Kind& kind = names_.emplace(pattern.text_, pattern.kind_).first->second;
  kind = std::max(kind, pattern.kind_);
}

ModuleMatch ModulePatterns::match(std::string_view module) const {
  const auto is_there = [this](std::string_view name, ModulePattern::Kind least) {
    const auto found = names_.find(name);
    return found != names_.end() && found->second >= least;
  };
  if (is_there(module, ModulePattern::Kind::kName)) return ModuleMatch::kName;
  for (size_t dot = module.find('.'); dot != module.npos; dot = module.find('.', dot + 1)) {
    if (is_there(module.substr(0, dot), ModulePattern::Kind::kHolder) ||
        is_there(module.substr(dot + 1), ModulePattern::Kind::kExclusion))
      return ModuleMatch::kName;
  }
  ModuleMatch strongest = ModuleMatch::kNone;
  for (const ModulePattern& pattern : patterns_)
    strongest = std::max(strongest, pattern.match(module));
  return strongest;
}

}  // namespace dualgemm::checkpoint
