// From parsed statements to executable ones. Every family file registers decoders for the roots it
// knows (registry.cpp lists the families); a modifier that a decoder did not take is an error that
// names it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxsim/error.hpp"
#include "ptxsim/ir/module.hpp"
#include "ptxsim/ir/program.hpp"
#include "ptxsim/ir/traits.hpp"

namespace ptxsim {

// The modifiers of one statement as a set: different compilers write the same ones in different
// orders.
class Modifiers {
 public:
  explicit Modifiers(const Statement& statement);
  bool take(std::string_view name);  // true and marks it when it is there
  // The one of `names` that is there, or -1; two of them are an error.
  int take_one_of(std::initializer_list<std::string_view> names);
  Type take_type();  // the first type not yet taken, in written order; kNone when there is none
  std::optional<std::string> take_prefix(
      std::string_view prefix);  // "x4" for prefix "x": returns "4"
  bool has(std::string_view name) const;
  std::string_view at(size_t index) const;  // as written; empty when past the end
  const std::string* first_left() const;    // nullptr when all were taken
  // Cache operators, eviction priorities, prefetch sizes, .weak and the like, which change no
  // result.
  void take_performance_hints();

 private:
  const Statement& statement_;
  std::vector<bool> taken_;
};

// Decodes one statement. All errors are thrown Faults of kind kInput; the caller adds the place.
class Decode {
 public:
  Decode(Program& program, const Statement& statement, Insn& insn);

  const Statement& statement() const { return statement_; }
  const Program& program() const { return program_; }
  const Entry& entry() const { return *program_.entry; }
  // The function that holds the statement; nullptr: the entry does.
  const CalledFunction* function() const { return program_.function_of(insn_.statement); }
  Modifiers& modifiers() { return modifiers_; }
  Insn& insn() { return insn_; }
  size_t num_operands() const { return statement_.operands.size(); }
  const Operand& operand(size_t index) const;  // an error when the statement has fewer
  void expect_operands(size_t least, size_t most) const;

  // Operand `index` as a slot whose lanes are bytes_of(type) wide. A register must have just that
  // width (PTX ISA, "Operand Size Exceeding Instruction-Type Size": wider ones are allowed for ld,
  // st and cvt: pass `wider_ok` and look at width_of()). Immediates are converted to `type` and
  // broadcast.
  Slot source(size_t index, Type type) { return source(operand(index), type); }
  Slot source(const Operand& operand, Type type, bool wider_ok = false);
  Slot destination(size_t index, Type type) { return destination(operand(index), type); }
  Slot destination(const Operand& operand, Type type, bool wider_ok = false);  // absent for _
  unsigned width_of(const Operand& operand) const;  // bytes per lane of a register; 0 for others

  // [base + offset]: a slot of the 32- or 64-bit base address (symbols become addresses) and the
  // byte offset.
  struct Address {
    Slot base;
    unsigned base_bytes;  // 4 or 8
    int64_t offset;
    const Variable* variable;  // when the base is a symbol
    std::vector<const Operand*>
        more;  // what follows the base inside the brackets (a kVector of coordinates, ...)
  };
  Address address(size_t index) { return address(operand(index)); }
  Address address(const Operand& operand);
  // Elements of a vector operand, or the operand itself as the only element.
  std::vector<const Operand*> elements(size_t index) const;

  Slot predicate(size_t index) {
    return predicate(operand(index));
  }                                        // source predicate, register or literal 0/1
  Slot predicate(const Operand& operand);  // negation: see is_negated
  bool is_negated(size_t index) const { return operand(index).negated; }
  std::optional<uint64_t> immediate(size_t index) const;  // an integer literal, else nothing
  uint32_t label(size_t index) const;

  Slot constant(const void* value, unsigned bytes);  // broadcast to 32 lanes
  void require_aligned() { insn_.convergence = Convergence::kAligned; }
  void require_members(Slot mask) {
    insn_.convergence = Convergence::kMembers, insn_.members = mask;
  }

  template <class T, class... Args>
  T* make_detail(Args&&... args) {
    auto owned = std::make_shared<T>(std::forward<Args>(args)...);
    T* detail = owned.get();
    program_.details.push_back(std::move(owned));
    insn_.detail = detail;
    return detail;
  }

  [[noreturn]] void fail(const std::string& message) const;  // throws Fault(kInput)
  void finish()
      const;  // an error when a modifier was not taken; the registry calls it after each decoder

 private:
  Slot register_slot(const Operand& operand, unsigned bytes, bool wider_ok, bool is_write);
  Slot start_value(StartValue value);

  Program& program_;
  const Statement& statement_;
  Insn& insn_;
  Modifiers modifiers_;
};

using DecodeFunction = void (*)(Decode&);

// A form of an instruction that is something else than its row says: the one with these modifiers.
struct Form {
  std::string_view modifiers[2];  // both are there, in whatever order; the second may be empty
  Traits traits;                  // in place of the row's
};

// The row of an instruction. The last of its forms that fits counts.
struct Decoder {
  std::string_view root;
  DecodeFunction decode;
  Traits traits;
  std::span<const Form> forms;

  constexpr Decoder(std::string_view root_, DecodeFunction decode_, const Traits& traits_,
                    std::span<const Form> forms_ = {})
      : root(root_), decode(decode_), traits(traits_), forms(forms_) {
    require_deed(traits);
    for (const Form& form : forms) require_deed(form.traits);
  }
  const Traits& traits_of(const Statement& statement) const;

 private:
  // Rows are constants: where this throws, they do not compile.
  static constexpr void require_deed(const Traits& traits) {
    if (!traits.has(kAllDeeds)) throw std::logic_error("the row does not say what it does");
  }
};

// What a statement is, decoded or not; without any trait when its root is not known.
Traits traits_of(const Statement& statement);

// Decodes `entry_name` of the module, and the functions that it may call; empty name: the only
// entry. Errors are kInput with the place.
Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const Module> module,
                                              std::string_view entry_name);
// Decodes a function and those that it may call, for their errors: index into Module::functions.
std::optional<Error> check_function(std::shared_ptr<const Module> module, uint32_t function);

}  // namespace ptxsim
