#include "ptxsim/parse/parser.hpp"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "ptxsim/parse/lexer.hpp"
#include "ptxsim/parse/module_reader.hpp"

namespace ptxsim {

Result<Module> parse(std::string_view text, std::string name, const ParseLimits& limits) {
  const Place whole{name, 0, 0, {}, 0};
  if (text.size() > limits.text_bytes) {
    return Error{ErrorKind::kInput,
                 fmt::format("{} bytes of PTX; at most {}", text.size(), limits.text_bytes), whole};
  }
  try {
    Module module;
    module.name = std::move(name);
    Lexer lexer(text, module.name);
    ModuleReader(lexer, module, limits).read();
    return module;
  } catch (const Fault& fault) {
    return fault.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kInput, "not enough memory for this PTX text", whole};
  }
}

}  // namespace ptxsim
