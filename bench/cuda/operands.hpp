// Random operands of one shape in host memory, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::bench {

// xorshift64
struct Random {
  uint64_t state = 0x9E3779B97F4A7C15u;
  uint64_t operator()() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  }
};

struct HostOperands {
  std::vector<uint8_t> a, a_scales, gate, gate_scales, up, up_scales, d;

  // The addresses, and alphas that keep D within fp16's range.
  Buffers buffers();
};

// Codes: all 16 alike; scales: 1/8 .. 4; A in fp16 or bf16: about normal. D has its size.
Expected<HostOperands> random_operands(const Problem& problem);

}  // namespace dualgemm::bench
