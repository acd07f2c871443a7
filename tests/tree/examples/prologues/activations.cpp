// What the examples take for granted: activations in bf16, and room for them as NVFP4.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "dualgemm/dualgemm.hpp"

int report(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int main() {
  const int64_t m = 3, k = 64;
  const std::vector<uint16_t> values(m * k, 0x40C0);  // 6
  std::vector<uint8_t> code_bytes(m * k / 2), scale_bytes(m * k / 16);
  std::vector<float> row_scales(m);
  const void* x = values.data();
  uint8_t *codes = code_bytes.data(), *scales = scale_bytes.data();
  float* row_scale = row_scales.data();
  EXAMPLE;
  for (const uint8_t byte : code_bytes) {
    if (byte != 0x77) return report("a code is wrong");
  }
  for (const float scale : row_scales) {
    if (scale != 6.0f / 2688.0f) return report("a scale is wrong");
  }
  return 0;
}
