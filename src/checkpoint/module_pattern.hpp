// The names by which a quantisation config speaks of modules: a whole name, a pattern, or a class.
#pragma once

#include <map>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// From what claims least to what claims most: where several groups of a config claim a module, the
// strongest counts (compressed-tensors 0.20, `match_targets`).
enum class ModuleMatch { kNone, kClass, kPattern, kName };

class ModulePattern {
 public:
  // compressed-tensors: "Linear", a class; "re:REGEX", matched from the start of a name as Python's
  // re.match() does; else a name. kUnsupported: an expression in a syntax that only Python has;
  // kCorruptFile: one that is none, is longer than kMostBytes, nests deeper than kMostGroups, or
  // repeats more often than kMostRepeats.
  static Expected<ModulePattern> of_target(std::string_view text, const std::string& where);
  // ModelOpt's names: of a module or of one that holds it; '*' stands for any characters, '?' for
  // one.
  static ModulePattern of_holder(std::string_view text);
  // transformers' lists of what is left alone: the same, and the end of a name ("lm_head").
  static ModulePattern of_exclusion(std::string_view text);

  // How strongly it claims the linear layer `module`; modules that are none have no place in a
  // checkpoint's tables.
  ModuleMatch match(std::string_view module) const;

  static constexpr size_t kMostBytes = 1024, kMostGroups = 64, kMostRepeats = 999;

 private:
  friend class ModulePatterns;
  enum class Kind { kName, kClass, kRegex, kHolder, kExclusion };
  bool is_plain_name() const;  // no star, no expression, no class

  Kind kind_ = Kind::kName;
  std::string text_;
  std::shared_ptr<const std::regex> regex_;
};

// Many of them: a list of thousands of plain names takes a module no longer than a short one.
class ModulePatterns {
 public:
  void add(ModulePattern pattern);
  bool empty() const noexcept { return names_.empty() && patterns_.empty(); }
  // The strongest.
  ModuleMatch match(std::string_view module) const;

 private:
  std::map<std::string, ModulePattern::Kind, std::less<>> names_;
  std::vector<ModulePattern> patterns_;
};

}  // namespace dualgemm::checkpoint
