#include "case/register_origins.hpp"

#include <algorithm>

namespace ptxsim {
namespace {

constexpr size_t kMostOrigins = 4;  // of one register: more say nothing
constexpr int kMostPasses = 16;     // over the statements: values that go around loops

bool is_loaded_parameter(const Statement& s) {
  return s.root == "ld" && s.operands.size() == 2 &&
         s.operands[1].kind == Operand::Kind::kAddress && !s.operands[1].parts.empty();
}

const std::vector<Operand>& elements(const Operand& operand, std::vector<Operand>& one) {
  if (operand.kind == Operand::Kind::kVector) return operand.parts;
  one.assign(1, operand);
  return one;
}

// Statements whose floating-point type is that of their operands.
bool computes(const Statement& s) {
  static constexpr const char* kRoots[] = {"add", "sub",  "mul",   "fma",  "mad", "div", "neg",
                                           "abs", "min",  "max",   "setp", "ex2", "lg2", "rcp",
                                           "sin", "sqrt", "rsqrt", "tanh", "cos", "ld",  "st"};
  return std::find(std::begin(kRoots), std::end(kRoots), s.root) != std::end(kRoots);
}

class RegisterTypes {
 public:
  explicit RegisterTypes(const Entry& entry) : entry_(entry), types_(entry.registers.size()) {
    bool grows = true;
    for (int pass = 0; pass < kMostPasses && grows; ++pass) {
      grows = false;
      for (const Statement& s : entry.statements) grows |= look_at(s);
    }
  }
  std::vector<Type> take() { return std::move(types_); }

 private:
  bool note(const Operand& operand, Type type) {
    if (operand.kind == Operand::Kind::kVector) {
      bool grows = false;
      for (const Operand& part : operand.parts) grows |= note(part, type);
      return grows;
    }
    if (operand.kind != Operand::Kind::kRegister || !is_float(type)) return false;
    if (bytes_of(entry_.registers[operand.reg].type) != bytes_of(type)) return false;
    if (types_[operand.reg] != Type::kNone) return false;
    types_[operand.reg] = type;
    return true;
  }
  Type of(const Operand& operand) const {
    return operand.kind == Operand::Kind::kRegister ? types_[operand.reg] : Type::kNone;
  }
  bool look_at(const Statement& s) {
    if (s.operands.size() < 2) return false;
    if (s.root == "mov") {
      const bool forth = note(s.operands[0], of(s.operands[1]));
      return note(s.operands[1], of(s.operands[0])) || forth;
    }
    if (s.root == "selp") {
      const bool forth = note(s.operands[1], of(s.operands[0]));
      return note(s.operands[0], of(s.operands[1])) || forth;
    }
    if (s.root == "cvt") {
      std::vector<Type> named;
      for (const std::string& modifier : s.modifiers)
        if (const Type type = type_from_name(modifier); type != Type::kNone) named.push_back(type);
      if (named.size() != 2) return false;
      const bool first = note(s.operands[0], named[0]);
      return note(s.operands[1], named[1]) || first;
    }
    if (!computes(s)) return false;
    bool grows = false;
    for (const Operand& operand : s.operands) grows |= note(operand, last_type(s));
    return grows;
  }

  const Entry& entry_;
  std::vector<Type> types_;
};

}  // namespace

bool has_modifier(const Statement& statement, std::string_view modifier) {
  return std::find(statement.modifiers.begin(), statement.modifiers.end(), modifier) !=
         statement.modifiers.end();
}

Type last_type(const Statement& statement) {
  for (auto m = statement.modifiers.rbegin(); m != statement.modifiers.rend(); ++m)
    if (const Type type = type_from_name(*m); type != Type::kNone) return type;
  return Type::kNone;
}

std::vector<Type> types_of_registers(const Entry& entry) { return RegisterTypes(entry).take(); }

RegisterOrigins::RegisterOrigins(const Entry& entry)
    : entry_(entry), of_register_(entry.registers.size()) {
  bool grows = true;
  for (int pass = 0; pass < kMostPasses && grows; ++pass) {
    grows = false;
    for (const Statement& statement : entry.statements) grows |= follow(statement);
  }
}

Origins RegisterOrigins::of(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return of_register_[operand.reg];
    case Operand::Kind::kSymbol:
      if (operand.symbol >= entry_.num_params) return {};
      return {{true, operand.symbol, static_cast<int64_t>(operand.bits)}};
    case Operand::Kind::kAddress: {
      if (operand.parts.empty()) return {};
      Origins origins = of(operand.parts[0]);
      for (Origin& origin : origins)
        if (origin.is_address) origin.offset += static_cast<int64_t>(operand.bits);
      return origins;
    }
    default:
      return {};
  }
}

Origins RegisterOrigins::of_sum(const Operand& left, const Operand& right, bool subtracts) const {
  Origins origins = of(left);
  if (right.kind == Operand::Kind::kImmediate) {
    const auto offset = static_cast<int64_t>(right.bits);
    for (Origin& origin : origins)
      if (origin.is_address) origin.offset += subtracts ? -offset : offset;
  } else if (!subtracts) {
    const Origins more = of(right);
    origins.insert(origins.end(), more.begin(), more.end());
  }
  return origins;
}

bool RegisterOrigins::add(const Operand& destination, const Origins& origins) {
  if (destination.kind != Operand::Kind::kRegister) return false;
  Origins& known = of_register_[destination.reg];
  bool grows = false;
  for (const Origin& origin : origins) {
    if (known.size() >= kMostOrigins) break;
    if (std::find(known.begin(), known.end(), origin) != known.end()) continue;
    known.push_back(origin);
    grows = true;
  }
  return grows;
}

bool RegisterOrigins::add_loaded(const Statement& s) {
  bool grows = false;
  std::vector<Operand> one;
  for (const Origin& from : of(s.operands[1])) {
    if (!from.is_address) continue;
    Origin origin{false, from.parameter, from.offset};
    for (const Operand& part : elements(s.operands[0], one)) {
      grows |= add(part, {origin});
      origin.offset += bytes_of(last_type(s));
    }
  }
  return grows;
}

bool RegisterOrigins::follow(const Statement& s) {
  const std::vector<Operand>& o = s.operands;
  if (is_loaded_parameter(s)) return add_loaded(s);
  const bool moves = s.root == "mov" || s.root == "cvta" || s.root == "cvt";
  if (o.size() == 2 && moves) return add(o[0], of(o[1]));
  if (o.size() == 3 && (s.root == "add" || s.root == "sub"))
    return add(o[0], of_sum(o[1], o[2], s.root == "sub"));
  if (o.size() == 3 && s.root == "or" && has_modifier(s, "b64"))
    return add(o[0], of_sum(o[1], o[2], false));
  if (o.size() == 3 && s.root == "and" && has_modifier(s, "b64")) return add(o[0], of(o[1]));
  if (o.size() == 4 && s.root == "mad") return add(o[0], of(o[3]));
  if (o.size() == 4 && s.root == "selp") {
    const bool first = add(o[0], of(o[1]));
    return add(o[0], of(o[2])) || first;
  }
  return false;
}

}  // namespace ptxsim
