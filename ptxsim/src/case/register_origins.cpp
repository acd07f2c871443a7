#include "case/register_origins.hpp"

#include <algorithm>

namespace ptxsim {
namespace {

constexpr size_t kMostOrigins = 4;  // of one register: more say nothing
constexpr int kMostPasses = 16;     // over the statements: values that go around loops

const std::vector<Operand>& elements(const Operand& operand, std::vector<Operand>& one) {
  if (operand.kind == Operand::Kind::kVector) return operand.parts;
  one.assign(1, operand);
  return one;
}

class RegisterTypes {
 public:
  RegisterTypes(const Entry& entry, const std::vector<Traits>& traits)
      : entry_(entry), types_(entry.registers.size()) {
    bool grows = true;
    for (int pass = 0; pass < kMostPasses && grows; ++pass) {
      grows = false;
      for (size_t i = 0; i < traits.size(); ++i)
        grows |= look_at(entry.statements[i], traits[i].types);
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
  bool look_at(const Statement& s, OperandTypes types) {
    if (s.operands.size() < 2) return false;
    switch (types) {
      case OperandTypes::kPassed: {
        const bool forth = note(s.operands[0], of(s.operands[1]));
        return note(s.operands[1], of(s.operands[0])) || forth;
      }
      case OperandTypes::kNamed: {
        std::vector<Type> named;
        for (const std::string& modifier : s.modifiers)
          if (const Type type = type_from_name(modifier); type != Type::kNone)
            named.push_back(type);
        if (named.size() != 2) return false;
        const bool first = note(s.operands[0], named[0]);
        return note(s.operands[1], named[1]) || first;
      }
      case OperandTypes::kOne: {
        bool grows = false;
        for (const Operand& operand : s.operands) grows |= note(operand, last_type(s));
        return grows;
      }
      case OperandTypes::kUnknown:
        return false;
    }
    return false;
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

std::vector<Traits> traits_of(const Entry& entry) {
  std::vector<Traits> all;
  all.reserve(entry.statements.size());
  for (const Statement& statement : entry.statements) all.push_back(traits_of(statement));
  return all;
}

std::vector<Type> types_of_registers(const Entry& entry, const std::vector<Traits>& traits) {
  return RegisterTypes(entry, traits).take();
}

RegisterOrigins::RegisterOrigins(const Entry& entry, const std::vector<Traits>& traits)
    : entry_(entry), of_register_(entry.registers.size()) {
  bool grows = true;
  for (int pass = 0; pass < kMostPasses && grows; ++pass) {
    grows = false;
    for (size_t i = 0; i < traits.size(); ++i)
      grows |= follow(entry.statements[i], traits[i].result);
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

bool RegisterOrigins::follow(const Statement& s, ResultFrom from) {
  const std::vector<Operand>& o = s.operands;
  switch (from) {
    case ResultFrom::kMemory:
      return o.size() == 2 && o[1].kind == Operand::Kind::kAddress && !o[1].parts.empty() &&
             add_loaded(s);
    case ResultFrom::kOperand:
      return o.size() == 2 && add(o[0], of(o[1]));
    case ResultFrom::kSum:
    case ResultFrom::kDifference:
      return o.size() == 3 && add(o[0], of_sum(o[1], o[2], from == ResultFrom::kDifference));
    case ResultFrom::kMasked:
      return o.size() == 3 && add(o[0], of(o[1]));
    case ResultFrom::kAddend:
      return o.size() == 4 && add(o[0], of(o[3]));
    case ResultFrom::kChoice: {
      if (o.size() != 4) return false;
      const bool first = add(o[0], of(o[1]));
      return add(o[0], of(o[2])) || first;
    }
    case ResultFrom::kUnknown:
      return false;
  }
  return false;
}

}  // namespace ptxsim
