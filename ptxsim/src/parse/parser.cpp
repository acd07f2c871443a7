#include "ptxsim/parse/parser.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "parse/lexer.hpp"
#include "parse/module_reader.hpp"

namespace ptxsim {
namespace {

// `entry`: the one whose body is read; null: every one.
Result<Module> read(std::string_view text, std::string name, const std::string_view* entry,
                    const ParseLimits& limits) {
  const Place whole{name, 0, 0, {}, 0};
  if (text.size() > limits.text_bytes) {
    return Error{ErrorKind::kInput,
                 fmt::format("{} bytes of PTX; at most {}", text.size(), limits.text_bytes), whole};
  }
  try {
    Module module;
    module.name = std::move(name);
    Lexer lexer(text, module.name);
    ModuleReader(lexer, module, limits, entry).read();
    return module;
  } catch (const Fault& fault) {
    return fault.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kInput, "not enough memory for this PTX text", whole};
  }
}

}  // namespace

Result<Module> parse(std::string_view text, std::string name, const ParseLimits& limits) {
  return read(text, std::move(name), nullptr, limits);
}

Result<Module> parse_entry(std::string_view text, std::string name, std::string_view entry,
                           const ParseLimits& limits) {
  Result<Module> module = read(text, name, &entry, limits);
  if (!module.ok() || std::none_of(module->functions.begin(), module->functions.end(),
                                   [](const Function& f) { return f.is_defined(); }))
    return module;
  return parse(text, std::move(name), limits);
}

}  // namespace ptxsim
