// What the example of mlp.hpp takes for granted: activations in bf16 and the weights of a small
// MLP.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "dualgemm/mlp.hpp"

int report(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int main() {
  const int64_t m = 3, hidden = 64, intermediate = 48;
  const std::vector<uint16_t> values(m * hidden, 0x3F80);  // 1
  const std::vector<uint8_t> codes(intermediate * hidden / 2, 0x22);
  const std::vector<uint8_t> ones(intermediate * hidden / 16, 0x38);
  std::vector<uint16_t> result(m * hidden, 0);
  const void *x = values.data(), *gate = codes.data(), *up = gate, *down = gate;
  const uint8_t *gate_scales = ones.data(), *up_scales = gate_scales, *down_scales = gate_scales;
  const float alpha_gate = 1.0f, alpha_up = 1.0f / 64, alpha_down = 1.0f / 64;
  void* y = result.data();
  EXAMPLE;
  // H is silu(64) * 1 = 64, Y = 48 of it / 64, in bf16.
  for (const uint16_t value : result) {
    if (value != 0x4240) return report("y is wrong");
  }
  return 0;
}
