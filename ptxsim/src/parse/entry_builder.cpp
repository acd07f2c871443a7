#include "parse/entry_builder.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace ptxsim {
namespace {

// PTX ISA 8.1, "Kernel Function Parameters": sm_70 and later.
constexpr uint64_t kMaxParamBytes = 32764;

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

void EntryBuilder::add_parameter(const VariableDeclaration& declaration) {
  const auto index = static_cast<uint32_t>(entry_.variables.size());
  scopes_.declare(declaration.name, {Symbol::Kind::kVariable, index});
  Variable variable = declaration.variable;
  variable.offset = round_up(entry_.param_bytes, variable.alignment);
  entry_.param_bytes = variable.offset + variable.bytes;
  if (entry_.param_bytes > kMaxParamBytes) {
    lexer_.fail(declaration.name,
                fmt::format("parameters of {} bytes up to {}; at most {}", entry_.param_bytes,
                            in_quotes(variable.name), kMaxParamBytes));
  }
  entry_.variables.push_back(std::move(variable));
  ++entry_.num_params;
}

void EntryBuilder::add_variable(const VariableDeclaration& declaration) {
  const auto index = static_cast<uint32_t>(entry_.variables.size());
  scopes_.declare(declaration.name, {Symbol::Kind::kVariable, index});
  if (!declaration.unsupported.empty()) {
    lexer_.fail(declaration.name,
                fmt::format("{}: {}", in_quotes(declaration.name.text), declaration.unsupported));
  }
  Variable variable = declaration.variable;
  variable.in_frame = variable.space == Space::kParam;
  if (variable.space == Space::kLocal || variable.in_frame) {
    variable.offset = round_up(entry_.local_bytes, variable.alignment);
    entry_.local_bytes = variable.offset + variable.bytes;
  }
  entry_.variables.push_back(std::move(variable));
}

Formal EntryBuilder::add_formal(const FormalDeclaration& declaration) {
  if (!declaration.is_register) {
    add_variable(declaration.variable);
    return {false, static_cast<uint32_t>(entry_.variables.size() - 1)};
  }
  if (module_.registers_left == 0)
    lexer_.fail(declaration.reg.name, "no registers are left to this module");
  add_registers(declaration.reg);
  return {true, static_cast<uint32_t>(entry_.registers.size() - 1)};
}

void EntryBuilder::add_register(const Token& name, std::string_view spelling, Type type) {
  constexpr uint64_t kAlignment = 64;      // of each register's lanes in the warp's file
  constexpr uint64_t kPredicateBytes = 4;  // one bit for each lane
  const auto index = static_cast<uint32_t>(entry_.registers.size());
  scopes_.declare(name, spelling, {Symbol::Kind::kRegister, index});
  entry_.registers.push_back(
      {std::string(spelling), type, static_cast<uint32_t>(entry_.register_bytes)});
  const uint64_t bytes =
      type == Type::kPred ? kPredicateBytes : uint64_t{kWarpSize} * bytes_of(type);
  entry_.register_bytes += round_up(bytes, kAlignment);
}

void EntryBuilder::add_registers(const RegisterDeclaration& declaration) {
  module_.registers_left -= std::min(declaration.count, module_.registers_left);
  if (!declaration.is_range) {
    add_register(declaration.name, declaration.name.text, declaration.type);
    return;
  }
  for (uint32_t i = 0; i < declaration.count; ++i) {
    add_register(declaration.name, fmt::format("{}{}", declaration.name.text, i), declaration.type);
  }
}

uint32_t EntryBuilder::module_variable(const Token& name, uint32_t index) {
  const auto found = used_.find(index);
  if (found != used_.end()) return found->second;
  const VariableDeclaration& declaration = module_.variables[index];
  if (!declaration.unsupported.empty()) {
    lexer_.fail(name, fmt::format("{}: {}", in_quotes(name.text), declaration.unsupported));
  }
  const uint64_t bytes = declaration.variable.initial.size();
  if (bytes > module_.initial_bytes_left) {
    lexer_.fail(
        name,
        fmt::format("{}: {} bytes of initial values for this entry; {} are left to this module",
                    in_quotes(name.text), bytes, module_.initial_bytes_left));
  }
  module_.initial_bytes_left -= bytes;
  const auto in_entry = static_cast<uint32_t>(entry_.variables.size());
  entry_.variables.push_back(declaration.variable);
  entry_.variables.back().of_module = static_cast<int>(index);
  used_.emplace(index, in_entry);
  for (size_t i = 0; i < entry_.variables[in_entry].addresses.size(); ++i) {
    InitialAddress address = entry_.variables[in_entry].addresses[i];
    if (!address.is_function) address.symbol = module_variable(name, address.symbol);
    entry_.variables[in_entry].addresses[i] = address;
  }
  return in_entry;
}

Operand EntryBuilder::find(const Token& name) {
  Operand operand;
  const Symbol* symbol = scopes_.find(name.text);
  if (symbol == nullptr) {
    const auto found = module_.names.find(name.text);
    if (found == module_.names.end()) return operand;
    symbol = &found->second;
  }
  switch (symbol->kind) {
    case Symbol::Kind::kRegister:
      operand.kind = Operand::Kind::kRegister;
      operand.reg = symbol->index;
      break;
    case Symbol::Kind::kVariable:
      operand.kind = Operand::Kind::kSymbol;
      operand.symbol = symbol->index;
      break;
    case Symbol::Kind::kModuleVariable:
      operand.kind = Operand::Kind::kSymbol;
      operand.symbol = module_variable(name, symbol->index);
      break;
    case Symbol::Kind::kFunction:
      operand.kind = Operand::Kind::kFunction;
      operand.symbol = symbol->index;
      break;
    case Symbol::Kind::kEntry:
      lexer_.fail(name,
                  fmt::format("{} is an entry, which cannot be an operand", in_quotes(name.text)));
  }
  return operand;
}

}  // namespace ptxsim
