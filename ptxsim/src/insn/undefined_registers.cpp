#include "insn/undefined_registers.hpp"

#include "ir/liveness.hpp"

namespace ptxsim {

std::vector<RegisterRange> may_be_read_unwritten(const Program& program) {
  if (!program.functions.empty() || program.insns.empty()) return {{0, program.register_bytes}};
  const Liveness liveness(program);
  std::vector<RegisterRange> ranges;
  for (const Register& reg : program.entry->registers) {
    if (!liveness.at_start().has(reg.offset / kLine)) continue;
    const uint64_t bytes = reg.type == Type::kPred ? 4 : uint64_t{bytes_of(reg.type)} * kWarpSize;
    ranges.push_back({reg.offset, bytes});
  }
  return ranges;
}

}  // namespace ptxsim
