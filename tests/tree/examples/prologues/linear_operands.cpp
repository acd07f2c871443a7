// What the example of linear.hpp takes for granted: the operands of a small projection, as NVFP4.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "dualgemm/linear.hpp"

int report(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int main() {
  const int64_t m = 3, n = 40, k = 64;
  const std::vector<uint8_t> a_codes(m * k / 2, 0x22), w_codes(n * k / 2, 0x22);
  const std::vector<uint8_t> a_ones(m * k / 16, 0x38), w_ones(n * k / 16, 0x38);
  std::vector<uint16_t> result(m * n, 0);
  const void *a = a_codes.data(), *w = w_codes.data();
  const uint8_t *a_scales = a_ones.data(), *w_scales = w_ones.data();
  const float alpha = 0.5f;
  void* d = result.data();
  EXAMPLE;
  // Half of a product of 64 ones: 32, in fp16.
  for (const uint16_t value : result) {
    if (value != 0x5000) return report("d is wrong");
  }
  return 0;
}
