#include "case/parameter_uses.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "case/register_origins.hpp"

namespace ptxsim {
namespace {

constexpr unsigned kPointerBytes = 8;

using Key = std::pair<uint32_t, int64_t>;  // parameter, offset

uint32_t rank_of(const Statement& s) {
  for (const std::string& m : s.modifiers)
    if (m.size() == 2 && m[1] == 'd' && m[0] >= '1' && m[0] <= '5')
      return static_cast<uint32_t>(m[0] - '0');
  return 0;
}

TensorMapMode mode_of(const Statement& s) {
  if (has_modifier(s, "im2col::w") || has_modifier(s, "im2col::w::128"))
    return TensorMapMode::kIm2colWide;
  const bool pixels = has_modifier(s, "im2col") || has_modifier(s, "im2col_no_offs");
  return pixels ? TensorMapMode::kIm2col : TensorMapMode::kTiled;
}

// Which of two types says more: a floating-point one, then a signed or unsigned one, then bits.
int weight(Type type) {
  if (type == Type::kNone) return 0;
  if (is_float(type)) return 3;
  const bool bits = type == Type::kB8 || type == Type::kB16 || type == Type::kB32 ||
                    type == Type::kB64 || type == Type::kB128;
  return bits ? 1 : 2;
}

class Uses {
 public:
  explicit Uses(const Entry& entry)
      : entry_(entry),
        traits_(traits_of(entry)),
        origins_(entry, traits_),
        types_(types_of_registers(entry, traits_)) {
    const std::vector<Statement>& statements = entry.statements;
    for (size_t i = 0; i < statements.size(); ++i) note_loads(statements[i], traits_[i]);
    for (uint32_t p = 0; p < entry.num_params; ++p)
      if (entry.variables[p].is_pointer) note_declared_pointer(p);
    for (size_t i = 0; i < statements.size(); ++i) note_conversion(statements[i], traits_[i]);
    for (size_t i = 0; i < statements.size(); ++i) note_accesses(statements[i], traits_[i]);
  }

  std::vector<ParameterUses> take() {
    std::vector<ParameterUses> uses(entry_.num_params);
    std::vector<std::pair<Key, ParameterField>> all(fields_.begin(), fields_.end());
    // Where fields overlap, an address comes before anything else, then the larger one.
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::pair(!a.second.is_pointer, bytes_of(b.second.type)) <
             std::pair(!b.second.is_pointer, bytes_of(a.second.type));
    });
    for (const auto& [key, field] : all) place(uses[key.first].fields, key.first, field);
    for (ParameterUses& u : uses)
      std::sort(u.fields.begin(), u.fields.end(),
                [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (const auto& [key, map] : maps_) uses[key.first].maps.push_back(map);
    return uses;
  }

 private:
  void place(std::vector<ParameterField>& fields, uint32_t parameter, const ParameterField& field) {
    const uint64_t end = field.offset + bytes_of(field.type);
    if (end > entry_.variables[parameter].bytes) return;
    for (const ParameterField& other : fields)
      if (other.offset < end && field.offset < other.offset + bytes_of(other.type)) return;
    fields.push_back(field);
  }

  ParameterField* field_at(const Origin& origin) {
    const auto found = fields_.find({origin.parameter, origin.offset});
    const bool fits = found != fields_.end() && bytes_of(found->second.type) == kPointerBytes;
    return fits ? &found->second : nullptr;
  }

  // What is loaded or stored as bits and used as a floating-point number is one.
  Type refined(Type type, const Operand& value) const {
    const Operand* first = &value;
    if (value.kind == Operand::Kind::kVector && !value.parts.empty()) first = &value.parts[0];
    if (first->kind != Operand::Kind::kRegister || weight(type) != 1) return type;
    const Type used = types_[first->reg];
    return bytes_of(used) == bytes_of(type) && used != Type::kNone ? used : type;
  }

  void note_loads(const Statement& s, const Traits& traits) {
    if (traits.result != ResultFrom::kMemory || s.operands.size() != 2) return;
    const Operand& value = s.operands[0];
    const size_t count = value.kind == Operand::Kind::kVector ? value.parts.size() : 1;
    const Type type = last_type(s);
    for (const Origin& origin : origins_.of(s.operands[1])) {
      if (!origin.is_address || origin.offset < 0 || bytes_of(type) > kPointerBytes) continue;
      for (size_t i = 0; i < count; ++i) {
        const int64_t offset = origin.offset + static_cast<int64_t>(i * bytes_of(type));
        ParameterField& field = fields_[{origin.parameter, offset}];
        if (bytes_of(field.type) > bytes_of(type)) continue;
        field.offset = static_cast<uint64_t>(offset);
        field.type = refined(type, count == 1 ? value : value.parts[i]);
      }
    }
  }

  void note_declared_pointer(uint32_t parameter) {
    const Variable& variable = entry_.variables[parameter];
    const bool global =
        variable.points_to == Space::kGlobal || variable.points_to == Space::kGeneric;
    if (!global || variable.bytes != kPointerBytes) return;
    ParameterField& field = fields_[{parameter, 0}];
    field.type = variable.type;
    field.is_pointer = true;
  }

  // cvta.to.global of what one parameter holds: an address for certain.
  void note_conversion(const Statement& s, const Traits& traits) {
    if (!traits.has(Trait::kToGlobal) || s.operands.size() != 2) return;
    const Origins origins = origins_.of(s.operands[1]);
    if (origins.size() != 1 || origins[0].is_address) return;
    if (ParameterField* field = field_at(origins[0])) field->is_pointer = true;
  }

  void note_accesses(const Statement& s, const Traits& traits) {
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (s.operands[i].kind != Operand::Kind::kAddress) continue;
      const Origins origins = origins_.of(s.operands[i]);
      if (traits.has(Trait::kTensorMap)) note_map(s, traits, i, origins);
      std::vector<ParameterField*> known, possible;
      for (const Origin& origin : origins) {
        ParameterField* field = origin.is_address ? nullptr : field_at(origin);
        if (field != nullptr) (field->is_pointer ? known : possible).push_back(field);
      }
      // An address is the sum of one base and of what else a parameter may say.
      for (ParameterField* field : known.empty() ? possible : known)
        note_access(s, traits, i, *field);
    }
  }

  void note_access(const Statement& s, const Traits& traits, size_t operand,
                   ParameterField& field) {
    field.is_pointer = true;
    field.is_map |= traits.has(Trait::kTensorMap);
    if (traits.has(Trait::kPrefetches) || field.is_map) return;
    const bool updates = traits.has(Trait::kUpdates), moves_bytes = traits.has(Trait::kCopies);
    const bool reads = traits.has(Trait::kReads) || (moves_bytes && operand > 0);
    field.is_read |= reads || updates;
    field.is_written |= !reads || updates;
    Type type = moves_bytes && !has_modifier(s, "reduce") ? Type::kB8 : last_type(s);
    if (const size_t value = operand == 0 ? 1 : 0; value < s.operands.size() && !moves_bytes)
      type = refined(type, s.operands[value]);
    if (weight(type) > weight(field.element)) field.element = type;
  }

  void note_map(const Statement& s, const Traits& traits, size_t operand, const Origins& origins) {
    for (const Origin& origin : origins) {
      if (!origin.is_address || origin.offset < 0) continue;
      TensorMapUse& map = maps_[{origin.parameter, origin.offset}];
      map.offset = static_cast<uint64_t>(origin.offset);
      map.rank = std::max(map.rank, rank_of(s));
      map.mode = std::max(map.mode, mode_of(s));
      map.is_written |= traits.has(Trait::kCopies) && operand == 0;
    }
  }

  const Entry& entry_;
  std::vector<Traits> traits_;  // by statement
  RegisterOrigins origins_;
  std::vector<Type> types_;
  std::map<Key, ParameterField> fields_;
  std::map<Key, TensorMapUse> maps_;
};

}  // namespace

std::vector<ParameterUses> parameter_uses(const Entry& entry) { return Uses(entry).take(); }

}  // namespace ptxsim
