// Any bytes as PTX text: parsed and each entry decoded, or refused with a place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "ptxsim/insn/decode.hpp"
#include "ptxsim/parse/parser.hpp"

namespace {

using ptxsim::Entry;
using ptxsim::Module;
using ptxsim::Operand;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Entry& entry, const Module& module, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return require(operand.reg < entry.registers.size());
    case Operand::Kind::kSymbol:
      return require(operand.symbol < entry.variables.size());
    case Operand::Kind::kLabel:
      return require(operand.label < entry.statements.size());
    case Operand::Kind::kFunction:
      return require(operand.symbol < module.functions.size());
    case Operand::Kind::kAddress:
      require(!operand.parts.empty());
      break;
    case Operand::Kind::kPair:
      require(operand.parts.size() == 2);
      break;
    default:
      break;
  }
  for (const Operand& part : operand.parts) check(entry, module, part);
}

void check(const Entry& entry, const Module& module) {
  require(!entry.statements.empty());  // at least the `ret` that ends the thread
  for (const ptxsim::Register& reg : entry.registers) {
    require(reg.offset % 64 == 0 && reg.offset < entry.register_bytes);
  }
  for (const ptxsim::Statement& statement : entry.statements) {
    if (statement.guarded) require(statement.guard < entry.registers.size());
    require(statement.loc < static_cast<int>(module.locations.size()));
    for (const Operand& operand : statement.operands) check(entry, module, operand);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A few bytes of text can ask for a million registers: small limits keep the runs short.
  const ptxsim::ParseLimits limits{
      .text_bytes = 1 << 20, .registers = 2048, .initial_bytes = 1 << 16};
  auto module = ptxsim::parse(text, "fuzz.ptx", limits);
  if (!module) {
    require(module.error().place.ptx_line >= 1 && !module.error().message.empty());
    return 0;
  }
  const auto shared = std::make_shared<const Module>(std::move(module.value()));
  for (const Entry& entry : shared->entries) {
    check(entry, *shared);
    const auto program = ptxsim::decode(shared, entry.name);
    if (program) {
      require(program.value()->insns.size() == entry.statements.size());
    } else {
      require(!program.error().message.empty());
    }
  }
  return 0;
}
