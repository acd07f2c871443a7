#include "insn/alu/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ptxsim {

void take_operands(Decode& d, Type destination, std::initializer_list<Type> sources) {
  d.expect_operands(sources.size() + 1, sources.size() + 1);
  size_t index = 1;
  for (const Type type : sources) {
    d.insn().slot[index] = d.source(index, type);
    ++index;
  }
  d.insn().slot[0] = d.destination(0, destination);
  if (!d.insn().slot[0].present())
    d.fail(fmt::format("{} needs a destination; '_' is not one", d.statement().root));
}

Type take_type_of(Decode& d, std::initializer_list<Type> allowed) {
  const Type type = d.modifiers().take_type();
  if (std::find(allowed.begin(), allowed.end(), type) == allowed.end())
    d.fail(type == Type::kNone ? fmt::format("{} names no type", d.statement().root)
                               : fmt::format("type .{} is not known for {} in this form",
                                             name_of(type), d.statement().root));
  return type;
}

bool names_float_type(const Decode& d) {
  const auto& modifiers = d.statement().modifiers;
  return std::any_of(modifiers.begin(), modifiers.end(),
                     [](const std::string& name) { return is_float(type_from_name(name)); });
}

}  // namespace ptxsim
