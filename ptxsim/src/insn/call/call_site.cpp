#include "insn/call/call_site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ptxsim {
namespace {

Type type_of_bytes(Decode& d, uint64_t bytes) {
  const Type type = bits_type(bytes);
  if (type == Type::kNone)
    d.fail(fmt::format("a register or a literal for a parameter of {} bytes", bytes));
  return type;
}

// The .param variable of a list, or nullptr.
const Variable* variable_of(Decode& d, const Operand& operand, uint64_t bytes) {
  if (operand.kind != Operand::Kind::kSymbol) return nullptr;
  const Variable& variable = d.entry().variables[operand.symbol];
  if (!variable.in_frame || operand.bits != 0)
    d.fail(fmt::format("{} cannot be passed: .param variables, registers and literals can",
                       variable.name));
  if (variable.bytes != bytes)
    d.fail(fmt::format("{} has {} bytes; the function's parameter or result has {}", variable.name,
                       variable.bytes, bytes));
  return &variable;
}

CallPlace argument(Decode& d, const Operand& operand, uint64_t bytes) {
  if (const Variable* variable = variable_of(d, operand, bytes))
    return {{}, variable->offset, bytes};
  return {d.source(operand, type_of_bytes(d, bytes)), 0, bytes};
}

CallPlace result(Decode& d, const Operand& operand, uint64_t bytes) {
  if (operand.kind == Operand::Kind::kSink) return {};
  if (const Variable* variable = variable_of(d, operand, bytes))
    return {{}, variable->offset, bytes};
  return {d.destination(operand, type_of_bytes(d, bytes)), 0, bytes};
}

const std::vector<Operand>& parts_of(const Operand* list) {
  static const std::vector<Operand> none;
  return list == nullptr ? none : list->parts;
}

std::vector<uint64_t> sizes_of(const Entry& body, const std::vector<Formal>& formals) {
  std::vector<uint64_t> sizes;
  for (const Formal& formal : formals)
    sizes.push_back(formal.is_register ? bytes_of(body.registers[formal.index].type)
                                       : body.variables[formal.index].bytes);
  return sizes;
}

}  // namespace

CallOperands take_call_operands(Decode& d) {
  d.expect_operands(1, 4);
  CallOperands operands;
  size_t next = 0;
  const auto take_list = [&]() -> const Operand* {
    if (next >= d.num_operands() || d.operand(next).kind != Operand::Kind::kVector) return nullptr;
    return &d.operand(next++);
  };
  operands.results = take_list();
  operands.callee = &d.operand(next++);
  operands.arguments = take_list();
  if (next < d.num_operands()) operands.prototype = &d.operand(next++);
  d.expect_operands(next, next);
  return operands;
}

Signature signature_of(const Module& module, uint32_t function) {
  const Function& f = module.functions[function];
  return {sizes_of(f.body, f.results), sizes_of(f.body, f.params)};
}

Signature signature_of(const Module& module, const Prototype& prototype) {
  if (prototype.is_target_list) return signature_of(module, prototype.targets.front());
  return {prototype.result_bytes, prototype.param_bytes};
}

std::string to_string(const Signature& signature) {
  return fmt::format("({}) -> ({})", fmt::join(signature.params, ", "),
                     fmt::join(signature.results, ", "));
}

void fill_call_site(Decode& d, const CallOperands& operands, const Signature& signature,
                    CallSite& site) {
  const std::vector<Operand>& results = parts_of(operands.results);
  const std::vector<Operand>& arguments = parts_of(operands.arguments);
  // Results may be ignored altogether.
  if (arguments.size() != signature.params.size() ||
      (!results.empty() && results.size() != signature.results.size()))
    d.fail(fmt::format("{} arguments and {} results; the function has {} and {}", arguments.size(),
                       results.size(), signature.params.size(), signature.results.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    site.arguments.push_back(argument(d, arguments[i], signature.params[i]));
  for (size_t i = 0; i < results.size(); ++i)
    site.results.push_back(result(d, results[i], signature.results[i]));
}

}  // namespace ptxsim
