#include "ir/link.hpp"

#include <algorithm>
#include <utility>

namespace ptxsim {
namespace {

uint32_t named(const Module& module, uint32_t function) {
  const int alias = module.functions[function].alias_of;
  return alias >= 0 ? static_cast<uint32_t>(alias) : function;
}

// Functions that bodies name, in three ways.
struct References {
  std::vector<uint32_t> called, taken;  // called by name; the address is taken
  bool calls_through_register = false;
};

void collect(const Operand& operand, std::vector<uint32_t>& list) {
  if (operand.kind == Operand::Kind::kFunction) list.push_back(operand.symbol);
  for (const Operand& part : operand.parts) collect(part, list);
}

// The operand of a call that says which function: after the results.
size_t callee_of(const Statement& call) {
  const bool has_results =
      !call.operands.empty() && call.operands[0].kind == Operand::Kind::kVector;
  return has_results ? 1 : 0;
}

References references_of(const Entry& body, IsCall is_call) {
  References all;
  for (const Statement& s : body.statements) {
    const size_t callee = is_call(s) ? callee_of(s) : s.operands.size();
    for (size_t i = 0; i < s.operands.size(); ++i)
      collect(s.operands[i], i == callee ? all.called : all.taken);
    if (callee < s.operands.size() && s.operands[callee].kind == Operand::Kind::kRegister)
      all.calls_through_register = true;
  }
  for (const Variable& v : body.variables)
    for (const InitialAddress& a : v.addresses)
      if (a.is_function) all.taken.push_back(a.symbol);
  for (const Prototype& p : body.prototypes)
    all.taken.insert(all.taken.end(), p.targets.begin(), p.targets.end());
  return all;
}

class Reachable {
 public:
  Reachable(const Module& module, IsCall is_call)
      : module_(module), is_call_(is_call), is_seen_(module.functions.size()) {}

  // Callees before their callers; depth first, without recursion of this code.
  std::vector<uint32_t> from(const Entry& entry) {
    std::vector<Visit> open{{-1, callees_of(entry)}};
    std::vector<uint32_t> order;
    while (!open.empty()) {
      Visit& visit = open.back();
      if (visit.next == visit.callees.size()) {
        if (visit.function >= 0) order.push_back(static_cast<uint32_t>(visit.function));
        open.pop_back();
        continue;
      }
      const uint32_t callee = named(module_, visit.callees[visit.next++]);
      if (is_seen_[callee] || !module_.functions[callee].is_defined()) continue;
      is_seen_[callee] = true;
      open.push_back({static_cast<int>(callee), callees_of(module_.functions[callee].body)});
    }
    return order;
  }

 private:
  struct Visit {
    int function;
    std::vector<uint32_t> callees;
    size_t next = 0;
  };

  std::vector<uint32_t> callees_of(const Entry& body) {
    References references = references_of(body, is_call_);
    std::vector<uint32_t> callees = std::move(references.called);
    callees.insert(callees.end(), references.taken.begin(), references.taken.end());
    if (references.calls_through_register)
      callees.insert(callees.end(), all_taken().begin(), all_taken().end());
    return callees;
  }

  // A pointer may come out of memory: any function of the module whose address is taken somewhere.
  const std::vector<uint32_t>& all_taken() {
    if (has_taken_) return taken_;
    has_taken_ = true;
    const auto add = [&](const Entry& body) {
      const References references = references_of(body, is_call_);
      taken_.insert(taken_.end(), references.taken.begin(), references.taken.end());
    };
    for (const Entry& entry : module_.entries) add(entry);
    for (const Function& function : module_.functions) add(function.body);
    std::sort(taken_.begin(), taken_.end());
    taken_.erase(std::unique(taken_.begin(), taken_.end()), taken_.end());
    return taken_;
  }

  const Module& module_;
  IsCall is_call_;
  std::vector<bool> is_seen_;
  std::vector<uint32_t> taken_;
  bool has_taken_ = false;
};

// Adds what bodies declare to the linked entry, and remembers under which numbers.
class Linker {
 public:
  explicit Linker(Entry& linked) : linked_(linked) {}

  struct Placed {
    const Entry* body;
    uint32_t first_register;
    uint64_t first_register_byte;
    uint32_t first_prototype;
    std::vector<uint32_t> variables;  // the body's index -> the linked entry's
  };

  Placed declare(const Entry& body, bool is_function) {
    Placed placed{&body,
                  static_cast<uint32_t>(linked_.registers.size()),
                  linked_.register_bytes,
                  static_cast<uint32_t>(linked_.prototypes.size()),
                  {}};
    for (Register reg : body.registers) {
      reg.offset += static_cast<uint32_t>(linked_.register_bytes);
      linked_.registers.push_back(std::move(reg));
    }
    linked_.register_bytes += body.register_bytes;
    linked_.prototypes.insert(linked_.prototypes.end(), body.prototypes.begin(),
                              body.prototypes.end());
    for (const Variable& variable : body.variables)
      placed.variables.push_back(place(variable, body, is_function));
    for (size_t i = 0; i < body.variables.size(); ++i)
      for (size_t a = 0; a < body.variables[i].addresses.size(); ++a) {
        const InitialAddress& address = body.variables[i].addresses[a];
        if (!address.is_function)
          linked_.variables[placed.variables[i]].addresses[a].symbol =
              placed.variables[address.symbol];
      }
    return placed;
  }

  void append_statements(const Placed& placed) {
    const auto first = static_cast<uint32_t>(linked_.statements.size());
    for (Statement statement : placed.body->statements) {
      if (statement.guarded) statement.guard += placed.first_register;
      for (Operand& operand : statement.operands) renumber(operand, placed, first);
      linked_.statements.push_back(std::move(statement));
    }
  }

 private:
  uint32_t place(const Variable& variable, const Entry& body, bool is_function) {
    const auto next = static_cast<uint32_t>(linked_.variables.size());
    if (variable.of_module >= 0) {
      const auto number = static_cast<size_t>(variable.of_module);
      if (number >= shared_.size()) shared_.resize(number + 1, -1);
      if (shared_[number] >= 0) return static_cast<uint32_t>(shared_[number]);
      shared_[number] = static_cast<int>(next);
    }
    linked_.variables.push_back(variable);
    if (variable.of_module < 0 && is_function) {  // two functions may have statics of one name
      std::string& name = linked_.variables.back().name;
      name = body.name + "." + name;
    }
    return next;
  }

  static void renumber(Operand& operand, const Placed& placed, uint32_t first_statement) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        operand.reg += placed.first_register;
        break;
      case Operand::Kind::kSymbol:
        operand.symbol = placed.variables[operand.symbol];
        break;
      case Operand::Kind::kLabel:
        operand.label += first_statement;
        break;
      case Operand::Kind::kPrototype:
        operand.symbol += placed.first_prototype;
        break;
      default:
        break;
    }
    for (Operand& part : operand.parts) renumber(part, placed, first_statement);
  }

  Entry& linked_;
  std::vector<int> shared_;  // a variable of the module -> index in the linked entry
};

std::vector<CallPlace> places_of(const Entry& linked, const Linker::Placed& placed,
                                 const std::vector<Formal>& formals) {
  std::vector<CallPlace> places;
  for (const Formal& formal : formals) {
    if (formal.is_register) {
      const Register& reg = linked.registers[placed.first_register + formal.index];
      places.push_back({{reg.offset}, 0, bytes_of(reg.type)});
    } else {
      const Variable& variable = linked.variables[placed.variables[formal.index]];
      places.push_back({{}, variable.offset, variable.bytes});
    }
  }
  return places;
}

CalledFunction describe(const Module& module, uint32_t index, const Linker::Placed& placed,
                        const Entry& linked) {
  const Function& function = module.functions[index];
  CalledFunction called;
  called.function = index;
  called.is_noreturn = function.is_noreturn;
  called.results = places_of(linked, placed, function.results);
  called.params = places_of(linked, placed, function.params);
  called.first_register = placed.first_register;
  called.num_registers = static_cast<uint32_t>(function.body.registers.size());
  called.first_register_byte = placed.first_register_byte;
  called.register_bytes = function.body.register_bytes;
  called.frame_bytes = function.body.local_bytes;
  for (const uint32_t variable : placed.variables) {
    const Variable& v = linked.variables[variable];
    if (v.space != Space::kLocal && !v.in_frame) continue;
    called.frame_alignment = std::max(called.frame_alignment, v.alignment);
    called.frame_variables.push_back(variable);
  }
  return called;
}

}  // namespace

void link(Program& program, const Entry& entry, IsCall is_call) {
  const Module& module = *program.module;
  program.called.assign(module.functions.size(), -1);
  program.entry = &entry;
  const std::vector<uint32_t> functions = Reachable(module, is_call).from(entry);
  if (functions.empty()) return;
  auto linked = std::make_shared<Entry>(entry);
  linked->variables.clear(), linked->registers.clear(), linked->prototypes.clear();
  linked->statements.clear();
  linked->register_bytes = 0;
  Linker linker(*linked);
  const Linker::Placed own =
      linker.declare(entry, false);  // first: its parameters keep their numbers
  for (const uint32_t function : functions) {
    const Linker::Placed placed = linker.declare(module.functions[function].body, true);
    program.called[function] = static_cast<int>(program.functions.size());
    program.functions.push_back(describe(module, function, placed, *linked));
    program.functions.back().first = static_cast<uint32_t>(linked->statements.size());
    linker.append_statements(placed);
    program.functions.back().end = static_cast<uint32_t>(linked->statements.size());
  }
  program.start = static_cast<uint32_t>(linked->statements.size());
  linker.append_statements(own);
  for (uint32_t i = 0; i < module.functions.size(); ++i)
    program.called[i] = program.called[named(module, i)];
  program.entry = linked.get();
  program.linked = std::move(linked);
}

const CalledFunction* Program::function_of(uint32_t statement) const {
  if (statement >= start) return nullptr;
  const auto after = std::upper_bound(
      functions.begin(), functions.end(), statement,
      [](uint32_t at, const CalledFunction& function) { return at < function.first; });
  return &*std::prev(after);
}

}  // namespace ptxsim
