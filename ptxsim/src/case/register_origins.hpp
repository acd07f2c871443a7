// Where the values of an entry's registers come from, as far as its parameters go.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ptxsim/ptxsim.hpp"

namespace ptxsim {

struct Origin {
  bool is_address = false;  // of the parameter itself; else what was loaded from there
  uint32_t parameter = 0;   // index into Entry::variables
  int64_t offset = 0;       // in the parameter, bytes
  friend bool operator==(const Origin&, const Origin&) = default;
};
using Origins = std::vector<Origin>;

class RegisterOrigins {
 public:
  // `traits`: by statement.
  RegisterOrigins(const Entry& entry, const std::vector<Traits>& traits);

  // Where the address of an operand of the kind kAddress, or the value of any other, comes from.
  Origins of(const Operand& operand) const;

 private:
  bool follow(const Statement& statement, ResultFrom from);
  Origins of_sum(const Operand& left, const Operand& right, bool subtracts) const;
  bool add(const Operand& destination, const Origins& origins);
  bool add_loaded(const Statement& statement);

  const Entry& entry_;
  std::vector<Origins> of_register_;
};

std::vector<Traits> traits_of(const Entry& entry);                         // by statement
bool has_modifier(const Statement& statement, std::string_view modifier);  // without its dot
// The type that a statement names last, such as b32 of ld.param.v2.b32; kNone: it names none.
Type last_type(const Statement& statement);

// What floating-point statements say of the registers that they read and write; kNone: nothing.
std::vector<Type> types_of_registers(const Entry& entry, const std::vector<Traits>& traits);

}  // namespace ptxsim
