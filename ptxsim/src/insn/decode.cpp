#include "ptxsim/insn/decode.hpp"

#include <fmt/format.h>

#include <cstring>

namespace ptxsim {
namespace {

// Special registers that change while a warp runs are read by `mov` alone (insn/alu/mov.cpp).
bool changes_while_running(SpecialKind kind) {
  switch (kind) {
    case SpecialKind::kClock:
    case SpecialKind::kClockHi:
    case SpecialKind::kClock64:
    case SpecialKind::kGlobaltimer:
    case SpecialKind::kGlobaltimerLo:
    case SpecialKind::kGlobaltimerHi:
      return true;
    default:
      return false;
  }
}

StartValue::Kind address_kind(const Variable& variable) {
  if (variable.in_frame) return StartValue::Kind::kLocalAddress;
  switch (variable.space) {
    case Space::kShared:
      return StartValue::Kind::kSharedAddress;
    case Space::kParam:
      return StartValue::Kind::kParamAddress;
    case Space::kConst:
      return StartValue::Kind::kConstAddress;
    case Space::kLocal:
      return StartValue::Kind::kLocalAddress;
    default:
      return StartValue::Kind::kGlobalAddress;
  }
}

}  // namespace

Decode::Decode(Program& program, const Statement& statement, Insn& insn)
    : program_(program), statement_(statement), insn_(insn), modifiers_(statement) {}

const Operand& Decode::operand(size_t index) const {
  if (index >= statement_.operands.size())
    fail(fmt::format("{} has {} operands; needs at least {}", statement_.root,
                     statement_.operands.size(), index + 1));
  return statement_.operands[index];
}

void Decode::expect_operands(size_t least, size_t most) const {
  const size_t count = statement_.operands.size();
  if (count < least || count > most)
    fail(least == most
             ? fmt::format("{} has {} operands; must have {}", statement_.root, count, least)
             : fmt::format("{} has {} operands; must have {} to {}", statement_.root, count, least,
                           most));
}

Slot Decode::register_slot(const Operand& operand, unsigned bytes, bool wider_ok, bool is_write) {
  const Register& reg = entry().registers[operand.reg];
  const unsigned width = bytes_of(reg.type);
  if (reg.type == Type::kPred)
    fail(fmt::format("register {} is a predicate; a value of {} bytes is needed here", reg.name,
                     bytes));
  if (width != bytes && !(wider_ok && width > bytes))
    fail(fmt::format("register {} has {} bytes; the instruction's type has {}", reg.name, width,
                     bytes));
  program_.uses.push_back({reg.offset, width * kWarpSize, is_write});
  return {reg.offset};
}

Slot Decode::source(const Operand& operand, Type type, bool wider_ok) {
  const unsigned bytes = bytes_of(type);
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return register_slot(operand, bytes, wider_ok, false);
    case Operand::Kind::kImmediate: {
      uint64_t bits = operand.bits;
      if (operand.is_float) {
        double value;
        float single;
        if (operand.float_bytes == 4) {
          const uint32_t low = static_cast<uint32_t>(bits);
          std::memcpy(&single, &low, 4);
          value = single;
        } else {
          std::memcpy(&value, &bits, 8);
        }
        if (bytes == 4 && operand.float_bytes != 4) {
          single = static_cast<float>(value);
          uint32_t low;
          std::memcpy(&low, &single, 4);
          bits = low;
        } else if (bytes == 8) {
          std::memcpy(&bits, &value, 8);
        } else if (bytes != 4) {
          fail(fmt::format("a floating-point literal where the type has {} bytes; must have 4 or 8",
                           bytes));
        }
      } else if (type == Type::kF32 || type == Type::kF64) {
        fail("an integer literal where a floating-point value is needed");
      }
      return constant(&bits, bytes);
    }
    case Operand::Kind::kSpecial: {
      if (changes_while_running(operand.special))
        fail("this special register can be read by mov alone");
      StartValue value{StartValue::Kind::kSpecial,
                       {},
                       static_cast<uint8_t>(bytes),
                       operand.special,
                       operand.axis,
                       0,
                       0};
      return start_value(value);  // extended with zeros, or its low part
    }
    case Operand::Kind::kSymbol: {
      if (bytes != 4 && bytes != 8)
        fail(fmt::format("an address as a value of {} bytes; must have 4 or 8", bytes));
      const Variable& variable = entry().variables[operand.symbol];
      StartValue value{address_kind(variable),
                       {},
                       static_cast<uint8_t>(bytes),
                       {},
                       0,
                       operand.symbol,
                       static_cast<int64_t>(operand.bits)};
      return start_value(value);
    }
    case Operand::Kind::kFunction: {
      if (bytes != 8)
        fail(fmt::format("the address of a function as a value of {} bytes; must have 8", bytes));
      const uint64_t address = code_address(operand.symbol);
      return constant(&address, bytes);
    }
    default:
      fail("this operand cannot be read as a value");
  }
}

Slot Decode::destination(const Operand& operand, Type type, bool wider_ok) {
  if (operand.kind == Operand::Kind::kSink) return {};
  if (operand.kind != Operand::Kind::kRegister) fail("the destination must be a register");
  if (type == Type::kPred) {
    const Register& reg = entry().registers[operand.reg];
    if (reg.type != Type::kPred) fail(fmt::format("register {} must be a predicate", reg.name));
    program_.uses.push_back({reg.offset, 4, true});
    return {reg.offset};
  }
  return register_slot(operand, bytes_of(type), wider_ok, true);
}

unsigned Decode::width_of(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? bytes_of(entry().registers[operand.reg].type)
                                                  : 0;
}

Decode::Address Decode::address(const Operand& operand) {
  if (operand.kind != Operand::Kind::kAddress || operand.parts.empty())
    fail("an address in brackets is needed here");
  const Operand& base = operand.parts[0];
  Address address{{}, 8, static_cast<int64_t>(operand.bits), nullptr, {}};
  for (size_t i = 1; i < operand.parts.size(); ++i) address.more.push_back(&operand.parts[i]);
  if (base.kind == Operand::Kind::kRegister) {
    address.base_bytes = width_of(base);
    if (address.base_bytes != 4 && address.base_bytes != 8)
      fail(fmt::format("address register {} has {} bytes; must have 4 or 8",
                       entry().registers[base.reg].name, address.base_bytes));
  } else if (base.kind == Operand::Kind::kSymbol) {
    address.variable = &entry().variables[base.symbol];
    const Space space = address.variable->space;
    address.base_bytes = space == Space::kShared || space == Space::kLocal ? 4 : 8;
  } else if (base.kind != Operand::Kind::kImmediate) {
    fail("an address must be a register, a symbol or a number");
  }
  address.base = source(base, bits_type(address.base_bytes));
  return address;
}

std::vector<const Operand*> Decode::elements(size_t index) const {
  const Operand& whole = operand(index);
  std::vector<const Operand*> list;
  if (whole.kind != Operand::Kind::kVector) {
    list.push_back(&whole);
  } else {
    for (const Operand& part : whole.parts) list.push_back(&part);
  }
  return list;
}

Slot Decode::predicate(const Operand& operand) {
  if (operand.kind == Operand::Kind::kImmediate && !operand.is_float) {
    const uint32_t mask = operand.bits != 0 ? 0xffffffffu : 0;
    return constant(&mask, 4);
  }
  if (operand.kind != Operand::Kind::kRegister ||
      entry().registers[operand.reg].type != Type::kPred)
    fail("a predicate register is needed here");
  const Register& reg = entry().registers[operand.reg];
  program_.uses.push_back({reg.offset, 4, false});
  return {reg.offset};
}

std::optional<uint64_t> Decode::immediate(size_t index) const {
  const Operand& value = operand(index);
  if (value.kind != Operand::Kind::kImmediate || value.is_float) return std::nullopt;
  return value.bits;
}

uint32_t Decode::label(size_t index) const {
  if (operand(index).kind != Operand::Kind::kLabel) fail("a label is needed here");
  return operand(index).label;
}

Slot Decode::constant(const void* value, unsigned bytes) {
  // One copy for each lane, side by side, as a register's values lie.
  auto& pool = program_.constants;
  const size_t total = size_t{bytes} * kWarpSize;
  const size_t start = (pool.size() + 63) / 64 * 64;
  if (start + total >= Slot::kAbsent) fail("too many constants");
  pool.resize(start + total);
  for (int lane = 0; lane < kWarpSize; ++lane)
    std::memcpy(pool.data() + start + size_t{bytes} * lane, value, bytes);
  return {static_cast<uint32_t>(start) | Slot::kConstant};
}

Slot Decode::start_value(StartValue value) {
  for (const StartValue& have : program_.start_values)
    if (have.kind == value.kind && have.bytes == value.bytes && have.special == value.special &&
        have.axis == value.axis && have.symbol == value.symbol && have.offset == value.offset)
      return have.slot;
  value.slot.at = static_cast<uint32_t>(program_.register_bytes);
  program_.register_bytes += (uint64_t{value.bytes} * kWarpSize + 63) / 64 * 64;
  program_.start_values.push_back(value);
  if (value.kind == StartValue::Kind::kSpecial &&
      value.special == SpecialKind::kReservedSmemOffset1)
    program_.uses_reserved_shared = true;
  return value.slot;
}

void Decode::fail(const std::string& message) const { throw Fault(message, ErrorKind::kInput); }

void Decode::finish() const {
  if (const std::string* left = modifiers_.first_left())
    fail(fmt::format("modifier .{} is not known for {}", *left, statement_.root));
  if (insn_.execute == nullptr)
    fail(fmt::format("{} has no meaning with these modifiers", statement_.root));
}

}  // namespace ptxsim
