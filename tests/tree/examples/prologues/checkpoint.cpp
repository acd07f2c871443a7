// What the examples take for granted: a checkpoint, written by the command, and activations.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "dualgemm/checkpoint.hpp"
#include "dualgemm/dualgemm.hpp"

int main() {
  if (std::system("mkdir -p model && dualgemm make-layer --out layer.safetensors --activations "
                  "x.npy --m 3 --n 32 --k 64 && dualgemm quantize layer.safetensors --out "
                  "model/model.safetensors --calibrate x.npy >/dev/null") != 0) {
    return 1;
  }
  const int64_t rows = 3, n = 32, k = 64;
  const std::vector<uint8_t> a_codes(rows * k / 2, 0x22), a_ones(rows * k / 16, 0x38);
  std::vector<uint16_t> result(rows * n, 0xFFFF);  // a NaN, where nothing is written
  const void* codes = a_codes.data();
  const uint8_t* scales = a_ones.data();
  const float a_global_scale = 1.0f;
  void* d = result.data();
  EXAMPLE;
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  for (const uint16_t value : result) {
    if ((value & 0x7C00) == 0x7C00) return 1;
  }
  return 0;
}
