#include "ptxsim/insn/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ptxsim/insn/registry.hpp"

namespace ptxsim {
namespace {

Type type_of_bytes(unsigned bytes) {
  switch (bytes) {
    case 1:
      return Type::kB8;
    case 2:
      return Type::kB16;
    case 4:
      return Type::kB32;
    case 16:
      return Type::kB128;
    default:
      return Type::kB64;
  }
}

unsigned special_bytes(SpecialKind kind) {
  switch (kind) {
    case SpecialKind::kGridid:
    case SpecialKind::kClock64:
    case SpecialKind::kGlobaltimer:
      return 8;
    case SpecialKind::kIsExplicitCluster:
      return 0;
    default:
      return 4;
  }
}

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

StartValue::Kind address_kind(Space space) {
  switch (space) {
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

Modifiers::Modifiers(const Statement& statement)
    : statement_(statement), taken_(statement.modifiers.size(), false) {}

bool Modifiers::take(std::string_view name) {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && statement_.modifiers[i] == name) {
      taken_[i] = true;
      return true;
    }
  }
  return false;
}

int Modifiers::take_one_of(std::initializer_list<std::string_view> names) {
  int found = -1, index = 0;
  for (std::string_view name : names) {
    if (take(name)) {
      if (found >= 0)
        throw Fault(
            fmt::format("modifiers .{} and .{} exclude each other", *(names.begin() + found), name),
            ErrorKind::kInput);
      found = index;
    }
    ++index;
  }
  return found;
}

Type Modifiers::take_type() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    const Type type = type_from_name(statement_.modifiers[i]);
    if (type == Type::kNone) continue;
    taken_[i] = true;
    return type;
  }
  return Type::kNone;
}

std::optional<std::string> Modifiers::take_prefix(std::string_view prefix) {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && statement_.modifiers[i].starts_with(prefix)) {
      taken_[i] = true;
      return statement_.modifiers[i].substr(prefix.size());
    }
  }
  return std::nullopt;
}

bool Modifiers::has(std::string_view name) const {
  return std::find(statement_.modifiers.begin(), statement_.modifiers.end(), name) !=
         statement_.modifiers.end();
}

std::string_view Modifiers::at(size_t index) const {
  return index < statement_.modifiers.size() ? std::string_view(statement_.modifiers[index])
                                             : std::string_view();
}

const std::string* Modifiers::first_left() const {
  for (size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i]) return &statement_.modifiers[i];
  return nullptr;
}

void Modifiers::take_performance_hints() {
  static constexpr std::string_view kHints[] = {"ca",
                                                "cg",
                                                "cs",
                                                "lu",
                                                "cv",
                                                "wb",
                                                "wt",
                                                "L1::evict_normal",
                                                "L1::evict_unchanged",
                                                "L1::evict_first",
                                                "L1::evict_last",
                                                "L1::no_allocate",
                                                "L2::evict_first",
                                                "L2::evict_last",
                                                "L2::evict_normal",
                                                "L2::64B",
                                                "L2::128B",
                                                "L2::256B",
                                                "level::eviction_priority"};
  for (std::string_view hint : kHints) take(hint);
}

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
      if (bytes != special_bytes(operand.special) && bytes < special_bytes(operand.special))
        fail(fmt::format("the special register has {} bytes; the instruction's type has {}",
                         special_bytes(operand.special), bytes));
      return start_value(value);
    }
    case Operand::Kind::kSymbol: {
      if (bytes != 4 && bytes != 8)
        fail(fmt::format("an address as a value of {} bytes; must have 4 or 8", bytes));
      const Variable& variable = entry().variables[operand.symbol];
      StartValue value{
          address_kind(variable.space),      {}, static_cast<uint8_t>(bytes), {}, 0, operand.symbol,
          static_cast<int64_t>(operand.bits)};
      return start_value(value);
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
  address.base = source(base, type_of_bytes(address.base_bytes));
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
  return value.slot;
}

void Decode::fail(const std::string& message) const { throw Fault(message, ErrorKind::kInput); }

void Decode::finish() const {
  if (const std::string* left = modifiers_.first_left())
    fail(fmt::format("modifier .{} is not known for {}", *left, statement_.root));
  if (insn_.execute == nullptr)
    fail(fmt::format("{} has no meaning with these modifiers", statement_.root));
}

namespace {

// Shared variables in the order of their declaration, the dynamic array after them at its own
// alignment.
void lay_out_shared(Program& program) {
  const auto& variables = program.entry->variables;
  program.shared_offsets.assign(variables.size(), 0);
  uint64_t offset = kSharedLayoutBegin;
  const auto align = [&](uint64_t alignment) {
    offset = (offset + alignment - 1) / alignment * alignment;
  };
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].space != Space::kShared || variables[i].is_extern) continue;
    align(std::max<uint32_t>(variables[i].alignment, 1));
    program.shared_offsets[i] = offset;
    offset += variables[i].bytes;
  }
  const uint64_t static_end = offset;
  uint64_t dynamic_begin = static_end;
  for (const Variable& variable :
       variables)  // all extern arrays are one, at the strictest alignment
    if (variable.space == Space::kShared && variable.is_extern) {
      align(std::max<uint32_t>(variable.alignment, 16));
      dynamic_begin = std::max(dynamic_begin, offset);
    }
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i].space == Space::kShared && variables[i].is_extern)
      program.shared_offsets[i] = dynamic_begin;
  program.static_shared_bytes = dynamic_begin - kSharedLayoutBegin;
}

void decode_statement(Program& program, uint32_t index) {
  const Statement& statement = program.entry->statements[index];
  Insn& insn = program.insns[index];
  insn.statement = index;
  insn.first_use = static_cast<uint32_t>(program.uses.size());
  const Decoder* decoder = find_decoder(statement.root);
  if (decoder == nullptr)
    throw Fault(fmt::format("unknown instruction '{}'", statement.root), ErrorKind::kInput);
  Decode decode(program, statement, insn);
  if (statement.guarded) {
    Operand guard;
    guard.kind = Operand::Kind::kRegister;
    guard.reg = statement.guard;
    insn.guard = decode.predicate(guard);
    insn.guard_negated = statement.guard_negated;
  }
  decoder->decode(decode);
  decode.finish();
  insn.num_uses = static_cast<uint32_t>(program.uses.size()) - insn.first_use;
}

// Marks the statements that write registers which wgmma.mma_async takes as D or A.
void mark_wgmma_operands(Program& program) {
  std::vector<bool> is_operand(program.register_bytes / 64, false);
  bool any = false;
  for (const Insn& insn : program.insns)
    if (insn.may_touch_owned)
      for (uint32_t i = 0; i < insn.num_uses; ++i) {
        is_operand[program.uses[insn.first_use + i].at / 64] = true;
        any = true;
      }
  if (!any) return;
  for (Insn& insn : program.insns)
    for (uint32_t i = 0; i < insn.num_uses && !insn.may_touch_owned; ++i) {
      const RegisterUse& use = program.uses[insn.first_use + i];
      insn.writes_operand |= use.is_write && is_operand[use.at / 64];
    }
}

const Entry* find_entry(const Module& module, std::string_view name) {
  if (name.empty() && module.entries.size() == 1) return &module.entries[0];
  for (const Entry& entry : module.entries)
    if (entry.name == name) return &entry;
  std::string names;
  for (const Entry& entry : module.entries) names += (names.empty() ? "" : ", ") + entry.name;
  throw Fault(fmt::format("entry '{}' is not in the module; it has: {}", name,
                          names.empty() ? "none" : names),
              ErrorKind::kInput);
}

}  // namespace

Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const Module> module,
                                              std::string_view entry_name) {
  auto program = std::make_shared<Program>();
  program->module = std::move(module);
  uint32_t index = 0;
  try {
    program->entry = find_entry(*program->module, entry_name);
    program->register_bytes = program->entry->register_bytes;
    lay_out_shared(*program);
    program->insns.resize(program->entry->statements.size());
    for (; index < program->insns.size(); ++index) decode_statement(*program, index);
    mark_wgmma_operands(*program);
  } catch (const Fault& fault) {
    Error error = fault.error();
    error.place.ptx_name = program->module->name;
    if (program->entry != nullptr && index < program->insns.size()) {
      error.place = place_of(*program, index);
      error.message += " in '" + program->entry->statements[index].text + "'";
    }
    return error;
  }
  return std::shared_ptr<const Program>(std::move(program));
}

Place place_of(const Program& program, uint32_t statement) {
  Place place;
  place.ptx_name = program.module->name;
  if (statement >= program.entry->statements.size()) return place;
  const Statement& s = program.entry->statements[statement];
  place.ptx_line = s.line;
  if (s.loc >= 0) {
    const Location& location = program.module->locations[s.loc];
    const auto file = program.module->files.find(location.file);
    if (file != program.module->files.end()) place.source_file = file->second;
    place.source_line = location.line;
  }
  return place;
}

}  // namespace ptxsim
