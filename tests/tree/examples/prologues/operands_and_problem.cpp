// The operands of a small layer, and the problem and buffers that go with them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "dualgemm/dualgemm.hpp"

int report(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int main() {
  const int64_t m = 3, n = 20, k = 64;
  const std::vector<uint8_t> a_codes(m * k / 2, 0x22), w_codes(n * k / 2, 0x22);
  const std::vector<uint8_t> a_ones(m * k / 16, 0x38), ones(n * k / 16, 0x38);
  std::vector<uint16_t> result(m * n, 0);
  const void *a = a_codes.data(), *gate = w_codes.data(), *up = w_codes.data();
  const uint8_t *a_scales = a_ones.data(), *gate_scales = ones.data(), *up_scales = ones.data();
  const float alpha_gate = 1.0f, alpha_up = 1.0f;
  void* d = result.data();
  dualgemm::Problem problem{.m = m, .n = n, .k = k};
  dualgemm::Buffers buffers{.a = a,
                            .a_scales = a_scales,
                            .gate = gate,
                            .gate_scales = gate_scales,
                            .up = up,
                            .up_scales = up_scales,
                            .alpha_gate = alpha_gate,
                            .alpha_up = alpha_up,
                            .d = d};
  EXAMPLE;
  // Every product is 64, silu(64) = 64: 4096, in fp16.
  for (const uint16_t value : result) {
    if (value != 0x6C00) return report("d is wrong");
  }
  return 0;
}
