// Left shifts of the decoding as products.
#pragma once

#include <cstdint>

namespace dualgemm::cuda::hopper {

// 2^n, by which decoding multiplies words instead of shifting them left by n. As members of a
// kernel's parameters they are numbers that the compiler does not know: it cannot turn the products
// into shifts again, which go through the pipe that limits decoding.
struct Shifts {
  uint32_t by1 = 2, by2 = 4, by3 = 8, by4 = 16, by6 = 64, by7 = 128, by8 = 256, by10 = 1024,
           by12 = 4096;
};

}  // namespace dualgemm::cuda::hopper
