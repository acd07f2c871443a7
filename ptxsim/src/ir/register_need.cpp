#include "ir/register_need.hpp"

#include <algorithm>
#include <vector>

#include "ir/liveness.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kBesides = 6, kStep = 8, kMost = 255;

}  // namespace

uint32_t registers_needed(const Program& program) {
  const uint32_t most = program.entry->maxnreg != 0 ? program.entry->maxnreg : kMost;
  if (program.insns.empty()) return std::min(kStep, most);
  std::vector<uint8_t> words(program.register_bytes / kLine, 0);
  for (const Register& reg : program.entry->registers)
    if (reg.type != Type::kPred)
      words[reg.offset / kLine] = static_cast<uint8_t>((bytes_of(reg.type) + 3) / 4);
  uint32_t peak = 0;
  Liveness(program).at_each([&](const LineSet& live) {
    uint32_t sum = 0;
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] != 0 && live.has(i)) sum += words[i];
    peak = std::max(peak, sum);
  });
  return std::min((peak + kBesides + kStep - 1) / kStep * kStep, most);
}

}  // namespace ptxsim
