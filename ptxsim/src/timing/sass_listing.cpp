#include "timing/sass_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace ptxsim::timing {
namespace {

constexpr std::string_view kSection = ".section", kText = ".text.";
constexpr std::string_view kLine = ".nv_debug_ptx_txt";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

int number_behind(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  int number = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

class Listing {
 public:
  void read(std::string_view text) {
    if (text.starts_with(kSection)) {
      const size_t at = text.find(kText);
      is_code_ = at != std::string_view::npos;
      if (is_code_) begin(text.substr(at + kText.size()));
    } else if (!is_code_)
      return;
    else if (text.starts_with("//##"))
      line_ = text.find(kLine) == std::string_view::npos ? line_ : number_behind(text, ", line ");
    else if (text.starts_with("/*"))
      add(trimmed(text.substr(std::min(text.size(), text.find("*/") + 2))));
    else if (text.ends_with(":"))
      label(text.substr(0, text.size() - 1));
  }

  std::vector<SassSection> sections() {
    end();
    return std::move(sections_);
  }

 private:
  SassSection& section() { return sections_.back(); }

  // `rest`: NAME,"ax",@progbits
  void begin(std::string_view rest) {
    end();
    sections_.push_back({std::string(rest.substr(0, rest.find(','))), {}, 0});
    line_ = 0;
  }

  // Jumps know their labels only when all of the section has been read.
  void end() {
    if (sections_.empty()) return;
    for (const auto& [insn, name] : jumps_)
      if (const auto label = labels_.find(name); label != labels_.end())
        section().insns[insn].target = static_cast<int64_t>(label->second);
    if (!has_subroutine_) section().own = section().insns.size();
    labels_.clear();
    jumps_.clear();
    has_subroutine_ = false;
  }

  // ptxas's own subroutines have names such as $kernel$__internal_0_$__cuda_sm20_div_s64.
  void label(std::string_view name) {
    labels_.emplace(name, section().insns.size());
    if (has_subroutine_ || name.find("$__internal_") == std::string_view::npos) return;
    has_subroutine_ = true;
    section().own = section().insns.size();
  }

  void add(std::string_view text) {
    SassInsn insn;
    insn.line = line_;
    if (text.starts_with("@")) {
      insn.is_guarded = true;
      text = trimmed(text.substr(std::min(text.size(), text.find(' '))));
    }
    insn.opcode = text.substr(0, text.find_first_of(" ;"));
    if (insn.opcode.empty()) return;
    const size_t quote = text.find('`');
    if (quote != std::string_view::npos && text.substr(quote, 2) == "`(")
      jumps_.emplace_back(section().insns.size(),
                          text.substr(quote + 2, text.find(')', quote) - quote - 2));
    section().insns.push_back(std::move(insn));
  }

  std::vector<SassSection> sections_;
  std::map<std::string, size_t, std::less<>> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
  bool is_code_ = false, has_subroutine_ = false;  // of the section under way
  int line_ = 0;
};

}  // namespace

Result<std::vector<SassSection>> parse_sass(std::string_view text, const std::string& file) {
  Listing listing;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.size(), text.find('\n', at));
    listing.read(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  std::vector<SassSection> sections = listing.sections();
  const bool has_lines = std::any_of(sections.begin(), sections.end(), [](const SassSection& s) {
    return std::any_of(s.insns.begin(), s.insns.end(),
                       [](const SassInsn& insn) { return insn.line > 0; });
  });
  if (!has_lines)
    return Error{ErrorKind::kInput,
                 fmt::format("{}: no instruction with its line of PTX; must be what `nvdisasm -c "
                             "-gp` prints of what `ptxas -lineinfo` made",
                             file),
                 {}};
  return sections;
}

}  // namespace ptxsim::timing
